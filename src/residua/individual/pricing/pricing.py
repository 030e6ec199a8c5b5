"""What a spend takes from each subject: the one kernel that every engine calls.

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

**Levels.** Costs that have no closed form are computed once a level, and a subject is charged for
the level at or above its own value. Which levels there are must not depend on anyone's data (the
charge of one subject may depend on that subject's own data alone), so they follow from the
capacity: 64 an octave, sixteen octaves down from the largest value that fits at all. Or the caller
names them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from residua import checks
from residua.bounds import Floats
from residua.filters.amounts import written
from residua.individual.pricing.residue_table import ResidueTable, look_up
from residua.individual.pricing.units import Integers, Units

Flags = NDArray[np.bool_]

MOST_LEVELS = 1024
"""Of one spend, the built-in ones or those of the caller."""
LEVELS_PER_OCTAVE = 64
"""Of the built-in levels."""
DECIMALS = 1e9
"""Losses and quotients with nine decimals or fewer are compared as decimals."""
LARGEST_RATIO_TERM, LARGEST_DECIMAL = 10**6, 9e12
"""Terms of the divisor and numbers of `1 / DECIMALS`; their products stay below `2^63`."""


def default_levels(largest: float) -> Floats:
    """1,024 values, the last one the first grid value at or above `largest`."""
    exponent = math.floor(math.log2(largest)) + 1
    octaves = np.arange(exponent - MOST_LEVELS // LEVELS_PER_OCTAVE - 1, exponent + 1)
    inside = (LEVELS_PER_OCTAVE + np.arange(LEVELS_PER_OCTAVE)) / LEVELS_PER_OCTAVE
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


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of `loss / divisor`."""

    values: Floats
    divisor: float

    def index(self, losses: Floats) -> Integers:
        """The level at or above each loss; `len(values)` above all of them."""
        return np.asarray(np.searchsorted(self.values, quotient(losses, self.divisor), side="left"))

    def used(self, losses: Floats) -> Flags:
        """Which levels occur, with one place more for what is above all of them."""
        count = np.bincount(self.index(losses[losses > 0.0]), minlength=self.values.size + 1)
        return np.asarray(count > 0)


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
        up = np.where(loss > 0.0, np.nextafter(near * (1.0 + 2.0**-50), np.inf), 0.0)
        if max(p, q) > LARGEST_RATIO_TERM:
            return up
        a, b = np.rint(near * DECIMALS), np.rint(loss * DECIMALS)
    short = (
        (a < LARGEST_DECIMAL)
        & (b < LARGEST_DECIMAL)
        & (a / DECIMALS == near)
        & (b / DECIMALS == loss)
    )
    whole_a, whole_b = (np.where(short, x, 0.0).astype(np.int64) for x in (a, b))
    return np.where(short & (whole_a * p == whole_b * q), near, up)


BLOCK_ROWS = 1 << 15
"""Rows that are priced at a time: what fits the processor's cache."""
KEY_BITS = 51
"""Bits of a budget that tell the steps of a level apart."""
KEYS_PER_LEVEL = 1 << (KEY_BITS + 1)
"""Room for the keys of one level, and a few more."""


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
class Fixed(Pricing):
    """The same cost for all subjects."""

    cost: int

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return np.where(left >= self.cost, left - self.cost, -1)


@dataclass(frozen=True, eq=False)
class Staircase(Pricing):
    """One query for all subjects under the residue filter."""

    table: ResidueTable

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return look_up(self.table, left)


@dataclass(frozen=True, eq=False)
class FixedByLevel(Pricing):
    """A cost for each level."""

    levels: Levels
    costs: Integers
    """One more than there are levels; the last one is above every budget."""

    def _after(self, left: Integers, loss: Floats) -> Integers:
        cost = self.costs[self.levels.index(loss)]
        return _subtract(left, np.where(loss > 0.0, cost, 0))


@dataclass(frozen=True, eq=False)
class StaircaseByLevel(Pricing):
    """A staircase for each level, all in one sorted list.

    The key of a step is its level and its budget, without so many of the last bits that the
    level's largest one still fits: rounded up for a step, down for a subject. So a subject may be
    charged for a step it has just passed, never for the next. What is beyond the last step counts
    as that step, and so small queries, whose steps are at small budgets, lose no bits.
    """

    levels: Levels
    keys: Integers
    costs: Integers
    shifts: Integers
    """How many bits a level does without; one more than there are levels."""
    tops: Integers
    """What is as good as anything above it."""

    @classmethod
    def of(cls, units: Units, levels: Levels, tables: list[ResidueTable]) -> StaircaseByLevel:
        keys, costs, shifts, tops = [], [], [], []
        for place, table in enumerate(tables):
            top = int(table.budgets[-1]) if table.budgets.size else 0
            shift = max(0, top.bit_length() - KEY_BITS)
            shifts.append(shift)
            tops.append(-(-top >> shift) << shift)
            # A first step at zero, below every real one, for budgets that no step fits.
            keys.append(np.array([place * KEYS_PER_LEVEL], dtype=np.int64))
            costs.append(np.array([-1], dtype=np.int64))
            keys.append(place * KEYS_PER_LEVEL + 1 - (-table.budgets >> shift))
            costs.append(table.costs)
        small = (np.array([*column, 0], dtype=np.int64) for column in (shifts, tops))
        return cls(units, levels, np.concatenate(keys), np.concatenate(costs), *small)

    def _after(self, left: Integers, loss: Floats) -> Integers:
        level = self.levels.index(loss)
        known = level < self.levels.values.size
        rounded = np.minimum(left, self.tops[level]) >> self.shifts[level]
        key = np.where(known, level, 0) * KEYS_PER_LEVEL + 1 + rounded
        cost = self.costs[np.searchsorted(self.keys, key, side="right") - 1]
        after = np.where(known & (cost >= 0), left - cost, -1)
        return np.where(loss > 0.0, after, left)


def _subtract(left: Integers, cost: Integers) -> Integers:
    return np.where(left >= cost, left - cost, -1)
