"""What a spend takes from each subject: the one kernel that every engine calls.

`charge(left, loss)` takes a column of what is left (in units) and a column of losses and returns
what is left afterwards, -1 where the loss does not fit. Row by row, in integers, without anything
that crosses rows: however the rows are split into batches, the bits are the same.

=================  ======================================  ===========================
filter             closed form                             by levels, or for a shared query
=================  ======================================  ===========================
pure               `eps`; Laplace `sensitivity / scale`    the filter's own cost
zCDP               `nu² / 2`                               the filter's own cost
GDP                `nu²`                                   the filter's own cost
GDP residue        `nu²`                                   a staircase (`residue_table.py`)
=================  ======================================  ===========================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from residua.bounds import Floats
from residua.individual.pricing.levels import Levels, quotient
from residua.individual.pricing.residue_table import ResidueTable, look_up
from residua.individual.pricing.units import Integers, Units

_BLOCK = 1 << 15
"""Rows that are worked on at a time: what fits the processor's cache."""
_LEVEL = 1 << 52
"""Keys of one level: enough for 51 bits, and a few more."""


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
        for start in range(0, left.size, _BLOCK):
            rows = slice(start, start + _BLOCK)
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
        return _taken(left, self.units.linear(quotient(loss, self.divisor)))


@dataclass(frozen=True, eq=False)
class Square(Pricing):
    """`(loss / divisor)²`, or half of it, in units."""

    divisor: float
    half: bool

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return _taken(left, self.units.squares(quotient(loss, self.divisor), half=self.half))


@dataclass(frozen=True, eq=False)
class Fixed(Pricing):
    """The same for everyone."""

    cost: int

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return np.where(left >= self.cost, left - self.cost, -1)


@dataclass(frozen=True, eq=False)
class Staircase(Pricing):
    """One query for everyone under the residue filter."""

    table: ResidueTable

    def _after(self, left: Integers, loss: Floats) -> Integers:
        return look_up(self.table, left)


@dataclass(frozen=True, eq=False)
class FixedByLevel(Pricing):
    """A cost for each level."""

    levels: Levels
    costs: Integers
    """One more than there are levels; the last one is what nobody has."""

    def _after(self, left: Integers, loss: Floats) -> Integers:
        cost = self.costs[self.levels.index(loss)]
        return _taken(left, np.where(loss > 0.0, cost, 0))


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
            shift = max(0, top.bit_length() - 51)
            shifts.append(shift)
            tops.append(-(-top >> shift) << shift)
            # A first step at zero for those whom nothing fits, below every real one.
            keys.append(np.array([place * _LEVEL], dtype=np.int64))
            costs.append(np.array([-1], dtype=np.int64))
            keys.append(place * _LEVEL + 1 - (-table.budgets >> shift))
            costs.append(table.costs)
        small = (np.array([*column, 0], dtype=np.int64) for column in (shifts, tops))
        return cls(units, levels, np.concatenate(keys), np.concatenate(costs), *small)

    def _after(self, left: Integers, loss: Floats) -> Integers:
        level = self.levels.index(loss)
        known = level < self.levels.values.size
        rounded = np.minimum(left, self.tops[level]) >> self.shifts[level]
        key = np.where(known, level, 0) * _LEVEL + 1 + rounded
        cost = self.costs[np.searchsorted(self.keys, key, side="right") - 1]
        after = np.where(known & (cost >= 0), left - cost, -1)
        return np.where(loss > 0.0, after, left)


def _taken(left: Integers, cost: Integers) -> Integers:
    return np.where(left >= cost, left - cost, -1)
