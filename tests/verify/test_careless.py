"""A ledger that forgets a rule writes chains that are whole, and the verifier refutes them.

The same random requests go to an honest ledger and to one without the rule. Where both do the same,
everything is proven; where the careless one does something that the honest one refuses, never.
"""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.errors import ResiduaError

pytestmark = [pytest.mark.needs("flint"), pytest.mark.needs("sqlalchemy")]

Request = Callable[[rz.Ledger], Any]


def _did(ledger: rz.Ledger, request: Request) -> bool:
    """Whether a request was done, and admitted where it is decided on."""
    try:
        answer = request(ledger)
    except (ResiduaError, LookupError):
        return False
    return getattr(answer, "admitted", True) is True


def _open(directory: Path, name: str) -> rz.Ledger:
    return rz.open_ledger(f"sqlite:///{directory}/{name}.db", principal="me")


# -- retirement ---------------------------------------------------------------------------------

UNDER = ("whole", "north", "south", "quota", "far north", "deep")


def _family(ledger: rz.Ledger) -> None:
    ledger.create_budget("whole", rz.PureFilter(8.0))
    ledger.create_budget("north", rz.PureFilter(8.0), parent="whole", partition="north")
    ledger.create_budget("south", rz.PureFilter(8.0), parent="whole", partition="south")
    ledger.create_budget("quota", rz.PureFilter(8.0), parent="south")
    ledger.create_budget("far north", rz.PureFilter(8.0), parent="north", partition="far")
    ledger.create_budget("deep", rz.PureFilter(8.0), parent="far north", partition="deep")


def _asked_of_family(draw: random.Random, number: int) -> Request:
    name, key = draw.choice(UNDER), f"key {number}"
    kind = draw.choice(("spend", "spend", "spend", "hold", "retire", "create", "commit", "cancel"))
    if kind == "spend":
        return lambda ledger: ledger.spend(name, m.PureDp(0.25), key=key)
    if kind == "hold":
        return lambda ledger: ledger.reserve(name, m.PureDp(0.25), key=key)
    if kind == "retire":
        return lambda ledger: ledger.retire(name, "done")
    if kind == "create":
        label = draw.choice((None, key))
        return lambda ledger: ledger.create_budget(
            key, rz.PureFilter(0.5), parent=name, partition=label
        )
    if kind == "commit":
        return lambda ledger: ledger.commit(ledger.holds()[0].id, key=key)
    return lambda ledger: ledger.cancel(ledger.holds()[0].id)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_proven_that_follows_a_retirement_above(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from residua.ledger.operations.unit_of_work import UnitOfWork

    draw = random.Random(seed)
    honest, careless = _open(tmp_path, "honest"), _open(tmp_path, "careless")
    closed_by = UnitOfWork.closed_by

    def closed_itself(page: UnitOfWork, name: str) -> Any:
        entry = page.entry(name)
        return entry if entry.retired else None

    _family(honest)
    _family(careless)
    for number in range(30):
        request = _asked_of_family(draw, number)
        done = _did(honest, request)
        with monkeypatch.context() as patch:
            patch.setattr(UnitOfWork, "closed_by", closed_itself)
            assert not done or _did(careless, request)
            wrong = not done and _did(careless, request)
        assert UnitOfWork.closed_by is closed_by
        assert not wrong or careless.verify().exit_code == 1, number
        if wrong:
            break
    else:
        assert careless.verify().ok
    report = honest.verify()
    assert report.ok, report.text


def test_a_retirement_states_where_each_budget_under_it_ended(tmp_path: Path) -> None:
    ledger = _open(tmp_path, "ledger")
    _family(ledger)
    ledger.spend("quota", m.PureDp(0.25))
    ledger.retire("south", "done")
    ledger.spend("deep", m.PureDp(0.25))
    ledger.retire("whole", "done")
    assert ledger.history("south")[-1].body["below"] == {"quota": 1}
    expected = {"north": 0, "south": 2, "quota": 1, "far north": 0, "deep": 1}
    assert ledger.history("whole")[-1].body["below"] == expected


def test_recovery_misses_what_a_retirement_states(tmp_path: Path) -> None:
    ledger = _open(tmp_path, "ledger")
    _family(ledger)
    ledger.spend("deep", m.PureDp(0.25))
    ledger.retire("whole", "done")
    ledger.export(tmp_path / "all.jsonl")
    heads = {each.name: each.head for each in ledger.budgets()}
    lines = (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)
    whole = _open(tmp_path, "whole")
    whole.recover(export=io.StringIO("".join(lines)), heads=heads)
    assert whole.verify().ok

    kept = [each for each in lines if '\\"type\\":\\"spend\\"' not in each]
    assert len(kept) == len(lines) - 1
    heads["deep"] = ledger.history("deep")[0].hash
    cut = _open(tmp_path, "cut")
    with pytest.raises(rz.ReadOnlyLedger, match="before 'whole' was retired"):
        cut.recover(export=io.StringIO("".join(kept)), heads=heads)
    assert cut.recover(export=io.StringIO("".join(kept)), heads=heads, retire=True).retired
    report = cut.verify()
    assert report.ok, report.text


# -- holds --------------------------------------------------------------------------------------

FILTERS: dict[str, tuple[rz.Filter, list[m.Mechanism]]] = {
    "pure": (rz.PureFilter(1.0), [m.PureDp(0.25), m.Laplace(5.0)]),
    "basic": (rz.BasicFilter(1.0, 1e-4), [m.PureDp(0.25), m.ApproximateDp(0.1, 3e-5)]),
    "renyi_curve": (
        rz.RenyiCurveFilter({2.0: 0.1, 8.0: 0.5}),
        [m.Gaussian(sigma=6.0), m.Laplace(6.0)],
    ),
    "zcdp": (rz.ZcdpFilter(0.1), [m.Gaussian(sigma=5.0), m.Laplace(4.0)]),
    "gdp": (rz.GdpFilter(1.0), [m.Gaussian(sigma=2.0), m.PureDp(0.5)]),
    "gdp_residue": (
        rz.GdpResidueFilter(1.0),
        [m.Gaussian(sigma=2.0), m.PureDp(0.5), m.Laplace(2.5)],
    ),
    "approximate_gdp_residue": (
        rz.ApproximateGdpResidueFilter(1.0, 1e-6),
        [m.Gaussian(sigma=2.0), m.PureDp(0.5), m.ApproximateDp(0.4, 3e-7)],
    ),
    "renyi_commit": (
        rz.RenyiCommitFilter(1.0, 1e-3, 8.0),
        [m.Gaussian(sigma=10.0), m.Laplace(10.0)],
    ),
    "plan": (rz.PlanFilter(1.0, 1e-6, [m.Laplace(8.0)] * 4), [m.Laplace(8.0), m.PureDp(0.1)]),
    "natural": (rz.NaturalFilter(rz.pure_dp(1.0)), [m.PureDp(0.25), m.PureDp(0.2)]),
    "menu": (
        rz.MenuFilter(1.0, 1e-6, [rz.pure_dp(0.25), rz.gaussian(sigma=10.0)]),
        [m.PureDp(0.25), m.Gaussian(sigma=10.0)],
    ),
    "auto": (rz.AutoFilter(1.0, 1e-6), [m.PureDp(0.25), m.Gaussian(sigma=10.0)]),
    "additive_profile": (rz.AdditiveProfileFilter(1.0, 1e-6, 10), [m.PureDp(0.05), m.PureDp(0.1)]),
    "union": (
        rz.UnionFilter((rz.PureFilter(1.0), rz.GdpResidueFilter(0.2), rz.ZcdpFilter(0.01))),
        [m.PureDp(0.25), m.Gaussian(sigma=15.0), m.Zcdp(0.002, relation="add-remove")],
    ),
}


def _asked_with_holds(draw: random.Random, queries: list[m.Mechanism], number: int) -> Request:
    query, key, place = draw.choice(queries), f"key {number}", draw.randrange(3)
    kind = draw.choice(("spend", "spend", "hold", "hold", "hold", "commit", "commit", "cancel"))
    if kind == "spend":
        return lambda ledger: ledger.spend("b", query, key=key)
    if kind == "hold":
        return lambda ledger: ledger.reserve("b", query, key=key)
    if kind == "commit":
        return lambda ledger: ledger.commit(ledger.holds()[place].id, key=key)
    return lambda ledger: ledger.cancel(ledger.holds()[place].id)


def _stays(state: Any, filter: rz.Filter) -> Any:
    """A forger may state that a hold which does not fit takes nothing."""
    return state


def _starts_again(state: Any, filter: rz.Filter) -> Any:
    """Or that all is as at the beginning after it."""
    return filter.initial()


@pytest.mark.parametrize("forged", [_stays, _starts_again])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FILTERS)
def test_nothing_is_proven_that_leaves_no_room_for_holds(
    name: str, seed: int, forged: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from residua.ledger.domain import rules

    filter, queries = FILTERS[name]
    draw = random.Random(f"{name} {seed}")

    def fold(snapshot: Any, state: Any, asked: Any) -> Any:
        states = []
        for each in asked:
            decision = rules.decided(snapshot.filter, state, each.query, snapshot.relation)
            state = decision.state if decision.admitted else forged(state, snapshot.filter)
            states.append(state)
        return tuple(states)

    honest, careless = _open(tmp_path, "honest"), _open(tmp_path, "careless")
    for ledger in (honest, careless):
        ledger.create_budget("b", filter)
    for number in range(40):
        request = _asked_with_holds(draw, queries, number)
        done = _did(honest, request)
        with monkeypatch.context() as patch:
            patch.setattr(rules, "fold", fold)
            did = _did(careless, request)
        assert did or not done
        if did and not done:
            # A potential that is too high is not proven, and not refuted either.
            allowed = (1, 7) if name in ("menu", "auto") else (1,)
            assert careless.verify().exit_code in allowed, number
            break
    report = honest.verify()
    assert report.ok, report.text


def test_a_hold_expires_when_its_time_is_over_or_its_window_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from residua.ledger.operations import committer
    from residua.ledger.operations.requests import LEDGER
    from residua.ledger.operations.spending import Expire

    ledger = _open(tmp_path, "ledger")
    ledger.create_budget("cap", rz.PureFilter(8.0))
    ledger.create_budget("daily", rz.PureFilter(1.0), window=1.0)
    ledger.reserve(["cap", "daily"], m.PureDp(0.25), ttl=600.0)
    ledger.reserve(["cap", "daily"], m.PureDp(0.25), ttl=600.0)
    ledger.reserve("cap", m.PureDp(0.25), ttl=0.05)
    open_ = ledger.reserve("cap", m.PureDp(0.25), ttl=600.0)
    time.sleep(1.05)
    ledger.spend(["cap", "daily"], m.PureDp(0.25))
    kinds = [record.type for record in ledger.history("cap")]
    assert kinds.count("expire") == 3
    assert ledger.verify().ok
    with monkeypatch.context() as patch:
        patch.setattr(committer, "overdue", lambda page: [Expire(principal=LEDGER, id=open_.id)])
        ledger.spend("cap", m.PureDp(0.25))
    problems = ledger.verify().problems
    assert ["before its time is over" in problem.what for problem in problems] == [True]


def test_open_holds_are_taken_over_in_their_order(tmp_path: Path) -> None:
    ledger = _open(tmp_path, "ledger")
    ledger.create_budget("cap", rz.GdpResidueFilter(1.0))
    ledger.create_budget("quota", rz.PureFilter(2.0), parent="cap")
    for place, query in enumerate((m.Laplace(4.0), m.PureDp(0.3), m.Laplace(5.0))):
        assert ledger.reserve(("quota", "cap", "quota")[place], query).admitted
    ledger.export(tmp_path / "all.jsonl")
    heads = {each.name: each.head for each in ledger.budgets()}
    again = _open(tmp_path, "again")
    again.recover(export=tmp_path / "all.jsonl", heads=heads)
    assert again.spend("quota", m.Laplace(20.0)).admitted
    assert [again.commit(hold.id).admitted for hold in again.holds()[::-1]] == [True] * 3
    report = again.verify()
    assert report.ok, report.text
