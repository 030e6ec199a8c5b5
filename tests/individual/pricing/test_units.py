"""Units: exact for decimals, and rounded to the safe side for everything else."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import residua as rz
from residua.filters.amounts import reported, root_down, written
from residua.individual.cost_model import (
    capacities_in_units,
    in_parameter,
    units_of,
)
from residua.individual.pricing import Units

CAPACITIES = st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(600), Fraction(1, 10**9)])


@given(CAPACITIES, st.floats(0.0, 1.0, exclude_min=True))
def test_costs_are_rounded_up_and_hardly(capacity: Fraction, share: float) -> None:
    units = Units.of(capacity)
    for value, counted, exact in (
        (share * float(capacity), units.linear, Fraction(share * float(capacity))),
        (
            share * float(capacity) ** 0.5,
            units.squares,
            Fraction(share * float(capacity) ** 0.5) ** 2,
        ),
    ):
        if value == 0.0:
            continue
        found = int(counted(np.array([value]))[0]) * units.size
        # The decimal that is meant may lie a rounding below the binary fraction.
        least = exact * (1 - Fraction(1, 2**51))
        assert least <= found <= exact * (1 + Fraction(1, 2**48)) + units.size
        down = int(counted(np.array([value]), up=False)[0]) * units.size
        assert down <= exact * (1 + Fraction(1, 2**51))


@given(st.integers(0, 10**9), st.integers(0, 9))
def test_decimals_are_exact(whole: int, places: int) -> None:
    value = float(Fraction(whole, 10**places))
    units = Units.of(Fraction(max(whole, 1), 10**places) + 1)
    if len(str(whole)) + 4 <= 15:
        assert int(units.linear(np.array([value]))[0]) * units.size == written(value)
    squares = Units.of((Fraction(max(whole, 1), 10**places) + 1) ** 2)
    if whole <= 10**6 and places <= squares.digits // 2:
        assert int(squares.squares(np.array([value]))[0]) * squares.size == written(value) ** 2


def test_the_smallest_loss_takes_something() -> None:
    units = Units.of(Fraction(1))
    tiny = np.array([5e-324, 1e-200, 1e-30])
    assert (units.squares(tiny) >= 1).all() and (units.linear(tiny) >= 1).all()
    assert (units.squares(np.array([0.0])) == 0).all()


def test_unaffordable_costs_are_never_admitted() -> None:
    units = Units.of(Fraction(1))
    huge = np.array([1e9, 1e300])
    assert (units.squares(huge) > units.capacity).all()
    assert (units.linear(huge) > units.capacity).all()


@pytest.mark.parametrize(
    "filter", [rz.PureFilter(0.3), rz.ZcdpFilter(0.7), rz.GdpFilter(1.3), rz.GdpResidueFilter(0.1)]
)
def test_what_is_left_is_reported_from_below(filter: rz.Filter) -> None:
    units = units_of(filter)
    rng = np.random.default_rng(3)
    left = rng.integers(0, units.capacity, 50)
    shown = in_parameter(filter, left)
    power = 2 if isinstance(filter, rz.GdpFilter | rz.GdpResidueFilter) else 1
    for one, value in zip(left.tolist(), shown.tolist(), strict=True):
        assert Fraction(value) ** power <= one * units.size
        amount = one * units.size
        exact = root_down(amount) if power == 2 else reported(amount)
        assert value <= exact <= value * (1 + 1e-14)
    own = getattr(filter, "mu", None) or getattr(filter, "eps", None) or filter.rho  # type: ignore[attr-defined]
    assert capacities_in_units(filter, np.array([own])).tolist() == [units.capacity]
