"""Value tables: what a price list can cost, level by level.

For steps `L_i` with integer prices `c_i` the table holds potentials (`grid.py`)

    V_0 = floor_0,   V_s >= max(V_{s-1}, floor_s, L_i ∘ V_{s-c_i} for every c_i <= s),

so a state with `s` left may admit `L_i` and go on with `s - c_i`: the residue condition holds by
construction. Without floors, `V_s` is (up to chords and rounding, both upwards) the least potential
of any rule with those prices, so the largest `s` whose `V_s` keeps within `(eps, delta)` is the most
these prices can offer. A floor is an exit: whoever has `s` left may instead walk to any potential
below `floor_s`.

Levels increase with `s`. The largest level that may follow a query is found by bisection and
checked; what is not on the list pays the least price that the check allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from residuum.bounds import Floats
from residuum.filters.grid import Grid, Step

Progress = Callable[[int], None]


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

    def best(self, step: Step, potential: Floats | None, most: int | None = None) -> int | None:
        """The highest level that a state with `potential` may go on with after `step`.

        None if it may not admit the step at all. Without a potential, before anything was
        released: the target itself.
        """

        def allowed(level: int) -> bool:
            return step.allowed(potential, self.levels[level])

        low, high = 0, self.top if most is None else most
        if high < 0 or not allowed(0):
            return None
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if allowed(middle) else (low, middle - 1)
        return low


def value_table(
    grid: Grid,
    items: Sequence[Item],
    floors: Sequence[Floats] | None = None,
    most: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """Levels up to the highest that fits the target, or exactly up to `most` where it is given."""
    levels = [np.zeros(grid.size) if floors is None else floors[0]]
    while most is None or len(levels) <= most:
        s = len(levels)
        level = levels[-1].copy() if floors is None else np.maximum(levels[-1], floors[s])
        for item in items:
            if item.price <= s:
                np.maximum(level, item.step.after(levels[s - item.price]), out=level)
        if most is None and not grid.fits(level):
            break
        levels.append(level)
        if progress is not None:
            progress(s)
    made = np.array(levels)
    made.flags.writeable = False
    return Table(grid, made)
