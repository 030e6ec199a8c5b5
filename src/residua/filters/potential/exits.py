"""Plans with exits: a budget made for the queries at hand that can still become a menu.

A plan is a small value table (`value_table.py`) over the few kinds of query seen so far, with
*exits*: level `m` also lies above the level `e_m` of a menu, so that whoever has `m` left may leave
the plan and go on with that. One kind alone and no exits is the plan `W^n`, which loses nothing;
exits cost, because the analyst may choose between going on and leaving after seeing answers.

How high the exits may be is a matter of allocation, not of soundness (that is checked at the end,
by the residue condition). Before the exits are put in, the plan leaves a gap below the target; the
gap is given out from the end of the plan to its beginning: a *reading* of a potential at level `m`
is what it comes to at a few grid points once the `M - m` levels above it were spent on the first
item, and every level may use the share `ψ(m/M)` of the gap, `ψ(v) = 1 - (1-v)²`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.filters.potential.grid import Step
from residua.filters.potential.value_table import GROWTH, Item, Table

_ROUNDS = 6
_ADDED = 3
_MARGIN = 1e-9


Points = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Readings:
    """Linear forms: what a potential comes to after a step and some blocks, at chosen points."""

    weights: list[NDArray[np.float64]]
    offsets: list[Floats]
    caps: Floats

    def at(self, blocks: int, potential: Floats) -> Floats:
        blocks = min(blocks, len(self.weights) - 1)
        return np.asarray(self.offsets[blocks] + self.weights[blocks] @ potential)


def readings(lead: Step, block: Step, count: int, points: Points, caps: Floats) -> Readings:
    """Readings after `lead` and `0 … count` blocks; approximate, for they only guide."""
    weights = np.zeros((points.size, lead.grid.size))
    weights[np.arange(points.size), points] = 1.0
    offsets = weights @ lead.excess
    weights = _adjoint(lead, weights)
    made, sums = [weights], [offsets]
    for _ in range(count):
        offsets = offsets + weights @ block.excess
        weights = _adjoint(block, weights)
        made.append(weights)
        sums.append(offsets)
    return Readings(made, sums, caps)


def _adjoint(step: Step, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of `φ -> w · (L ∘ φ - g_L)`."""
    from scipy.signal import fftconvolve

    n = weights.shape[1]
    kernel = step.masses[::-1][None, :]
    sparse = np.count_nonzero(step.masses) <= 8
    if sparse:
        full = np.zeros((weights.shape[0], n + step.masses.size - 1))
        for i in np.flatnonzero(kernel[0]):
            full[:, i : i + n] += kernel[0, i] * weights
    else:
        full = np.maximum(fftconvolve(weights, kernel, axes=1), 0.0)
    first = -step.high
    places = np.arange(full.shape[1]) + first
    out = np.zeros_like(weights)
    inside = (places >= 0) & (places < n)
    out[:, places[inside]] = full[:, inside]
    out[:, -1] += full[:, places >= n].sum(axis=1)
    left = places < 0
    decay = np.exp(float(step.grid.spacing) * places[left])
    out[:, 0] += full[:, left] @ decay
    return out


@dataclass(frozen=True, eq=False)
class Exits:
    """The menu level that each level of a plan can leave to, and the plan's table."""

    levels: tuple[int, ...]
    table: Table

    def quality(self, first: int) -> float:
        """About how good the exits are, where `first` is the best: near 1 if leaving costs nothing.

        Early levels count more.
        """
        v = np.arange(len(self.levels)) / max(1, len(self.levels) - 1)
        fair = np.maximum(first * v, 1.0)
        return float(np.sum(np.minimum(np.array(self.levels) / fair, 1.0) * v) / np.sum(v))


def plan_with_exits(
    menu: Table, items: Sequence[Item], most: int, lead: Step, potential: Floats | None, first: int
) -> Exits | None:
    """A table of `most + 1` levels that may follow `lead` in a state, or None if none was found.

    `first` is the best menu level after `lead`. Exits are allocated by readings at the points that
    bind, which are found one after the other: those where the residue condition fails are added.
    """
    grid = menu.grid
    if potential is None:
        points = np.array([grid.half + grid.cells, grid.half - grid.cells])
        caps = np.array(grid.ceiling)
    else:
        tightest = menu.levels[min(first + 1, menu.top)]
        points = _worst(lead.after(tightest) / np.maximum(potential, 1e-300))
        caps = potential[points]
    for _ in range(_ROUNDS):
        read = readings(lead, items[0].step, most // items[0].price, points, caps)
        made = with_exits(menu, items, most, read, first)
        if lead.allowed(potential, made.table.levels[-1]):
            return made
        if potential is None:
            return None
        ratio = lead.after(made.table.levels[-1]) / np.maximum(potential, 1e-300)
        if made.levels[-1] == 0 and float(ratio.max()) > 1.0 + 1e-6:
            return None
        points = np.union1d(points, _worst(ratio))
        caps = potential[points]
    return None


def _worst(ratio: Floats) -> Points:
    """The places of the largest local maxima."""
    inner = (ratio[1:-1] >= ratio[:-2]) & (ratio[1:-1] >= ratio[2:])
    peaks = np.flatnonzero(inner) + 1
    return np.sort(peaks[np.argsort(-ratio[peaks])[:_ADDED]])


def with_exits(
    menu: Table,
    items: Sequence[Item],
    most: int,
    read: Readings,
    first: int,
) -> Exits:
    """A table of `most + 1` levels for the items, with exits as high as the gap allows."""
    grid = menu.grid
    blocks = most // items[0].price
    start = np.minimum(read.at(blocks, grid.zero), read.caps)
    made: list[Floats] = []
    exits: list[int] = []
    for m in range(most + 1):
        base = made[-1].copy() if made else np.zeros(grid.size)
        for item in items:
            if item.price <= m:
                np.maximum(base, item.step.after(made[m - item.price]), out=base)
        v = m / most if most else 1.0
        limit = start + (read.caps - start) * (1.0 - (1.0 - v) ** 2)
        spent = (most - m) // items[0].price
        low, high = (exits[-1] if exits else 0), first
        while low < high:
            middle = (low + high + 1) // 2
            candidate = np.maximum(base, menu.levels[middle])
            fits = bool(np.all(read.at(spent, candidate) <= limit * (1.0 - _MARGIN)))
            low, high = (middle, high) if fits else (low, middle - 1)
        exits.append(low)
        made.append(np.maximum(base, menu.levels[low]) * (GROWTH if made else 1.0))
    levels = np.array(made)
    levels.flags.writeable = False
    return Exits(tuple(exits), Table(grid, levels))
