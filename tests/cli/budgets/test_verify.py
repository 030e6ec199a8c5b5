"""`residua verify`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from cli.running import refusal, run, run_json
from residua import mechanisms as m
from residua.records import Record, canonical, lines
from verify.written_chains import Written, written_by

pytestmark = pytest.mark.needs("flint")


def _exported(path: Path, chain: Written) -> str:
    path.write_text("".join(lines(chain.records)))
    return str(path)


@pytest.fixture
def chain() -> Written:
    return written_by(rz.GdpResidueFilter(1.0), [m.Laplace(4.0)] * 2)


def test_a_proven_export(tmp_path: Path, chain: Written) -> None:
    export = _exported(tmp_path / "e.jsonl", chain)
    assert "3 proven, 0 refuted" in run("verify", export)
    found = run_json("verify", export, "--jobs", "2")
    assert found["ok"] is True
    assert found["heads"]["b"]["hash"] == chain.records[-1].hash
    head = chain.records[-1].hash
    run("verify", export, "--expect-head", head)
    run("verify", export, "--expect-head", f"b=2:{head}")
    run("verify", export, "--expect-head", "0" * 64, code=1)
    run("verify", export, "--expect-head", f"b=3:{head}", code=1)


def test_reports_are_written_and_continued(tmp_path: Path, chain: Written) -> None:
    export = _exported(tmp_path / "e.jsonl", chain)
    report = tmp_path / "report.json"
    run("verify", export, "--report", str(report))
    chain.spend(m.Laplace(4.0))
    _exported(tmp_path / "e.jsonl", chain)
    found = run_json("verify", export, "--since", str(report))
    assert [step["seq"] for step in found["steps"]] == [3]


def test_an_earlier_report_settles_only_what_it_has_proven(tmp_path: Path, chain: Written) -> None:
    export = _exported(tmp_path / "e.jsonl", _changed(chain, _richer))
    report = tmp_path / "report.json"
    run("verify", export, "--report", str(report), code=1)
    run("verify", export, "--since", str(report), code=1)


def test_a_cut_tail_shows_against_the_anchor_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an option, or by the setting of the service; the default anchor does not know."""
    store, anchor = tmp_path / "a.db", f"sqlite:///{tmp_path}/anchors.db"
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        kept = store.read_bytes()
        ledger.spend("b", m.PureDp(0.5))
    run("verify", str(store), "--anchor", anchor)
    store.write_bytes(kept)
    assert "Truncation was not checked" in run("verify", str(store))
    assert "is expected: records are missing" in run(
        "verify", str(store), "--anchor", anchor, code=1
    )
    monkeypatch.setenv("RESIDUA_ANCHOR", anchor)
    run("verify", str(store), code=1)
    assert "1 was acknowledged" in run("recover", "--store", str(store), code=4)
    assert run_json("recover", "--store", str(store), "--retire")["retired"] == ["b"]
    run("verify", str(store))


def test_without_an_anchor_a_recovery_needs_a_vouched_head(
    tmp_path: Path,
) -> None:
    store, export = str(tmp_path / "a.db"), tmp_path / "e.jsonl"
    with rz.open_ledger(store) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        head = ledger.spend("b", m.PureDp(0.5)).head
        ledger.export(export)
    (tmp_path / "a.db.anchor").unlink()
    given = ("recover", "--store", store, "--export", str(export))
    assert "not vouched for" in run(*given, code=4)
    for wrong in (head, "b=3f0a", f"b=x:{head}"):
        assert "--head" in refusal(*given, "--head", wrong)
    assert "but another one was vouched for" in run(*given, "--head", f"b=0:{head}", code=4)
    assert run_json(*given, "--head", f"b=1:{head}") == {"applied": 0, "retired": []}
    run("verify", store, "--expect-head", f"b=1:{head}")


def test_a_limit(tmp_path: Path, chain: Written) -> None:
    export = _exported(tmp_path / "e.jsonl", chain)
    assert "work limit" in run("verify", export, "--limit", "0.0001", code=7)
    text = run("verify", export, "--limit", "20")
    assert "1 budget, 3 steps (first states, and admitted spends, holds and commits)" in text
    assert "limit" in refusal("verify", export, "--limit", "0")


def _richer(body: Any) -> None:
    body["after"]["left"] = body["before"]["left"]


def _changed(chain: Written, change: Any) -> Written:
    body = json.loads(chain.records[-1].text)
    change(body)
    chain.records[-1] = Record(canonical(body))
    return chain


def test_exit_codes(tmp_path: Path, chain: Written) -> None:
    def unknown(body: Any) -> None:
        body["mechanism"] = {"kind": "magic"}

    run("verify", _exported(tmp_path / "1", _changed(chain, _richer)), code=1)
    chain = written_by(rz.GdpResidueFilter(1.0), [m.Laplace(4.0)])
    assert "undecided" in run("verify", _exported(tmp_path / "2", _changed(chain, unknown)), code=7)


def test_bad_input(tmp_path: Path, chain: Written) -> None:
    export = _exported(tmp_path / "e.jsonl", chain)
    assert "there is no file" in refusal("verify", str(tmp_path / "none"))
    (tmp_path / "empty").write_text("")
    assert "no records" in refusal("verify", str(tmp_path / "empty"))
    assert "jobs" in refusal("verify", export, "--jobs", "0")
    assert "--report" in refusal("verify", export, "--sign", "key.pem")
    assert "--since" in refusal("verify", export, "--since", str(tmp_path / "none"))
    assert "SEQ" in refusal("verify", export, "--expect-head", "b=x:y")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("RESIDUA_STORE", "RESIDUA_ANCHOR"):
        monkeypatch.delenv(variable, raising=False)
    with rz.open_ledger(tmp_path / "budgets.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    return tmp_path / "budgets.db"


@pytest.mark.parametrize("named", ["nothere", "sqlite:///none.db", "sqlite:///other.db"])
def test_an_anchor_that_is_named_must_be_there(
    store: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rz.open_ledger("apart.db", anchor="sqlite:///other.db") as other:
        other.create_budget("b", rz.PureFilter(1.0))
    assert named.rpartition("/")[2] in refusal("verify", str(store), "--anchor", named)
    monkeypatch.setenv("RESIDUA_ANCHOR", named)
    assert named.rpartition("/")[2] in refusal("verify", str(store))


def test_a_report_says_first_what_the_chains_were_held_against(store: Path) -> None:
    with rz.open_ledger(store) as ledger:
        given = ("--expect-head", ledger.budget("b").head)
    copy = store.with_name("copy.db")
    copy.write_bytes(store.read_bytes())
    for path, more, held, said in (
        (store, (), ["anchor"], "verified against the anchor"),
        (store, given, ["anchor", "given heads"], "verified against the anchor and the given"),
        (copy, given, ["given heads"], "verified against the given heads"),
        (copy, (), [], "truncation was not checked (no anchor or receipt given)"),
    ):
        assert run_json("verify", str(path), *more)["held_against"] == held
        text = run("verify", str(path), *more)
        assert text.splitlines()[1].startswith(said)
        assert ("Truncation was not checked" in text) == (not held)


def test_without_an_argument_it_is_the_store_of_the_other_commands(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "1 proven" in run("verify")
    store.rename(store.with_name("elsewhere.db"))
    refusal("verify")
    monkeypatch.setenv("RESIDUA_STORE", "sqlite:///elsewhere.db")
    assert "1 proven" in run("verify")
