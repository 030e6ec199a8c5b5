"""What commands say of a ledger's state, in the terms of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import residuum as rz
from cli.running import run, run_json

pytestmark = pytest.mark.needs("sqlalchemy")

REFUSED, LEDGER = 3, 4


@pytest.fixture(autouse=True)
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger here, with one budget and one spend."""
    monkeypatch.chdir(tmp_path)
    for variable in ("RESIDUUM_STORE", "RESIDUUM_TOKEN", "RESIDUUM_ANCHOR"):
        monkeypatch.delenv(variable, raising=False)
    run("init")
    run("budget", "create", "web", "--filter", "pure eps=1", "--data", "visits")
    run("spend", "web", "--pure-dp", "eps=0.5")


def test_a_second_cap_is_told_the_option() -> None:
    second = ("budget", "create", "more", "--filter", "pure eps=1", "--data", "visits")
    said = run(*second, code=LEDGER)
    assert "--shares-data says that this is meant" in said and "shares_data" not in said
    run(*second, "--shares-data")


def test_a_refused_reservation_has_no_hold() -> None:
    said = run("reserve", "web", "--pure-dp", "eps=0.9", "--key", "k", code=REFUSED)
    names = [line.split()[0] for line in said.splitlines()[1:]]
    assert "key" in names and not {"id", "expires"} & set(names)
    assert "\nid " in run("reserve", "web", "--pure-dp", "eps=0.1")


@pytest.mark.parametrize("retired", [False, True])
def test_the_status_has_the_heads(retired: bool) -> None:
    if retired:
        run("budget", "retire", "web", "--reason", "over")
    (budget,) = run_json("status")["budgets"]
    assert f"head {1 + retired}:{budget['head'][:12]}..." in run("status")


def test_the_list_counts_records() -> None:
    heading, row = run("budget", "list").splitlines()
    place = heading.split().index("records")
    assert row.split()[place] == str(len(run_json("history", "web")["items"])) == "2"


def test_a_ledger_that_lacks_nothing_is_told_so() -> None:
    assert "nothing to recover" in run("recover")
    assert run_json("recover") == {"applied": 0, "retired": []}


def test_a_recovery_that_retires_nothing_says_none(tmp_path: Path) -> None:
    with rz.open_ledger(tmp_path / "budgets.db") as ledger:
        head = ledger.budget("web").head
    (tmp_path / "budgets.db.anchor").unlink()
    assert run("recover", "--head", f"web=1:{head}").split() == ["applied", "0", "retired", "none"]
