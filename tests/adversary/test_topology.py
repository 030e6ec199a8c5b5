"""The lemmas behind gap amplification, on curves in exact rationals and on small groups."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest

from adversary.amplification import Span, find_link, kinks, regions
from adversary.games import query
from residua.adversary.finite import finite_atoms
from residua.pld.arithmetic.exact import ExactAtoms

PAIRS = range(40)


def pair(seed: int) -> tuple[ExactAtoms, ExactAtoms]:
    chance = random.Random(seed)
    one, two = (finite_atoms(query(chance, 3 + seed % 3), "above") for _ in range(2))
    return one, two


@pytest.mark.parametrize("seed", PAIRS)
def test_a_curve_bends_where_the_losses_are(seed: int) -> None:
    """`supp(h) = e^supp`: between the kinks the curve is straight, and at each it is not."""
    one, _ = pair(seed)
    stops = [Fraction(0), *kinks(one), 2 * kinks(one)[-1]]
    for left, here, right in zip(stops, stops[1:], stops[2:], strict=False):
        ends = (3 * left + here) / 4, (left + 3 * here) / 4
        assert sum(map(one.hockey_stick, ends)) == 2 * one.hockey_stick((left + here) / 2)
        step = min(here - left, right - here) / 2
        around = one.hockey_stick(here - step) + one.hockey_stick(here + step)
        assert around > 2 * one.hockey_stick(here)


@pytest.mark.parametrize("seed", PAIRS)
def test_a_region_ends_in_a_crossing_or_at_a_kink_of_the_other(seed: int) -> None:
    one, two = pair(seed)
    lower, upper, crossings = regions(one, two)
    for spans, support in ((lower, kinks(two)), (upper, kinks(one))):
        for end in {end for span in spans for end in span} - {Fraction(0), None}:
            assert end in crossings or end in support


@pytest.mark.parametrize("seed", PAIRS)
def test_a_curve_bends_inside_every_region_where_it_is_lower(seed: int) -> None:
    one, two = pair(seed)
    lower, upper, _ = regions(one, two)
    for spans, support in ((lower, kinks(one)), (upper, kinks(two))):
        for start, end in spans:
            if (start, end) != (Fraction(0), None):
                assert any(start < x and (end is None or x < end) for x in support)


@pytest.mark.parametrize("seed", PAIRS)
def test_a_link_to_the_closure_is_a_link(seed: int) -> None:
    """What meets an open interval and a closed one also meets both open ones, a little moved."""
    chance = random.Random(seed)

    def span() -> Span:
        low = Fraction(chance.randint(1, 8), chance.randint(1, 4))
        return low, low + Fraction(chance.randint(1, 4), 4)

    support = [Fraction(chance.randint(1, 6), chance.randint(1, 3)) for _ in range(3)]
    (a, b), (c, d) = span(), span()
    assert b is not None and d is not None
    closed = any(
        max(a / s, c / t) < min(b / s, d / t) or (b / s > c / t > a / s) or (b / s > d / t > a / s)
        for s, t in product(support, support)
        if s != t
    )
    assert closed == (find_link(0, support, [(a, b)], [(c, d)]) is not None)


def test_what_a_set_divides_is_periodic() -> None:
    """On the circle of seven or eight steps, exhaustively: `S | T` iff `T` is a union of cosets."""
    for size in (7, 8):
        whole = (1 << size) - 1

        def turned(bits: int, by: int, size: int = size, whole: int = whole) -> int:
            by %= size
            return (bits << by | bits >> (size - by)) & whole

        for support in range(1, whole + 1, 2):
            places = [i for i in range(size) if support >> i & 1]
            if len(places) < 2:
                continue
            moved = [turned(support, by) for by in range(size)]
            for target in range(1, whole):
                divides = all(not m & target or not m & ~target for m in moved)
                assert divides == all(turned(target, i) == target for i in places)


@pytest.mark.parametrize("seed", PAIRS)
def test_a_concave_line_that_passed_below_stays_below(seed: int) -> None:
    """Before a point where a convex curve is above a concave one that later is above it."""
    one, _ = pair(seed)
    chance = random.Random(seed)
    slope, height = -Fraction(chance.randint(1, 9), 10), Fraction(chance.randint(5, 15), 10)
    xs = [Fraction(i, 10) for i in range(1, 40)]
    above = [one.hockey_stick(x) - (height + slope * x) for x in xs]
    for i, j in product(range(len(xs)), repeat=2):
        if i < j and above[i] >= 0 and above[j] <= 0:
            assert all(value >= 0 for value in above[:i])
