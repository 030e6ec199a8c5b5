"""Value tables: what a price list can cost, level by level.

For steps `L_i` with integer prices `c_i` the table holds potentials (`grid.py`)

    V_0 = 0,   V_s >= max(V_{s-1}, L_i ∘ V_{s-c_i} for every c_i <= s),

so a state with `s` left may admit `L_i` and go on with `s - c_i`: the residue condition holds by
construction. `V_s` is (up to chords and rounding, both upwards) the least potential of any rule
with those prices, so the largest `s` whose `V_s` keeps within `(eps, delta)` is the most these
prices can offer.

Levels increase with `s`. The largest level that may follow a query is found by bisection and
checked; what is not on the list pays the least price that the check allows. Between whole levels
potentials are interpolated, in `PARTS` parts: `∘` is affine in the potential, so `L_i` takes a
state at `s + θ` to `s + θ - c_i`, and small queries need not pay for a whole level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.filters.potential.grid import MARGIN, Grid, Step
from residua.work_limit import work

GROWTH = 1.0 + 4.0 * MARGIN
"""Every level lies above what it is made of by slightly more than the margin of the residue
condition: where curves touch, the check would otherwise have to go down to the next that do not."""
PARTS = 1 << 12
"""A level has so many parts; what a state has left is counted in them."""


@dataclass(frozen=True)
class Item:
    """A step and its price."""

    step: Step
    price: int


@dataclass(frozen=True, eq=False)
class Table:
    """Potentials by level, each at least the one before."""

    grid: Grid
    levels: NDArray[np.float64]

    @property
    def top(self) -> int:
        """The highest level."""
        return len(self.levels) - 1

    @property
    def whole(self) -> int:
        """The highest level, in parts."""
        return self.top * PARTS

    def at(self, parts: int) -> Floats:
        """The potential at a level in parts: interpolated between whole levels."""
        s, rest = divmod(parts, PARTS)
        level: Floats = self.levels[s]
        if rest:
            level = level * ((PARTS - rest) / PARTS) + self.levels[s + 1] * (rest / PARTS)
        return level

    def best(self, step: Step, potential: Floats, most: int) -> int | None:
        """The highest level, in parts and at most `most`, that may follow `step` in a state.

        `potential` is that of the state; None if it does not admit the step at all.
        """
        if not step.allowed(potential, self.levels[0]):
            return None
        low, high = 0, most // PARTS
        while low < high:
            middle = (low + high + 1) // 2
            fits = step.allowed(potential, self.levels[middle])
            low, high = (middle, high) if fits else (low, middle - 1)
        parts = low * PARTS
        room = min(most - parts, PARTS - 1)
        if low == self.top or room <= 0:
            return parts
        # `∘` is affine: between two levels the last one that fits is known at once.
        below, above = step.after(self.levels[low]), step.after(self.levels[low + 1])
        limit = step.limit(potential)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(above > below, (limit - below) / (above - below), np.inf)
        rest = min(room, int(PARTS * max(0.0, min(1.0, float(np.min(share))))))
        while rest > 0 and not step.allowed(potential, self.at(parts + rest)):
            rest -= max(1, rest // 64)
        return parts + max(rest, 0)


def value_table(grid: Grid, items: Sequence[Item]) -> Table:
    """Levels up to the highest that fits the target."""
    levels = [np.zeros(grid.size)]
    while True:
        s = len(levels)
        work(10.0 * grid.size, 16.0 * s * grid.size)
        level = levels[-1].copy()
        for item in items:
            if item.price <= s:
                np.maximum(level, item.step.after(levels[s - item.price]), out=level)
        level *= GROWTH
        if not grid.fits(level):
            break
        levels.append(level)
    made = np.array(levels)
    made.flags.writeable = False
    return Table(grid, made)
