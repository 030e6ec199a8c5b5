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


def test_nothing_follows_a_retirement(tmp_path: Path) -> None:
    """Not even a second one, nor a record that lets the budget go on."""
    with _ledger(tmp_path) as ledger:
        ledger.spend("a", m.PureDp(0.5))
        ledger.retire("a", "done")
        bodies = bodies_of(ledger)
    assert _report(bodies).ok
    last = bodies["a"][-1]
    resume = {name: value for name, value in last.items() if name != "below"}
    for more in (last, {**last, "type": "recover"}, {**resume, "type": "resume"}):
        forged = {**bodies, "a": [*bodies["a"], more]}
        assert _problems(forged) == [("a", 3, f"the budget was retired before this {more['type']}")]


def test_no_window_begins_under_a_retired_budget(tmp_path: Path) -> None:
    """Neither in the ledger, nor in records that verify."""
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("cap", rz.PureFilter(8.0))
        ledger.create_budget("q", rz.PureFilter(1.0), parent="cap", window=1.0)
        time.sleep(1.05)
        ledger.spend("q", m.PureDp(0.5))
        ledger.retire("cap", "done")
        before = bodies_of(ledger)
        time.sleep(1.05)
        for ask in (lambda: ledger.spend("q", m.PureDp(0.5)), lambda: ledger.refresh("q")):
            with pytest.raises(rz.RetiredBudget, match="'cap'"):
                ask()
        assert ledger.budget("q").generation == 1
        bodies = bodies_of(ledger)
        assert bodies == before and ledger.verify().ok
    refresh = {**of_type(bodies, "q", "refresh"), "generation": 2}
    bodies["q"].append({**refresh, "time": "2099-01-01T00:00:00.000Z"})
    assert _problems(bodies) == [("q", 3, "a refresh after 'cap' above it was retired")]


@pytest.mark.parametrize(
    ("type", "field", "value"),
    [
        ("spend", "request", 1e-300),
        ("spend", "request", None),
        ("create", "library", 1.5),
        ("create", "library", []),
        ("hold", "hold", 5),
        ("refresh", "generation", True),
        ("refresh", "generation", 1.0),
    ],
)
def test_fields_have_the_types_that_a_ledger_writes(
    tmp_path: Path, type: str, field: str, value: object
) -> None:
    with _ledger(tmp_path, a=1.0) as ledger:
        time.sleep(1.05)
        ledger.spend("a", m.PureDp(0.125))
        ledger.reserve("a", m.PureDp(0.125))
        bodies = bodies_of(ledger)
    assert _report(bodies).ok
    body = of_type(bodies, "a", type)
    body[field] = value
    ((_, seq, what),) = _problems(bodies)
    assert seq == bodies["a"].index(body) and field in what


def test_records_of_a_group_assume_the_relation_alike(tmp_path: Path) -> None:
    with _ledger(tmp_path) as ledger:
        hold = ledger.reserve(["a", "b"], m.PureDp(0.125))
        ledger.commit(hold.id)
        bodies = bodies_of(ledger)
    bodies["b"][1]["assumed"] = True
    found = _problems(bodies)
    assert ("a", 1, "the record 'b' 1 of the group belongs to a different request") in found
    assert ("b", 2, "the commit does not assume the relation as its hold does") in found


def test_members_of_a_group_are_numbered_by_integers(tmp_path: Path) -> None:
    with _ledger(tmp_path) as ledger:
        ledger.spend("a", m.PureDp(0.125))
        bodies = bodies_of(ledger)
    bodies["a"][1]["group"][0]["seq"] = 1.0
    assert _problems(bodies) == [
        ("a", 1, "a member of the group is not a budget with its record"),
        ("a", 1, "the record is not in its own group"),
    ]


def test_a_refusal_names_a_budget_of_its_group(tmp_path: Path) -> None:
    with _ledger(tmp_path) as ledger:
        ledger.spend("a", m.PureDp(2.0))
        bodies = bodies_of(ledger)
    for value in ("b", "zz", 5, []):
        bodies["a"][1]["binding"] = value
        ((*_, what),) = _problems(bodies)
        assert what.startswith("binding must be a budget of the group")
