"""The numbers that are shown never contradict each other, over every filter and random spends.

Every text is parsed as a reader would: reasons of checks, spends, holds and commits, the history,
what `remaining` says, and the details of a budget's balance.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from effort import tries
from filters.catalogue import CATALOGUE, DESCRIBED
from residua import mechanisms as m
from residua.filters.balance import Detail, percent_words
from residua.service.api.values import decision_to_dict

pytestmark = pytest.mark.needs("sqlalchemy")

RELATION = "add-remove"
ODD: dict[str, Callable[[], rz.Filter]] = {
    "pure, odd": lambda: rz.PureFilter(1.23456789),
    "basic, odd": lambda: rz.BasicFilter(0.7654321987, 1.2345678e-5),
    "gdp_residue, odd": lambda: rz.GdpResidueFilter(0.8765432),
    "approximate_zcdp, odd": lambda: rz.ApproximateZcdpFilter(0.7, 1e-5, 3e-6),
    "renyi_curve, long": lambda: rz.RenyiCurveFilter({a: a / 17 for a in (2, 3, 5, 8, 16, 32)}),
}
"""Capacities that are no short decimals, and more units than a reason names."""
FILTERS = {
    **{name: CATALOGUE[name].make for name in DESCRIBED if name != "natural"},
    **ODD,
}
"""The natural filter keeps a composition."""
GRIDS = ("menu", "auto")
NO_UNITS = ("auto",)
IN_OTHER_UNITS = (*GRIDS, "plan", "union", "target_residue", "target_residue with reserve")
"""What a query costs there is said in levels, as a part of the plan, by component, or in mu²."""
SIZES = st.integers(1, 400_000).map(lambda n: n / 1e6) | st.sampled_from(
    [1e-7, 1 / 3, 0.0123456789]
)
FEW = st.sampled_from([0.05, 0.123457, 0.2])
"""For filters that lay out tables for what they are asked first."""
QUERIES: tuple[Callable[[float], m.Mechanism], ...] = (
    lambda size: m.PureDp(eps=size, relation=RELATION),
    lambda size: m.Laplace(scale=1.0 / size),
    lambda size: m.Gaussian(sigma=1.0 / size),
)
NUMBER = r"(< )?(\d[\d.]*(?:e[+-]\d+)?)"
VERBS = ["spend", "spend", "spend", "reserve", "commit", "refusal", "rest"]


@contextmanager
def opened() -> Iterator[rz.Ledger]:
    with tempfile.TemporaryDirectory() as home, rz.open_ledger(Path(home) / "b.db") as ledger:
        yield ledger


def parsed(text: str, units: list[str]) -> dict[str, Decimal]:
    """The numbers of a text by unit; what is less than a last digit adds nothing."""
    found = {}
    for unit in units:
        match = re.search(rf"(?:^|, | and |\s|\(){re.escape(unit)} {NUMBER}", text)
        if match:
            found[unit] = Decimal(0) if match[1] else Decimal(match[2])
    return found


def cost_in(reason: str, units: list[str]) -> dict[str, Decimal]:
    found = re.search(r"admitted: .* costs (.*?)(?:;|$)", reason)
    assert found is not None, reason
    return parsed(found[1], units)


class Reader:
    """Someone who reads what is shown of one budget, and adds it up."""

    def __init__(self, ledger: rz.Ledger, kind: str, name: str = "b"):
        self.ledger, self.kind, self.name = ledger, kind, name
        self.units = [one.unit for one in self.details()]
        self.holds: list[Any] = []
        assert self.units or kind in NO_UNITS

    def left(self) -> dict[str, Decimal]:
        return {one.unit: Decimal(repr(one.left)) for one in self.details()}

    def share(self) -> float:
        balance = self.ledger.budget(self.name).balance
        assert balance is not None
        return balance.share

    def details(self) -> tuple[Detail, ...]:
        balance = self.ledger.budget(self.name).balance
        assert balance is not None
        return balance.details

    def ask(self, verb: str, query: m.Mechanism) -> None:
        if verb == "commit":
            if self.holds:
                assert self.holds.pop(0).commit().admitted
        elif verb == "refusal":
            self.refused(query)
        else:
            if verb == "rest":
                most = self.ledger.check(self.name, type(query)(**_seven(query))).largest
                verb, query = "spend", query if most is None else most
            self.spent(verb, query)
        self.everything_adds_up()

    def spent(self, verb: str, query: m.Mechanism) -> None:
        before, checked = self.left(), self.ledger.check(self.name, query)
        assert decision_to_dict(checked)["remaining"]["text"] == self.words_left()
        assert checked.balance == self.ledger.budget(self.name).balance
        receipt = getattr(self.ledger, verb)(self.name, query)
        if verb == "spend":
            assert receipt.admitted == checked.admitted
        assert decision_to_dict(receipt)["remaining"]["text"] == self.words_left()
        assert receipt.balance == self.ledger.budget(self.name).balance
        if not receipt.admitted:
            self.refusal_agrees(receipt, query, before)
            return
        if verb == "reserve":
            self.holds.append(receipt)
        if self.kind not in IN_OTHER_UNITS:
            cost = cost_in(receipt.reason, self.units)
            assert cost and (verb == "reserve" or cost == cost_in(checked.reason, self.units))
            if before and not self.ledger.budget(self.name).holds:
                assert all(cost[unit] <= before[unit] for unit in cost), receipt.reason
                after = self.left()
                assert all(cost[unit] == before[unit] - after[unit] for unit in cost)

    def words_left(self) -> str:
        return self.ledger.budget(self.name).remaining_words

    def refused(self, query: m.Mechanism) -> None:
        before = self.left()
        refusal = self.ledger.spend(self.name, type(query)(**_seven(query)))
        assert not refusal.admitted
        self.refusal_agrees(refusal, query, before)

    def refusal_agrees(self, refusal: Any, query: m.Mechanism, before: dict[str, Decimal]) -> None:
        needs, left, _ = refusal.reason.rsplit("; ", 2)
        assert before == {} or f"{percent_words(self.share())} " in left, refusal.reason
        if self.kind in GRIDS:
            alone = re.search(rf"needs eps {NUMBER}", needs)
            there = re.search(rf"pure_dp\({NUMBER}\)", left)
            assert not alone or not there or Decimal(alone[2]) > Decimal(there[2]), refusal.reason
        elif self.kind == "union":
            one = re.search(rf"needs (\S+) {NUMBER}.*, with \1 {NUMBER}", needs)
            assert not one or Decimal(one[3]) > Decimal(one[5]), refusal.reason
        elif " needs " in needs and "by itself" not in needs:
            needed = parsed(needs.partition(" needs ")[2], self.units)
            said = parsed(left, self.units)
            if len(self.units) > 4:
                (beside,) = re.findall(rf"rho {NUMBER}, of which {NUMBER} is left", needs)[:1]
                assert Decimal(beside[1]) > Decimal(beside[3]), refusal.reason
            else:
                assert set(said) == set(self.units) >= set(needed)
                assert any(needed[unit] > said[unit] for unit in needed), refusal.reason
                assert before == {} or said == before, refusal.reason
        if refusal.largest is not None:
            assert self.ledger.check(self.name, refusal.largest).admitted, refusal.reason

    def everything_adds_up(self) -> None:
        budget = self.ledger.budget(self.name)
        costs: dict[str, Decimal] = dict.fromkeys(self.units, Decimal(0))
        named: set[str] = set()
        with localcontext(prec=400):
            for record in self.ledger.history(self.name):
                if record.type in ("spend", "commit") and record.admitted:
                    for unit, cost in cost_in(str(record.reason), self.units).items():
                        costs[unit] += cost
                        named.add(unit)
            for one in self.details():
                spent = Decimal(repr(one.capacity)) - Decimal(repr(one.left))
                if one.unit in named and one.live:
                    assert costs[one.unit] <= spent, (one, costs)
                    assert budget.holds or budget.parent or costs[one.unit] == spent, (one, costs)
        if self.kind not in IN_OTHER_UNITS and any(costs.values()):
            assert named


def _seven(query: m.Mechanism) -> dict[str, Any]:
    """The same query, so large that it is refused."""
    given = {name: value for name, value in query.to_dict().items() if name != "kind"}
    large = {"eps": 7.0, "scale": 0.1, "sigma": 0.1}
    return {name: large.get(name, value) for name, value in given.items()}


@pytest.mark.parametrize("kind", FILTERS)
@settings(max_examples=tries(5))
@given(data=st.data())
def test_what_is_shown_adds_up(kind: str, data: st.DataObject) -> None:
    sizes = FEW if kind in IN_OTHER_UNITS else SIZES
    query = st.builds(lambda make, size: make(size), st.sampled_from(QUERIES), sizes)
    asked = data.draw(st.lists(st.tuples(st.sampled_from(VERBS), query), max_size=6))
    with opened() as ledger:
        ledger.create_budget("b", FILTERS[kind]())
        reader = Reader(ledger, kind)
        for verb, one in asked:
            reader.ask(verb, one)


@given(
    st.lists(SIZES, min_size=1, max_size=5),
    st.sampled_from(QUERIES[:2]),
    st.sampled_from([1.0, 10.0, 1 / 3]),
)
@settings(max_examples=tries(10))
def test_a_cap_and_a_quota_each_record_their_own_cost(sizes, make, cap):
    """Digits end elsewhere in a larger budget: a history adds up to its own budget's numbers."""
    with opened() as ledger:
        ledger.create_budget("cap", rz.PureFilter(cap))
        ledger.create_budget("quota", rz.PureFilter(0.7654321), parent="cap")
        readers = [Reader(ledger, "pure", name) for name in ("cap", "quota")]
        for size in sizes:
            ledger.spend("quota", make(size))
            for reader in readers:
                reader.everything_adds_up()


@pytest.mark.parametrize("kind", [name for name in FILTERS if name not in IN_OTHER_UNITS])
@settings(max_examples=tries(6))
@given(data=st.data())
def test_a_filter_by_itself_says_the_same(kind: str, data: st.DataObject) -> None:
    """Its reasons have what is left beside the cost."""
    filter = FILTERS[kind]()
    units = [one.unit for one in filter.balance.details]
    whole = {one.unit: Decimal(repr(one.capacity)) for one in filter.balance.details}
    total = dict.fromkeys(units, Decimal(0))
    before = None
    for size in data.draw(st.lists(SIZES, min_size=1, max_size=5)):
        decision = filter.request(data.draw(st.sampled_from(QUERIES))(size))
        if not decision.admitted:
            continue
        cost = cost_in(decision.reason, units)
        left = parsed(decision.reason.split("; ")[1], units)
        assert set(cost) == set(left) <= set(whole)
        assert f"; {percent_words(filter.balance.share)} " in decision.reason
        with localcontext(prec=400):
            for unit in cost:
                total[unit] += cost[unit]
                assert total[unit] + left[unit] == whole[unit], decision.reason
                assert cost[unit] <= (whole if before is None else before)[unit]
        before = left
