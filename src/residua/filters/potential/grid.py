"""Potentials on a grid: how a filter may walk from one budget to another, checked in one line.

Notation. A grid has the points `t_k = k d`, `|k| <= K`, with `eps = m d` among them. The *excess*
of a PLD is `g(t) = h(e^t) - (1 - e^t)_+`, so `g = h` for `t >= 0` and `g(t) = e^t h_rev(e^-t)` for
`t < 0`: it rises up to 0, falls after it, and is never negative. A *potential* `φ` is any array of
non-negative numbers, one for each grid point; it *covers* a PLD `V` if `g_V(t_k) <= φ_k` for all
`k`.

Lemma. Let `φ'` cover `V`, and let `p_j` be the masses of the chord interpolant of `L`, the PLD
whose curve is linear in `x` between grid points and meets that of `L` there. Then

    g_{L ⊕ V}(t_k)  <=  (L ∘ φ')_k  :=  g_L(t_k) + Σ_j p_j φ'_{k-j}.

Proof. `h_{L⊕V}(x) = p_inf + E[h_V(x e^-Z); Z < inf]`, and `(1 - y)_+` integrates to `h_L - p_inf`,
hence `g_{L⊕V}(t) = g_L(t) + E[g_V(t - Z)]`. Put `L⁺` (the interpolant) for `L`: it dominates `L`
(chords lie above a convex curve), has the same curve at the grid points, and its losses are on the
grid. Beyond the grid `g_V(t) <= g_V(t_K)` for `t >= t_K` and `g_V(t) <= e^{t - t_-K} g_V(t_-K)` on
the other side, and so the array is continued.   ∎

Theorem. A filter whose states have potentials, and which moves from `φ` to `φ'` on admitting `L`
only if `L ∘ φ' <= φ` at every grid point, is free: the PLD of everything that can still happen in
a state is covered by its potential. (Induct over the number of queries still to come: the value of
a state is the supremum of `Id` and of all `L ⊕ V'`, and the supremum is the pointwise maximum of
the curves.) If the first potential has `φ_m <= delta` and `φ_-m <= e^-eps delta`, everything is
dominated by `R_{eps,delta}`, which has its kinks at `±eps`.

So a potential need not be a PLD's curve, nor convex, and floats denote themselves: only `g_L` and
`p` are bounded from above, and `∘` is rounded up. All terms are non-negative, so one relative
factor does that.

**Masses.** With `h_k = h(e^{kd})`, the atom of the interpolant at `k > 0` is `e^{kd}` times the
jump of slopes, that is

    p_k = ((h_{k+1} - h_k) + e^d (h_{k-1} - h_k)) / (e^d - 1),

from upper ends for `h_{k±1}` and lower ends for `h_k`; left of 0 the same for the reversed curve,
times `e^{-kd}`; at 0 what the two slopes beside it leave of 1. The interpolant is cut at both ends:
beyond the last point its curve is constant, and before the first it is the chord to `(0, 1)`. Both
only raise it.

**Value tables** say what a price list can cost, level by level. For steps `L_i` with integer prices
`c_i` the table holds potentials

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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.filters.query import directions
from residua.filters.target import gaussian_bracket
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.pld.curve import right_half
from residua.pld.pld import Pld
from residua.work_limit import remembered, remembered_property, work

MARGIN = 1e-9
"""The relative margin of the residue condition (`Step.allowed`)."""


@dataclass(frozen=True)
class Grid:
    """Grid points `k eps / cells`, `|k| <= half`, for the target `(eps, delta)`."""

    eps: float
    delta: float
    cells: int
    half: int

    @property
    def size(self) -> int:
        return 2 * self.half + 1

    @remembered_property
    def spacing(self) -> Fraction:
        """The exact distance of grid points."""
        return Fraction(self.eps) / self.cells

    @remembered_property
    def ceiling(self) -> tuple[float, float]:
        """The largest values at `eps` and `-eps` that a first potential may have."""
        left = math.exp(-self.eps) * self.delta * (1.0 - (EXP_ULPS + 4.0) * U)
        return self.delta, left

    def fits(self, potential: Floats) -> bool:
        """Whether a first potential keeps everything within `(eps, delta)`."""
        right, left = self.ceiling
        return bool(
            potential[self.half + self.cells] <= right and potential[self.half - self.cells] <= left
        )

    @remembered_property
    def zero(self) -> Floats:
        """The potential of a state that admits nothing."""
        return _freeze(np.zeros(self.size))


def grid_for(eps: float, delta: float) -> Grid:
    """A grid on which a 200th of the budget, as a Gaussian, spans about ten cells.

    The spacing is a short decimal where that divides `eps`, so that losses people write are on it.
    """
    mu = gaussian_bracket(eps, delta, 1e-3)[1]
    wanted = mu / 140.0
    decade = 10.0 ** math.floor(math.log10(wanted))
    cells = math.ceil(eps / wanted)
    for step in (10.0, 5.0, 2.5, 2.0, 1.0, 0.5):
        ratio = eps / (step * decade)
        if step * decade <= 1.35 * wanted and abs(ratio - round(ratio)) < 1e-9 * ratio:
            cells = round(ratio)
            break
    reach = eps + 2.5 * mu
    return Grid(eps, delta, cells, math.ceil(reach / eps * cells))


@dataclass(frozen=True, eq=False)
class Step:
    """A query (some copies of it) on a grid: upper bounds of `g_L` and of the masses `p`."""

    grid: Grid
    excess: Floats
    low: int
    """Where the masses begin, in grid cells (at most 0)."""
    masses: Floats

    @property
    def high(self) -> int:
        return self.low + self.masses.size - 1

    def after(self, potential: Floats) -> Floats:
        """`L ∘ φ`, rounded up: what a potential needs to be to admit `L` and go on with `φ`."""
        work(10.0 * potential.size + 0.2 * potential.size * self.masses.size)
        whole = np.concatenate([potential[0] * self._decay, potential, self._flat * potential[-1]])
        out = np.convolve(whole, self.masses, "valid")
        out += self.excess
        out *= self._rounding
        out += self._smallest
        return out

    def allowed(self, potential: Floats, after: Floats) -> bool:
        """The residue condition `L ∘ φ' <= φ`.

        It must hold with a margin, so that it still does where the tables were worked out on
        another machine, whose last bits differ.
        """
        return bool(np.all(self.after(after) * (1.0 + MARGIN) <= potential))

    def limit(self, potential: Floats) -> Floats:
        """The largest `after` for which `allowed` says yes (about)."""
        return potential * (1.0 - 2.0 * MARGIN)

    @remembered_property
    def _decay(self) -> Floats:
        d = float(self.grid.spacing)
        steps = np.arange(float(self.high), 0.0, -1.0)
        return np.asarray(np.exp(-d * steps) * (1.0 + (EXP_ULPS + 4.0 + 4.0 * d * steps) * U))

    @remembered_property
    def _flat(self) -> Floats:
        return np.ones(-self.low)

    @remembered_property
    def _rounding(self) -> float:
        return 1.0 + (self.masses.size + 8.0) * U

    @remembered_property
    def _smallest(self) -> float:
        """For products below the normal floats."""
        return self.masses.size * TINY


_NOTHING = np.empty(0), np.empty(0)


@remembered(maxsize=1024)
def step_of(grid: Grid, loss: Pld) -> Step:
    """A query on a grid: bounds of the excess and the masses of its chord interpolant."""
    d = float(grid.spacing)
    t = np.arange(2.0 * grid.half + 1.0) * d
    work(100.0 * t.size)
    sides = directions(loss)
    # Smaller tails of one query do not matter; they are cut upwards.
    cut = _until_flat((sides[0], sides[-1]), t, 1e-8 * grid.delta)
    last = cut[0][0].size - 1
    (right_lo, right_hi), (left_lo, left_hi) = cut
    # A curve that is cut is constant from there on.
    right, left = (np.append(hi, np.full(t.size, hi[-1]))[: grid.half + 1] for _, hi in cut)
    far = t[: grid.half + 1]
    left = left * np.exp(-far) * (1.0 + (EXP_ULPS + 4.0 + 4.0 * far) * U)
    excess = np.concatenate([left[:0:-1], [min(right[0], left[0])], right[1:]])
    after, before = (_masses(lo, hi, d) for lo, hi in cut)
    near = t[1 : last + 1]
    before = before * np.exp(-near) * (1.0 + (EXP_ULPS + 6.0 + 4.0 * near) * U)
    e_low = float(np.exp(d)) * (1.0 - (EXP_ULPS + 4.0) * U)
    width = float(np.expm1(d)) * (1.0 + (EXP_ULPS + 4.0) * U)
    low = max(float(right_lo[0]), float(left_lo[0]))
    slopes = (low - right_hi[1]) + (e_low * low - left_hi[1])
    slopes -= 8.0 * U * (3.0 * low + right_hi[1] + left_hi[1])
    middle = min(1.0, max(0.0, (1.0 - slopes / width) * (1.0 + 4.0 * U)))
    masses = np.concatenate([before[::-1], [middle], after])
    return Step(grid, _freeze(excess), -last, _freeze(masses))


def _until_flat(sides: tuple[Pld, Pld], t: Floats, tail: float) -> list[tuple[Floats, Floats]]:
    """Two curves at the first of these points, up to where both are `tail` or less above the end.

    They are read in blocks: far out, a point of a composition takes long and says nothing.
    """

    def read(side: Pld, at: Floats) -> tuple[Floats, Floats]:
        # More accurate than usual: masses are second differences, which lose digits.
        return right_half(side, at, 4.0 * U * at, 1e-7)

    floors = [float(read(side, t[-1:])[0][0]) for side in sides]
    curves: list[tuple[Floats, Floats]] = []
    size = 128
    for start in range(0, t.size, size):
        blocks = [read(side, t[start : start + size]) for side in sides]
        curves = [
            (np.append(lo, more_lo), np.append(hi, more_hi))
            for (lo, hi), (more_lo, more_hi) in zip(curves or [_NOTHING] * 2, blocks, strict=True)
        ]
        flat = np.logical_and(
            *(hi <= floor + tail for (_, hi), floor in zip(curves, floors, strict=True))
        )
        if np.any(flat):
            break
    last = max(2, int(np.argmax(np.append(flat, True))))
    return [(lo[: last + 1], hi[: last + 1]) for lo, hi in curves]


def _masses(lo: Floats, hi: Floats, d: float) -> Floats:
    """Upper bounds of the masses at `d, 2d, …`; the curve is constant after the last point."""
    e = float(np.exp(d)) * (1.0 + (EXP_ULPS + 4.0) * U)
    width = float(np.expm1(d)) * (1.0 - (EXP_ULPS + 4.0) * U)
    ahead = np.append(hi[2:] - lo[1:-1], 0.0)
    behind = e * (hi[:-1] - lo[1:])
    error = 8.0 * U * (np.append(hi[2:] + lo[1:-1], 0.0) + hi[:-1] + lo[1:])
    return np.asarray(np.maximum(ahead + behind + error, 0.0) / width * (1.0 + 4.0 * U))


def _freeze(array: Floats) -> Floats:
    array.flags.writeable = False
    return array


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
        # A level lies above what it is made of by slightly more than the margin of the residue
        # condition: where curves touch, the check would otherwise go down to the next that do not.
        level *= 1.0 + 4.0 * MARGIN
        if not grid.fits(level):
            break
        levels.append(level)
    made = np.array(levels)
    made.flags.writeable = False
    return Table(grid, made)
