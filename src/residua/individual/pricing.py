"""What a spend costs each subject: the one function that every engine calls.

`charge(left, loss)` takes a column of what is left (in units) and a column of losses and returns
what is left afterwards, -1 where the loss does not fit. It works row by row, in integers, and
nothing crosses rows: however the rows are split into batches, the bits are the same.

=================  ======================================  ===========================
filter             closed form                             by levels, or for a shared query
=================  ======================================  ===========================
pure               `eps`; Laplace `sensitivity / scale`    the filter's own cost
zCDP               `nu² / 2`                               the filter's own cost
GDP                `nu²`                                   the filter's own cost
GDP residue        `nu²`                                   a staircase (`residue_table.py`)
=================  ======================================  ===========================

**Units.** What is left of a subject's budget (`eps`, `rho` or `mu²`) is an integer number of units
of `10^-digits`. Subtracting integers is exact, so nothing drifts however many queries there are,
and every engine gets the same bits. `digits` is even and as large as the capacity allows, at most
9.2e18 units, so a unit is at most 1e-16 of the capacity.

A float that is the nearest one to a decimal of at most fifteen digits denotes that decimal, as in
`filters/amounts.py` (ten times 0.1 is 1); any other denotes itself. Capacities are rounded down
to units and costs up. For a decimal `y 10^-d`, `y` an integer below `2^53`, the test is `y / 10^d
== x`: both operands are exact (`10^22 < 2^76` has a mantissa of 52 bits) and division is
correctly rounded. Other products carry at most three roundings, `3u`, and are raised by `2^-50 =
8u`.

**Levels.** Costs that have no closed form are computed once a level, and a subject is charged for
the level at or above its own value. Which levels there are must not depend on anyone's data (the
charge of one subject may depend on that subject's own data alone), so they follow from the
capacity: 64 an octave, sixteen octaves down from the largest value that fits at all. Or the caller
names them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from residua import checks
from residua.bounds import Floats
from residua.filters.amounts import written

Integers = NDArray[np.int64]

MOST_UNITS = 9_200_000_000_000_000_000
"""Of a capacity: a little less than the largest 64-bit integer."""
ROUNDINGS = 2.0**-50
"""Covers the relative error of a product."""
UNAFFORDABLE = np.iinfo(np.int64).max
"""A cost above every budget; never to be calculated with."""


@dataclass(frozen=True)
class Units:
    """Units of `10^-digits`, and how many of them the declared capacity is."""

    digits: int
    capacity: int

    @classmethod
    def of(cls, capacity: Fraction) -> Units:
        """Units for a capacity, which is rounded down to a whole number of them."""
        for digits in range(44, -13, -2):
            amount = capacity * Fraction(10) ** digits
            if amount <= MOST_UNITS:
                return cls(digits, int(amount // 1))
        raise AssertionError(f"capacities must be at most 1e12, got {capacity}")

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
        # With four digits less, a decimal that is read as it is has at most fifteen; 10^22 is a
        # float.
        read = min(self.digits - 4, 22)
        spare = 10 ** (self.digits - read)
        if spare > MOST_UNITS:
            # Budgets so small that no decimal is short in their units.
            return (_up if up else _down)(values, self._scale)
        scale = 10.0**read
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.rint(values * scale)
            decimal = (whole < min(1e15, MOST_UNITS / spare)) & (whole / scale == values)
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
            # What is squared, and halved, must stay below MOST_UNITS.
            most = math.isqrt((2 if half else 1) * MOST_UNITS)
            decimal = (whole < most) & (whole / scale == values)
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
        counted = np.maximum(np.ceil(values * factor * scale * (1.0 + ROUNDINGS)), values > 0.0)
    fits = counted < float(MOST_UNITS)
    return np.where(fits, np.where(fits, counted, 0.0).astype(np.int64), UNAFFORDABLE)


def _down(values: Floats, scale: float) -> Integers:
    with np.errstate(over="ignore"):
        counted = np.floor(values * scale * (1.0 - ROUNDINGS))
    return np.minimum(counted, float(MOST_UNITS)).astype(np.int64)


MOST_LEVELS = 1024
"""Of one spend, the built-in ones or those of the caller."""


def default_levels(largest: float) -> Floats:
    """1,024 values, the last one the first grid value at or above `largest`."""
    exponent, per_octave = math.floor(math.log2(largest)) + 1, 64
    octaves = np.arange(exponent - MOST_LEVELS // per_octave - 1, exponent + 1)
    inside = (per_octave + np.arange(per_octave)) / per_octave
    grid = np.ldexp(inside[None, :], octaves[:, None].astype(np.int32)).ravel()
    end = int(np.searchsorted(grid, largest, side="left")) + 1
    return np.asarray(grid[max(0, end - MOST_LEVELS) : end])


def given_levels(value: Any) -> Floats:
    """Levels that the caller names: increasing, positive, at most 1,024."""
    levels = checks.vector("levels", value, "positive and finite numbers")
    good = np.isfinite(levels).all() and (levels > 0.0).all() and (np.diff(levels) > 0.0).all()
    checks.require(bool(good), "levels", "positive, finite and increasing", value)
    checks.require(
        levels.size <= MOST_LEVELS, "levels", f"at most {MOST_LEVELS} values", levels.size
    )
    return levels


def quotient(loss: Floats, divisor: float) -> Floats:
    """`loss / divisor`, rounded up, but exact where both and the quotient are short decimals.

    With `loss = b 10^-9`, `divisor = p / q` and a quotient of `a 10^-9` that is `a p = b q`, which
    integers decide. So ten Laplace queries of scale 10 fit an `eps` of 1.
    """
    if divisor == 1.0:
        return loss
    ratio = written(divisor)
    p, q = ratio.numerator, ratio.denominator
    with np.errstate(over="ignore"):
        near = loss / divisor
        # Three roundings: of both as decimals, and of the division.
        up = np.where(loss > 0.0, np.nextafter(near * (1.0 + ROUNDINGS), np.inf), 0.0)
        # Products of these and of the decimals below, in units of 10^-9, stay below 2^63.
        if max(p, q) > 10**6:
            return up
        a, b = np.rint(near * 1e9), np.rint(loss * 1e9)
    short = (np.maximum(a, b) < 9e12) & (a / 1e9 == near) & (b / 1e9 == loss)
    whole_a, whole_b = (np.where(short, x, 0.0).astype(np.int64) for x in (a, b))
    return np.where(short & (whole_a * p == whole_b * q), near, up)


BLOCK_ROWS = 1 << 15
"""Rows that are priced or hashed at a time: what fits the processor's cache, three times as fast as
eight times as many."""


@dataclass(frozen=True, eq=False)
class Pricing(ABC):
    """How losses of one spend are charged."""

    units: Units

    @abstractmethod
    def _after(self, left: Integers, loss: Floats) -> Integers:
        """What is left, -1 where the loss does not fit; `loss` is positive."""

    def charge(self, left: Integers, loss: Floats | None) -> Integers:
        """What is left after the spend, -1 where it does not fit. A loss of zero takes nothing."""
        after = np.empty_like(left)
        for start in range(0, left.size, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            if loss is None:
                after[rows] = self._after(left[rows], np.empty(0))
            else:
                after[rows] = self._after(left[rows], loss[rows])
        return after


@dataclass(frozen=True, eq=False)
class Linear(Pricing):
    """`loss / divisor` itself, in units."""

    divisor: float

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return _subtract(left, self.units.linear(quotient(loss, self.divisor)))


@dataclass(frozen=True, eq=False)
class Square(Pricing):
    """`(loss / divisor)²`, or half of it, in units."""

    divisor: float
    half: bool

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return _subtract(left, self.units.squares(quotient(loss, self.divisor), half=self.half))


@dataclass(frozen=True, eq=False)
class CostTable:
    """From `budgets[i]` units on the query costs `costs[i]`; below `budgets[0]` it does not fit."""

    budgets: Integers
    costs: Integers

    @classmethod
    def fixed(cls, cost: int) -> CostTable:
        """Of a query that costs the same whatever is left."""
        return cls(*np.full((2, 1), cost, dtype=np.int64)) if cost < UNAFFORDABLE else NEVER

    def charge(self, left: Integers) -> Integers:
        """What is left after the query; -1 where it does not fit. Elementwise."""
        if not self.budgets.size:
            return np.full_like(left, -1)
        place = np.searchsorted(self.budgets, left, side="right")
        return np.where(place > 0, left - self.costs[np.maximum(place, 1) - 1], -1)


NEVER = CostTable(*np.empty((2, 0), dtype=np.int64))
"""Of a query that fits no budget."""


@dataclass(frozen=True, eq=False)
class Shared(Pricing):
    """One query for all subjects."""

    table: CostTable

    def _after(self, left: Integers, _loss: Floats) -> Integers:
        return self.table.charge(left)


@dataclass(frozen=True, eq=False)
class ByLevel(Pricing):
    """A table for each level of `loss / divisor`; a loss above all levels does not fit."""

    levels: Floats
    divisor: float
    table: Callable[[float], CostTable]
    """Of a level; asked only for levels that occur."""

    def _after(self, left: Integers, loss: Floats) -> Integers:
        level = np.searchsorted(self.levels, quotient(loss, self.divisor), side="left")
        # Rows of one level side by side.
        order = np.argsort(level)
        ends = np.searchsorted(level[order], np.arange(self.levels.size + 1))
        after = np.full_like(left, -1)
        for place in np.flatnonzero(np.diff(ends)).tolist():
            rows = order[ends[place] : ends[place + 1]]
            after[rows] = self.table(float(self.levels[place])).charge(left[rows])
        return np.where(loss > 0.0, after, left)


def _subtract(left: Integers, cost: Integers) -> Integers:
    return np.where(left >= cost, left - cost, -1)
