"""Holds that set amounts aside: what suffices for each, and whether the sum of all is left."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.verify import Report, verify_records
from verify.written_chains import Written, is_released, plain, rehashed


def _hold(chain: Written, hold: str, eps: float, holds: list[Any]) -> None:
    """A hold whose record has these statements."""
    state = plain(chain.filter, chain.state)
    query = m.PureDp(eps)
    chain.held[hold] = query
    fields = chain.asking(query, f"h-{hold}", [chain.place], True)
    more = {"before": state, "after": state, "tables": {}, "hold": hold, "holds": holds}
    chain.append("hold", {**fields, **more, "expires": "2026-01-07T00:00:00.000Z"})


def _takes(*amounts: str) -> list[Any]:
    return [{"takes": [amount]} for amount in amounts]


def _report(chain: Written, changed: dict[int, dict[str, Any]]) -> Report:
    return verify_records({"b": rehashed(chain, changed)}, {})


def _two_holds() -> Written:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", 0.1, _takes("0.1"))
    _hold(chain, "two", 0.2, _takes("0.2"))
    chain.spend(m.PureDp(0.7))
    return chain


def test_what_is_set_aside_is_proven_once_and_added_up() -> None:
    report = _report(_two_holds(), {3: {"holds": []}})
    assert report.ok and report.proven == 4, report.text


@pytest.mark.parametrize("eps", [0.70001, 0.75, 0.8])
def test_a_spend_that_leaves_less_than_is_set_aside_is_refuted(eps: float) -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", 0.1, _takes("0.1"))
    _hold(chain, "two", 0.2, _takes("0.2"))
    chain.spend(m.PureDp(eps))
    step = _report(chain, {3: {"holds": []}}).steps[-1]
    assert step.verdict == "refuted" and "the open holds do not fit" in step.reason
    is_released(chain, "two")
    chain.spend(m.PureDp(0.001))
    assert _report(chain, {3: {"holds": []}, 5: {"holds": []}}).steps[-1].verdict == "proven"


def test_too_little_set_aside_is_refuted_and_more_is_not() -> None:
    chain = _two_holds()
    least = _report(chain, {2: {"holds": _takes("0.1999")}, 3: {"holds": []}})
    assert least.steps[2].verdict == "refuted" and "does not fit" in least.steps[2].reason
    more = _report(chain, {2: {"holds": _takes("0.21")}, 3: {"holds": []}})
    assert more.steps[2].verdict == "proven" and more.steps[3].verdict == "refuted"


@pytest.mark.parametrize(
    "stated",
    [
        _takes("0.1", "0.1"),
        [],
        [{"takes": []}],
        [{"takes": ["-0.1"]}],
        [{"takes": "0.1"}],
        [{"takes": [0.1]}],
        [{"takes": ["0.1"], "left": ["0.9"]}],
        [{"takes": ["0.1"], "component": None}],
        [{"left": ["0.9"], "takes": ["0.1"], "component": 0}],
    ],
)
def test_what_no_ledger_states_is_a_problem(stated: list[Any]) -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", 0.1, stated)
    report = verify_records({"b": chain.texts()}, {})
    assert any(problem.seq == 1 for problem in report.problems), report.text


@pytest.mark.parametrize("takes", [["0.1", "0.1"], ["1/0"]])
def test_amounts_of_another_form_are_never_proven(takes: list[str]) -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", 0.1, [{"takes": takes}])
    assert not verify_records({"b": chain.texts()}, {}).ok


def test_all_holds_set_aside_in_one_component() -> None:
    chain = _two_holds()
    report = _report(chain, {2: {"holds": [{"component": 0, "takes": ["0.2"]}]}})
    assert any("one component" in problem.what for problem in report.problems)


def _union() -> Written:
    union = rz.UnionFilter((rz.PureFilter(1.0), rz.BasicFilter(1.0, 1e-6)), eps=1.0)
    chain = Written(union)
    _hold(chain, "one", 0.1, [{"component": 0, "takes": ["0.1"]}])
    return chain


def test_a_live_component_holds_for_the_union() -> None:
    chain = _union()
    chain.spend(m.PureDp(0.9))
    report = _report(chain, {2: {"holds": []}})
    assert report.ok and report.proven == 3, report.text


def test_a_component_that_is_stopped_or_is_none_holds_nothing() -> None:
    chain = _union()
    chain.spend(m.ApproximateDp(0.1, 1e-7))
    step = _report(chain, {2: {"holds": []}}).steps[-1]
    assert step.verdict == "refuted" and "component 0 is stopped" in step.reason
    moved = [{"component": 1, "takes": ["0.1", "0"]}]
    assert _report(chain, {2: {"holds": moved}}).ok
    for place in (2, -1, True, "0", [0]):
        other = [{"component": place, "takes": ["0.1"]}]
        assert _report(chain, {1: {"holds": other}}).steps[1].verdict == "refuted", place


def test_costs_that_depend_on_the_state_are_not_added_up() -> None:
    chain = Written(rz.GdpResidueFilter(1.0))
    _hold(chain, "one", 0.1, _takes("0.5"))
    assert verify_records({"b": chain.texts()}, {}).steps[1].verdict == "undecided"


def test_a_sum_of_many_fractions_is_as_long_as_it_is(tmp_path: Path) -> None:
    """More digits than Python writes in decimal ended the verifier."""
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("b", rz.GdpFilter(3.0))
    for n in range(50):
        parts = tuple(m.Gaussian(sigma=1000.0 + math.sqrt(4 * n + k)) for k in range(4))
        ledger.reserve("b", m.Composed(parts))
    assert ledger.verify().ok


def test_an_amount_beyond_floats_is_refuted() -> None:
    chain = Written(rz.PureFilter(1.0))
    _hold(chain, "one", 0.1, _takes("9" * 1400))
    step = _report(chain, {}).steps[-1]
    assert step.verdict == "refuted" and "1e+1400 is set aside" in step.reason


def test_no_more_holds_are_open_than_a_ledger_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    from residua.verify.chains import holds

    monkeypatch.setattr(holds, "MOST_HOLDS", 1)
    report = _report(_two_holds(), {3: {"holds": []}})
    assert "2 holds are open, at most 1 may be" in report.problems[0].what
