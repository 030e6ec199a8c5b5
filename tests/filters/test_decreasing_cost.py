"""Jumps agree with requests, for costs that fall as more is left."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from residua.filters.counting import at_least, decreasing_count

Charge = Callable[[Fraction], Fraction | None]


def charge(base: Fraction, bend: Fraction) -> Charge:
    """An exact cost that rises as what is left runs out, as residues do."""

    def at(left: Fraction) -> Fraction | None:
        if left <= 0:
            return None
        cost = base * (1 + bend * base / left)
        return cost if cost <= left else None

    return at


def bounds(at: Charge) -> Callable[[Fraction], tuple[Fraction, Fraction] | None]:
    def around(left: Fraction) -> tuple[Fraction, Fraction] | None:
        cost = at(left)
        return None if cost is None else (cost, cost + Fraction(1, 2**60))

    return around


def one_by_one(left: Fraction, charges: list[Charge], most: int) -> int:
    done = 0
    while done < most:
        cost = charges[done % len(charges)](left)
        if cost is None:
            break
        # Charges are rounded up, as a filter's are.
        left -= Fraction(int(cost * 2**60) + 1, 2**60)
        done += 1
    return done


@given(
    steps=st.integers(1, 400),
    bends=st.lists(st.fractions(0, 3, max_denominator=50), min_size=1, max_size=3),
    off=st.fractions(Fraction(1, 7), Fraction(6, 7), max_denominator=100),
)
@settings(max_examples=40)
def test_agrees_with_one_by_one(steps: int, bends: list[Fraction], off: Fraction) -> None:
    base = 1 / (Fraction(steps) + off)
    charges = [charge(base, bend) for bend in bends]
    found = decreasing_count(Fraction(1), [bounds(one) for one in charges], 10**6)
    wanted = one_by_one(Fraction(1), charges, 10**6)
    assert found in (wanted, None)


def test_few_evaluations_for_many_requests() -> None:
    asked = 0
    at = charge(Fraction(1, 10**4) + Fraction(1, 10**9), Fraction(1, 6))

    def counted(left: Fraction) -> tuple[Fraction, Fraction] | None:
        nonlocal asked
        asked += 1
        return bounds(at)(left)

    found = decreasing_count(Fraction(1), [counted], 10**6)
    assert found == one_by_one(Fraction(1), [at], 10**6)
    assert found is not None and asked < found / 10


def test_ends_at_most_and_at_once() -> None:
    cheap, dear = charge(Fraction(1, 10**9), Fraction(0)), charge(Fraction(2), Fraction(0))
    assert decreasing_count(Fraction(1), [bounds(cheap)], 1234) == 1234
    assert decreasing_count(Fraction(1), [bounds(dear)], 1234) == 0
    assert decreasing_count(Fraction(1), [bounds(cheap), bounds(dear)], 1234) == 1


def test_open_where_it_hangs_on_the_last_digit() -> None:
    exact = charge(Fraction(1, 1000), Fraction(0))
    assert decreasing_count(Fraction(1), [bounds(exact)], 10**6) in (None, 1000)


@given(
    steps=st.integers(1, 400),
    bends=st.lists(st.fractions(0, 3, max_denominator=50), min_size=1, max_size=3),
    off=st.fractions(Fraction(1, 7), Fraction(6, 7), max_denominator=100),
    near=st.integers(-3, 3),
)
@settings(max_examples=40)
def test_so_many_or_not(steps: int, bends: list[Fraction], off: Fraction, near: int) -> None:
    base = 1 / (Fraction(steps) + off)
    charges = [charge(base, bend) for bend in bends]
    wanted = one_by_one(Fraction(1), charges, 10**6)
    n = max(wanted + near, 0)
    assert at_least(Fraction(1), [bounds(one) for one in charges], n) in (n <= wanted, None)


def test_a_thousand_million_in_few_evaluations() -> None:
    asked = 0
    at = charge(Fraction(1, 10**9), Fraction(1, 6))

    def counted(left: Fraction) -> tuple[Fraction, Fraction] | None:
        nonlocal asked
        asked += 1
        cost = at(left)
        return None if cost is None else (cost, cost * (1 + Fraction(1, 10**12)))

    assert at_least(Fraction(1), [counted], 10**9 - 100) is True
    assert at_least(Fraction(1), [counted], 10**9 + 100) is False
    assert asked < 10**4
