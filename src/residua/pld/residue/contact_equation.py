"""Where `A` touches `B` (`excess.py`): the cost `c` of a finite loss under `G_mu`, uncertified.

For each `l` the least `c` with `A(l) <= B(l)` is a scalar equation, and the cost is the largest of
them. Convolving with a Gaussian solves the heat equation, which gives the derivative in closed
form: along `t = l m²` fixed, `A - B` falls by half of `Σ √(pq) e^{lz - z²/2m²}` for a unit of `c`.
So Newton's method in `c` at the best `l`, and the best `l` from where the slopes of `ln A` and `ln
B` agree.

Shorter lists for long ones: one that dominates, and one with the same transform.

**Coarsened.** Splitting `(p, q)` at `z` so that both masses are kept puts `sinh((b-z)/2) /
sinh((b-a)/2)` of its weight `√(pq)` on the point `a` below and likewise on `b` above. The result
dominates.

**Compressed.** As a function of its place the transform of a tent solves `Ψ'' = Ψ/4 + k` with `k(z)
= e^{-z²/2m² + lz}` and `Ψ(0) = Ψ'(0) = 0`, so it is smooth, across 0 too. Interpolating each atom
between the eight nearest points of a lattice of spacing `d` is wrong by at most `(105/16)² d⁸
|Ψ⁽⁸⁾| / 8!`, and

    |Ψ⁽⁸⁾| <= Ψ/256 + k (1/64 + D²/16 + D⁴/4 + D⁶),    D = |l| + |z|/m² + √6/m,

because derivatives of `k` are `k` times Hermite polynomials of the slope. Summed over the atoms
that is an error relative to `A`, charged; the sum of `k` over atoms is bounded lattice cell by
cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import FEW, MANY, MOST_STEPS
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.residue.excess import Budget, FiniteExcess, Transform, gaussian_transform
from residua.work_limit import work

_DENSITY = 30.0
"""Lattice points to a standard deviation of the budget."""
_ROUGH = 48
"""Points of a rough list that dominates."""
_EIGHTH = (105.0 / 16.0) ** 2 / math.factorial(8)


def coarsened(excess: FiniteExcess, count: int) -> FiniteExcess:
    """A dominating list on `count` points: each atom is split between its neighbours."""
    if excess.losses.size <= count:
        return excess
    work(60.0 * excess.losses.size)
    first, last = float(excess.losses[0]), float(excess.losses[-1])
    points = np.linspace(first, last, count)
    if excess.is_symmetric:
        points = 0.5 * (points - points[::-1])
    at = np.clip(np.searchsorted(points, excess.losses, side="right") - 1, 0, count - 2)
    below, above = points[at], points[at + 1]
    whole = np.sinh(0.5 * (above - below))
    lower = excess.weights * np.sinh(0.5 * np.maximum(above - excess.losses, 0.0)) / whole
    upper = excess.weights * np.sinh(0.5 * np.maximum(excess.losses - below, 0.0)) / whole
    weights: Floats = np.zeros(count)
    weights += np.bincount(at, lower, count)
    weights += np.bincount(at + 1, upper, count)
    if excess.is_symmetric:
        weights = 0.5 * (weights + weights[::-1])
    kept = weights > 0.0
    size = max(abs(first), abs(last))
    return FiniteExcess(
        weights[kept],
        points[kept],
        excess.weight_error + (64.0 + 2.0 * excess.losses.size / count) * U,
        excess.loss_error + 8.0 * U * size,
    )


@dataclass(frozen=True, eq=False)
class CompressedExcess(FiniteExcess):
    """A list with almost the transform of a longer one; weights may be negative.

    Its transform is that of the longer list, with the error of interpolation charged.
    """

    spacing: float
    cells: Floats
    """Weights of the longer list, summed between each point and the next."""
    ends: tuple[float, float]
    """Bounds of its losses."""
    above: FiniteExcess
    """A short list that dominates the longer one."""

    @property
    def top(self) -> float:
        return self.ends[1]

    @property
    def bottom(self) -> float:
        return self.ends[0]

    @cached_property
    def reversed(self) -> CompressedExcess:
        return replace(
            self,
            weights=self.weights[::-1].copy(),
            losses=-self.losses[::-1],
            cells=np.append(self.cells[:-1][::-1], 0.0),
            ends=(-self.ends[1], -self.ends[0]),
            above=self.above.reversed,
        )

    def transform(self, m2: float, l: Floats) -> Transform:
        """`ln A(l)` of the longer list."""
        made = super().transform(m2, l)
        work(20.0 * l.size * self.losses.size, 80.0 * l.size * self.losses.size)
        exponent = l[:, None] * self.losses - (0.5 / m2) * self.losses**2 - made.log[:, None]
        heights = np.exp(np.minimum(exponent, 600.0))
        # ln k is concave: between two points it exceeds the larger end by at most d²/8m².
        largest = np.maximum(heights[:, :-1], heights[:, 1:])
        d = self.spacing
        slope = np.abs(l)[:, None] + (np.abs(self.losses[:-1]) + 5.0 * d) / m2 + math.sqrt(6.0 / m2)
        # Within the eight points k is at most e^{5 d D} times what it is at the atom.
        growth = np.exp(np.minimum(5.0 * d * slope + 0.125 * d * d / m2, 600.0))
        # Far from what the points can tell, this overflows: then nothing is known.
        with np.errstate(over="ignore", invalid="ignore"):
            degree = 1.0 / 64.0 + slope**2 / 16.0 + 0.25 * slope**4 + slope**6
            sums = (largest * degree * growth) @ self.cells[:-1]
            wrong = 1.1 * _EIGHTH * d**8 * (1.0 / 256.0 + sums) * (1.0 + math.exp(5.0 * d))
        wrong = np.minimum(np.nan_to_num(wrong, nan=np.inf), 1.0 / _LEAST)
        return made._replace(error=made.error + wrong + 64.0 * U)


def lattice_points(excess: FiniteExcess, m: float) -> int:
    """How many points `compressed` takes."""
    reach = float(excess.losses[-1]) - float(excess.losses[0])
    return int(min(max(_DENSITY * reach / min(m, 2.0), FEW / 2), MANY / 4))


def compressed(excess: FiniteExcess, m: float) -> FiniteExcess:
    """A shorter list with the transform of this one for Gaussians about as wide as `m` or wider."""
    first, last = float(excess.losses[0]), float(excess.losses[-1])
    count = lattice_points(excess, m)
    if excess.losses.size <= 2 * count:
        return excess
    work(100.0 * excess.losses.size)
    step = (last - first) / (count - 9.0)
    nodes = first + step * np.arange(-4.0, count - 4.0)
    if excess.is_symmetric:
        nodes = 0.5 * (nodes - nodes[::-1])
    place = (excess.losses - nodes[0]) / step
    floor = np.clip(np.floor(place).astype(np.int64), 3, count - 5)
    at = place - (floor - 3)
    weights: Floats = np.zeros(count)
    # Lagrange: products of the distances before and after each of the eight points.
    before, after = [excess.weights], [np.ones(1)]
    for j in range(7):
        before.append(before[-1] * (at - j))
        after.append(after[-1] * (at - (7 - j)))
    for k in range(8):
        scale = (-1.0) ** (7 - k) / (math.factorial(k) * math.factorial(7 - k))
        weights += np.bincount(floor - 3 + k, before[k] * after[7 - k] * scale, count)
    cells: Floats = np.zeros(count)
    cells += np.bincount(floor, excess.weights, count)
    if excess.is_symmetric:
        weights = 0.5 * (weights + weights[::-1])
    return CompressedExcess(
        weights,
        nodes,
        2.0 * excess.weight_error + 64.0 * U,
        excess.loss_error + 8.0 * U * max(abs(first), abs(last)),
        step,
        cells * (1.0 + 1e-12),
        (excess.bottom, excess.top),
        coarsened(excess, _ROUGH),
    )


def rough(excess: FiniteExcess) -> FiniteExcess:
    """A short list that dominates."""
    return excess.above if isinstance(excess, CompressedExcess) else coarsened(excess, _ROUGH)


_GRID = np.sinh(np.linspace(0.0, 9.0, 41)) / math.sinh(9.0)
FINE = np.unique(np.concatenate([_GRID, np.linspace(0.0, 1.0, 129)]))
_DENSE = np.sinh(np.linspace(0.0, 9.0, 81)) / math.sinh(9.0)
_TOWARDS = np.linspace(0.0, 1.0, 65)
_DENSE_SCANS = 6
"""With slack the curves are less regular, and bisection costs far more than another scan."""
_SETTLED = 1e-6
"""Relative steps at which the next ones would be about the squares of these."""
_LEAST = 1e-300
"""Costs below this are not tried: their inverses times a loss are floats."""
LESS_THAN_ALL = 1.0 - 1e-13
"""Of `v`: the largest cost that leaves a Gaussian to compose with."""


class Contact(NamedTuple):
    """About the cost `c` and the place `l` where the curves touch."""

    c: float
    l: float


def solve(
    excess: FiniteExcess,
    v: float,
    start: Contact | None = None,
    budget: Budget = gaussian_transform,
    most: float = LESS_THAN_ALL,
    least: float = _LEAST,
) -> Contact:
    """About the cost under `G_√v`, from a contact to improve on or from scratch.

    Costs beyond the share `most` of `v` are not told apart; those below `least` are not tried.
    """
    if start is not None:
        return _newton(excess, v, start, budget, most) or start
    above = rough(excess)
    found: Contact | None = Contact(first_cost(excess, v, least), 0.0)
    for _ in range(1 if budget is gaussian_transform else _DENSE_SCANS):
        scanned = None if found is None else _scan(above, v, found, budget, most)
        if scanned is None:
            break
        found = _newton(above, v, scanned, budget, most)
    if found is None:
        found = bisected(above, v, budget, most, least)
    if above is excess:
        return found
    return _newton(excess, v, found, budget, most) or bisected(excess, v, budget, most, least)


def first_cost(excess: FiniteExcess, v: float, least: float) -> float:
    """Where a search begins: what the Hellinger distance asks for, or `least` if that is more.

    For tiny masses it asks for next to nothing, and such a cost puts the contact so far out that
    floats do not reach it.
    """
    return min(max(-8.0 * math.log1p(-min(excess.missing, 0.999)), least), 0.9 * v)


def bisected(
    excess: FiniteExcess,
    v: float,
    budget: Budget = gaussian_transform,
    most: float = LESS_THAN_ALL,
    least: float = _LEAST,
) -> Contact:
    """The same by bisection over a fine grid, where Newton's method loses its way."""
    low = first_cost(excess, v, least)
    high, at = v * most, 0.0
    for _ in range(MOST_STEPS):
        c = math.sqrt(low * high)
        m2 = v - c
        l = places(excess, m2, c, FINE, budget)
        a, b = excess.transform(m2, l), budget(m2, c, l)
        gap = a.log - b.log
        # One step of Newton's method in l from where it is largest.
        best = int(np.argmax(gap))
        bend = float(a.spread[best] - b.spread[best])
        near = np.array([l[best] - (a.mean[best] - b.mean[best]) / bend if bend < 0.0 else l[best]])
        more = float(excess.transform(m2, near).log[0] - budget(m2, c, near).log[0])
        top, place = (more, float(near[0])) if more > gap[best] else (gap[best], float(l[best]))
        if top > 0.0:
            low, at = c, place
        else:
            high = c
        if high <= low * (1.0 + 1e-5):
            break
    found = _newton(excess, v, Contact(low, at), budget, most)
    return found if found is not None and low <= found.c <= high else Contact(high, at)


def places(
    excess: FiniteExcess, m2: float, c: float, shape: Floats, budget: Budget = gaussian_transform
) -> Floats:
    """A grid of that shape up to where nothing changes any more."""
    ends = (last_place(end, m2, c, budget, sign) for sign, end in _sides(excess))
    right, left = (end * shape for end in ends)
    return right if excess.is_symmetric else np.concatenate([-left[:0:-1], right])


def _sides(excess: FiniteExcess) -> tuple[tuple[float, float], tuple[float, float]]:
    return (1.0, max(excess.top, 0.0)), (-1.0, max(-excess.bottom, 0.0))


def last_place(top: float, m2: float, c: float, budget: Budget, sign: float = 1.0) -> float:
    """About where, on the side of that sign, the slope of `ln B` has reached the largest loss.

    Beyond it `A / B` only falls. A Gaussian alone gets there after about `1/m² + 1/c` times the
    loss; with slack it is often the tail of the slack that does, after `1/m²` times, and a place
    that is far beyond costs dearly: steep transforms are worked out tent by tent.
    """
    far = 1.1 * top * (1.0 / m2 + 1.0 / c)
    if budget is gaussian_transform or far == 0.0:
        return far
    near = min(top / m2, far)
    l = near * (far / near) ** _TOWARDS
    enough = np.flatnonzero(sign * budget(m2, c, sign * l).mean > top)
    return float(l[enough[0]]) if enough.size else far


def _scan(
    excess: FiniteExcess, v: float, found: Contact, budget: Budget, most: float
) -> Contact | None:
    """The place on a grid that asks for the largest cost, unless that is no more than found."""
    c, m2 = found.c, v - found.c
    l = places(excess, m2, c, _GRID if budget is gaussian_transform else _DENSE, budget)
    moves, _ = _moves(excess, m2, c, l, budget)
    best = int(np.argmax(moves))
    if not moves[best] > 1e-6 * c:
        return None
    new = min(c + float(moves[best]), 0.5 * (c + v), v * most)
    return Contact(new, float(l[best]))


def _newton(
    excess: FiniteExcess, v: float, start: Contact, budget: Budget, most: float
) -> Contact | None:
    """Both unknowns together, `ln A = ln B` and equal slopes; None if that does not settle."""
    c, l = start
    fixed = excess.is_symmetric and l == 0.0
    for _ in range(MOST_STEPS):
        m2 = v - c
        moves, (slope, bend) = _moves(excess, m2, c, np.array([l]), budget)
        move = float(moves[0])
        new = c + move
        if not 0.0 < new < v:
            new = 0.5 * (c + (v if move > 0.0 else 0.0))
        if new >= v * most:
            new = v * most
            if c == new:
                return Contact(c, l)
        reach = 0.5 * math.sqrt(1.0 / m2 + 1.0 / c)
        step = 0.0 if fixed else -slope / bend if bend < 0.0 else math.copysign(reach, slope)
        step = min(max(step, -reach), reach)
        # Newton's step in c is at fixed t = l m².
        l = (l + step) * (m2 / (v - new))
        settled = abs(new - c) <= _SETTLED * c and abs(step) <= 1e-4 * reach
        c = new
        if settled:
            return Contact(c, l)
    return None


def _moves(
    excess: FiniteExcess, m2: float, c: float, l: Floats, budget: Budget
) -> tuple[Floats, tuple[float, float]]:
    """Newton's step in `c` at each `l`; slope and bend of `ln A - ln B` at the first."""
    a, b = excess.transform(m2, l), budget(m2, c, l)
    difference = np.expm1(np.minimum(a.log - b.log, 50.0))
    share = np.exp(np.clip(b.log - excess.log_density(m2, l), -700.0, 600.0))
    slope, bend = float(a.mean[0] - b.mean[0]), float(a.spread[0] - b.spread[0])
    return np.asarray(2.0 * difference * share), (slope, bend)
