"""Printed decimals keep the meaning of the interval they come from."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from residua.cli.output import above, below, number

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE, st.integers(1, 17))
def test_decimals_round_outward(x: float, digits: int) -> None:
    lo, hi = Decimal(below(x, digits)), Decimal(above(x, digits))
    assert lo <= Decimal(x) <= hi
    spacing = Decimal(10) ** (Decimal(x).adjusted() - digits + 1) if x else Decimal(0)
    assert hi - lo <= 2 * spacing


def test_decimals_read_well() -> None:
    assert below(0.1, 3) == "0.100"
    assert above(0.1, 3) == "0.101"
    assert below(1 / 3, 4) == "0.3333"
    assert above(1 / 3, 4) == "0.3334"
    assert above(1.5e-30, 4) == "1.500e-30"
    assert below(0.5) == "0.5"
    assert below(0.0) == "0.0"
    assert above(math.inf) == "inf"


@pytest.mark.parametrize(("x", "shown"), [(0.1, 0.1), (math.inf, "inf"), (-math.inf, "-inf")])
def test_numbers_as_json_can_carry_them(x: float, shown: float | str) -> None:
    assert number(x) == shown
