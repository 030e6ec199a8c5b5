"""Groups and holds over several chains: what was changed in some of them is found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import residua as rz
from residua import mechanisms as m
from residua.verify import Report, verify_records
from verify.forging import Bodies, bodies_of, of_type, only, relinked

pytestmark = pytest.mark.needs("flint")


def _ledger(tmp_path: Path, **windows: float | None) -> rz.Ledger:
    ledger = rz.open_ledger(tmp_path / "a.db", principal="me")
    for name in ("a", "b"):
        ledger.create_budget(name, rz.PureFilter(1.0), window=windows.get(name))
    return ledger


def _report(bodies: Bodies) -> Report:
    return verify_records(relinked(bodies), {})


def _problems(bodies: Bodies) -> list[tuple[str, int | None, str]]:
    report = _report(bodies)
    assert report.ok or report.problems, report.text
    return [(each.budget, each.seq, each.what) for each in report.problems]


@pytest.mark.parametrize("end", ["commit", "cancel"])
def test_what_ends_a_hold_names_all_its_budgets(tmp_path: Path, end: str) -> None:
    """A commit of one of two budgets would leave the other uncharged."""
    with _ledger(tmp_path) as ledger:
        hold = ledger.reserve(["a", "b"], m.PureDp(0.75))
        if end == "commit":
            ledger.commit(hold.id)
        else:
            ledger.cancel(hold.id, "not needed")
        bodies = bodies_of(ledger)
    assert _report(bodies).ok
    bodies["b"].pop()
    only(bodies["a"][-1], "a")
    assert _problems(bodies) == [("a", 2, f"the {end} lacks 'b', which is a budget of the hold")]


def test_a_commit_does_not_reach_other_budgets_than_its_hold(tmp_path: Path) -> None:
    with _ledger(tmp_path) as ledger:
        ledger.commit(ledger.reserve(["a", "b"], m.PureDp(0.75)).id)
        bodies = bodies_of(ledger)
    del bodies["b"][1]
    only(bodies["a"][1], "a")
    bodies["a"][2]["group"][1]["seq"] = bodies["b"][1]["group"][1]["seq"] = 1
    found = _problems(bodies)
    for name, seq in (("a", 2), ("b", 1)):
        assert (name, seq, "the commit names 'b', which is not a budget of the hold") in found


def test_an_id_of_a_hold_belongs_to_one_request(tmp_path: Path) -> None:
    with _ledger(tmp_path) as ledger:
        ledger.reserve("a", m.PureDp(0.75))
        ledger.reserve("b", m.PureDp(0.25))
        bodies = bodies_of(ledger)
    assert _report(bodies).ok
    bodies["b"][1]["hold"] = bodies["a"][1]["hold"]
    ((name, seq, what),) = _problems(bodies)
    assert (name, seq) == ("b", 1) and "is that of another request, too" in what


def test_the_window_of_another_budget_does_not_end_a_hold(tmp_path: Path) -> None:
    """Not even where holds of both budgets are given the same id."""
    with _ledger(tmp_path, b=1.0) as ledger:
        hold = ledger.reserve("a", m.PureDp(0.75), ttl=600)
        other = ledger.reserve("b", m.PureDp(0.25), ttl=600)
        ledger.cancel(hold.id, "not needed")
        time.sleep(1.05)
        ledger.spend("b", m.PureDp(0.5))
        bodies = bodies_of(ledger)
    assert _report(bodies).ok
    mine, theirs = of_type(bodies, "a", "cancel"), of_type(bodies, "b", "expire")
    mine |= {"type": "expire", "by": theirs["by"], "reason": theirs["reason"]}
    mine["group"] = theirs["group"] = [*mine["group"], *theirs["group"]]
    for chain in bodies.values():
        for body in chain:
            if body.get("hold") == other.id:
                body["hold"] = hold.id
    assert any("is that of another request" in what for *_, what in _problems(bodies))


def test_a_window_ends_the_holds_of_its_budget_in_others_too(tmp_path: Path) -> None:
    with _ledger(tmp_path, b=1.0) as ledger:
        ledger.reserve(["a", "b"], m.PureDp(0.25), ttl=600)
        time.sleep(1.05)
        ledger.spend("b", m.PureDp(0.5))
        bodies = bodies_of(ledger)
    assert [body["type"] for body in bodies["a"]] == ["create", "hold", "expire"]
    assert _report(bodies).ok
    bodies["b"] = bodies["b"][:2]
    only(bodies["a"][-1], "a")
    assert {what for *_, what in _problems(bodies)} >= {
        "the expire lacks 'b', which is a budget of the hold"
    }


