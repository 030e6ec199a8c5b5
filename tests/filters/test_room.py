"""Sums of amounts beside what is left: whatever is taken first, the others still fit."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from residua.filters import amounts

_DECIMALS = st.integers(1, 10**9).map(lambda n: Fraction(n, 10**10))
_LONG = st.tuples(st.integers(1, 2**600), st.integers(2**600, 2**620)).map(lambda t: Fraction(*t))
_COSTS = st.lists(st.one_of(_DECIMALS, _LONG), max_size=6)


@given(costs=_COSTS, more=st.integers(-3, 8), order=st.randoms())
def test_what_has_room_can_be_taken_in_any_order(
    costs: list[Fraction], more: int, order: object
) -> None:
    """Near the very end of what is left, where rounding would show."""
    aside = [amounts.shorten_up(cost) for cost in costs]
    assert all(a >= c for a, c in zip(aside, costs, strict=True))
    left = amounts.shorten(max(sum(aside, Fraction(0)) + Fraction(more, 2**512), Fraction(0)))
    if not amounts.have_room(left, aside):
        return
    together = list(zip(costs, aside, strict=True))
    order.shuffle(together)  # type: ignore[attr-defined]
    while together:
        cost, _ = together.pop()
        after = amounts.subtract(left, cost)
        assert after is not None
        left = after
        assert amounts.have_room(left, [a for _, a in together])


@given(st.lists(_DECIMALS, max_size=9))
def test_decimals_are_added_up_exactly(costs: list[Fraction]) -> None:
    whole = sum(costs, Fraction(0))
    assert amounts.have_room(whole, costs)
    if whole:
        assert not amounts.have_room(whole - Fraction(1, 10**30), costs)
