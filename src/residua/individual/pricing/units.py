"""Budgets of subjects as 64-bit integers: exact, and never rounded in a subject's favour.

What is left of a subject's budget (`eps`, `rho` or `mu²`) is an integer number of units of
`10^-digits`. Subtracting integers is exact, so nothing drifts however many queries there are, and
every engine gets the same bits. `digits` is even and as large as the capacity allows, at most
9.2e18 units, so a unit is at most 1e-16 of the capacity.

A float that is the nearest one to a decimal of at most fifteen digits denotes that decimal, as in
`filters/amounts.py` (ten times 0.1 is 1); any other denotes itself. Capacities are rounded down
to units and costs up. For a decimal `y 10^-d`, `y` an integer below `2^53`, the test is `y / 10^d
== x`: both operands are exact (`10^22 < 2^76` has a mantissa of 52 bits) and division is
correctly rounded. Other products carry at most three roundings, `3u`, and are raised by `2^-50 =
8u`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats

Integers = NDArray[np.int64]

MOST_UNITS = 9_200_000_000_000_000_000
"""Of a capacity: a little less than the largest 64-bit integer."""
MOST_DIGITS, LEAST_DIGITS = 44, -12
"""Of a unit, which is `10^-digits`."""
RAISED, LOWERED = 1.0 + 2.0**-50, 1.0 - 2.0**-50
"""Factors that cover the roundings of a product."""
SPARE_DIGITS = 4
"""Digits less for a decimal that is read as it is: then it has at most fifteen."""
LARGEST_SQUARED, LARGEST_HALVED = 3.0331e9, 4.2895e9
"""Whole numbers whose squares, and half of whose squares, are below 9.2e18."""
MOST_EXACT_DIGITS, LARGEST_DECIMAL_READ = 22, 1e15
"""`10^22` is a float, and a whole number below `10^15` has at most fifteen digits."""
UNAFFORDABLE = np.iinfo(np.int64).max
"""A cost above every budget; never to be calculated with."""


def digits_for(capacity: Fraction) -> int:
    """The largest even number of digits with which a capacity is below 9.2e18 units."""
    for digits in range(MOST_DIGITS, LEAST_DIGITS - 1, -2):
        if capacity * Fraction(10) ** digits <= MOST_UNITS:
            return digits
    raise AssertionError(f"capacities are at most 1e12, got {capacity}")


@dataclass(frozen=True)
class Units:
    """Units of `10^-digits`, and how many of them the declared capacity is."""

    digits: int
    capacity: int

    @classmethod
    def of(cls, capacity: Fraction) -> Units:
        """Units for a capacity, which is rounded down to a whole number of them."""
        digits = digits_for(capacity)
        return cls(digits, int(capacity * Fraction(10) ** digits // 1))

    @property
    def size(self) -> Fraction:
        """What a unit is."""
        return Fraction(10) ** -self.digits

    def up(self, amount: Fraction) -> int:
        """An exact amount, rounded up to units."""
        return int(-(-amount * Fraction(10) ** self.digits // 1))

    def amounts_up(self, values: Floats) -> Integers:
        """Floats that are themselves bounds, rounded up to units."""
        return _up(values, self._scale)

    def linear(self, values: Floats, *, up: bool = True) -> Integers:
        """Parameters that add up themselves (`eps`, `rho`) in units."""
        read = min(self.digits - SPARE_DIGITS, MOST_EXACT_DIGITS)
        spare = 10 ** (self.digits - read)
        if spare > MOST_UNITS:
            # Budgets so small that no decimal is short in their units.
            return (_up if up else _down)(values, self._scale)
        scale = 10.0**read
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.rint(values * scale)
            decimal = (whole < min(LARGEST_DECIMAL_READ, MOST_UNITS / spare)) & (
                whole / scale == values
            )
            short: Integers = np.where(decimal, whole, 0.0).astype(np.int64) * spare
            if decimal.all():
                return short
            other: Integers = (_up if up else _down)(values, self._scale)
        return np.where(decimal, short, other)

    def squares(self, values: Floats, *, up: bool = True, half: bool = False) -> Integers:
        """Squares of parameters (`nu²` of `nu`), or half of them, in units."""
        scale = 10.0 ** (self.digits // 2)
        share = 0.5 if half else 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.rint(values * scale)
            decimal = (whole < (LARGEST_HALVED if half else LARGEST_SQUARED)) & (
                whole / scale == values
            )
            # Unsigned: the square of what fits after halving may be beyond 2^63.
            square = np.where(decimal, whole, 0.0).astype(np.uint64)
            square *= square
            if half:
                square = (square >> np.uint64(1)) + (square & np.uint64(up))
            short = square.view(np.int64)
            if decimal.all():
                return np.asarray(short)
            many = self._scale * share
            other = _up(values, many, values) if up else _down(values * values, many)
        return np.where(decimal, short, other)

    @property
    def _scale(self) -> float:
        return float(f"1e{self.digits}")


def _up(values: Floats, scale: float, factor: Floats | float = 1.0) -> Integers:
    """A product rounded up; at least one unit for anything above zero, however small.

    Beyond `MOST_UNITS` it is `UNAFFORDABLE`.
    """
    with np.errstate(over="ignore"):
        counted = np.maximum(np.ceil(values * factor * scale * RAISED), values > 0.0)
    fits = counted < float(MOST_UNITS)
    return np.where(fits, np.where(fits, counted, 0.0).astype(np.int64), UNAFFORDABLE)


def _down(values: Floats, scale: float) -> Integers:
    with np.errstate(over="ignore"):
        counted = np.floor(values * scale * LOWERED)
    return np.minimum(counted, float(MOST_UNITS)).astype(np.int64)
