"""What commands say of a ledger's state, in the terms of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import residua as rz
from cli.running import run, run_json
from residua.cli.app import app

pytestmark = pytest.mark.needs("sqlalchemy")

REFUSED, LEDGER = 3, 4


@pytest.fixture(autouse=True)
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger here, with one budget and one spend."""
    monkeypatch.chdir(tmp_path)
    for variable in ("RESIDUA_STORE", "RESIDUA_TOKEN", "RESIDUA_ANCHOR"):
        monkeypatch.delenv(variable, raising=False)
    run("init")
    run("budget", "create", "web", "--filter", "pure eps=1", "--data", "visits")
    run("spend", "web", "--pure-dp", "eps=0.5")


def test_a_second_cap_names_the_option() -> None:
    second = ("budget", "create", "more", "--filter", "pure eps=1", "--data", "visits")
    said = run(*second, code=LEDGER)
    assert "pass --shares-data if this is intended" in said and "shares_data" not in said
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


def test_recovering_a_complete_ledger_says_so() -> None:
    assert "nothing to recover" in run("recover")
    assert run_json("recover") == {"applied": 0, "retired": []}


def test_a_recovery_that_retires_nothing_says_none(tmp_path: Path) -> None:
    with rz.open_ledger(tmp_path / "budgets.db") as ledger:
        head = ledger.budget("web").head
    (tmp_path / "budgets.db.anchor").unlink()
    assert run("recover", "--head", f"web=1:{head}").split() == ["applied", "0", "retired", "none"]


@pytest.fixture
def restored(web: None, tmp_path: Path) -> None:
    """The same ledger, of which a backup was put back after another spend."""
    store = tmp_path / "budgets.db"
    kept = store.read_bytes()
    run("spend", "web", "--pure-dp", "eps=0.25")
    store.write_bytes(kept)


READING = [
    ("budget", "list"), ("budget", "show", "web"), ("history", "web"), ("export",), ("status",),
    ("plan", "--budget", "web", "--pure-dp", "eps=0.1"), ("init",),
]  # fmt: skip


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reads_warn_of_a_restored_backup(command: tuple[str, ...], tmp_path: Path) -> None:
    def warned() -> list[str]:
        result = CliRunner().invoke(app, list(command))
        assert result.exit_code == 0 and "warning" not in result.stdout
        return [line for line in result.stderr.splitlines() if line.startswith("warning")]

    assert warned() == []
    store = tmp_path / "budgets.db"
    kept, anchor = store.read_bytes(), tmp_path / "budgets.db.anchor"
    run("spend", "web", "--pure-dp", "eps=0.25")
    store.write_bytes(kept)
    before = anchor.read_bytes()
    (said,) = warned()
    assert said.startswith("warning: read-only: ")
    assert "budget 'web': record 2 was acknowledged, but the store ends with record 1" in said
    assert anchor.read_bytes() == before and store.read_bytes() == kept, "nothing is written"
    anchor.unlink()
    (said,) = warned()
    assert "is gone" in said
    anchor.write_text("no anchor\n")
    (said,) = warned()
    assert "was damaged" in said


@pytest.mark.usefixtures("restored")
def test_nothing_would_be_admitted_by_a_ledger_that_is_read_only() -> None:
    asked = ("web", "--pure-dp", "eps=0.1")
    said = run("check", *asked, code=LEDGER)
    assert "nothing would be admitted now" in said and "may have lost spends" in said
    run("spend", *asked, code=LEDGER)


def test_a_key_of_another_principal_is_warned_of(tmp_path: Path) -> None:
    query = ("web", "--pure-dp", "eps=0.01")
    with rz.open_ledger(tmp_path / "budgets.db") as ledger:
        for key in ("a", "b"):
            ledger.spend("web", rz.pure_dp(0.01), key=key)
        ledger.as_principal("engine").spend("web", rz.pure_dp(0.01), key="b")
    run("token", "create", "--role", "engine", "--name", "engine")

    def warned(*command: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, list(command))
        assert result.exit_code == code, result.output
        return result.stderr

    assert warned("spend", *query, "--key", "new") == "" == warned("spend", *query)
    said = warned("spend", *query, "--key", "a")
    assert "the key 'a' was used by 'local'" in said and len(said.splitlines()) == 1
    assert "warning" not in warned("spend", *query, "--key", "a", code=6), "it is ours by now"
    assert "'engine', 'local'" in warned("reserve", *query, "--key", "b")


def test_a_lost_file_is_rebuilt_from_its_export(tmp_path: Path) -> None:
    """By the advice that each command gives, and without un-spending."""
    run("export", "--out", "all.jsonl")
    Path("budgets.db").unlink()
    assert "create one with: residua init" in run("recover", "--export", "all.jsonl", code=2)
    said = run("init", code=LEDGER)
    assert "warning: read-only" in said and "another ledger" in said and "next:" not in said
    anchor = Path("budgets.db.anchor").read_bytes()
    assert "belongs to another ledger" in run("recover", "--retire", code=LEDGER)
    assert Path("budgets.db.anchor").read_bytes() == anchor
    assert run_json("recover", "--export", "all.jsonl") == {"applied": 2, "retired": []}
    assert "50 % left (eps 0.5)" in run("spend", "web", "--pure-dp", "eps=0.6", code=REFUSED)


def test_an_export_is_not_written_over_the_ledger(tmp_path: Path) -> None:
    for name in ("budgets.db", "budgets.db.anchor"):
        before = Path(name).read_bytes()
        assert "out must not be a database or an anchor" in run("export", "--out", name, code=2)
        assert Path(name).read_bytes() == before
