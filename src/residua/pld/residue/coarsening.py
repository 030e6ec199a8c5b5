"""Shorter lists for long ones: one that dominates, and one with the same transform.

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
cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.residue.excess import FiniteExcess, Transform
from residua.work_limit import work

LONG = 256
"""Lists up to this length are used as they are."""
_DENSITY = 30.0
"""Lattice points to a standard deviation of the budget."""
_ROUGH = 48
_FEWEST, _MOST = 1 << 8, 1 << 12
_NOTHING = 1e300
"""The error of what says nothing."""
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
        degree = 1.0 / 64.0 + slope**2 / 16.0 + 0.25 * slope**4 + slope**6
        # Within the eight points k is at most e^{5 d D} times what it is at the atom.
        growth = np.exp(np.minimum(5.0 * d * slope + 0.125 * d * d / m2, 600.0))
        # Far from what the points can tell, this overflows: then nothing is known.
        with np.errstate(over="ignore", invalid="ignore"):
            sums = (largest * degree * growth) @ self.cells[:-1]
            wrong = 1.1 * _EIGHTH * d**8 * (1.0 / 256.0 + sums) * (1.0 + math.exp(5.0 * d))
        wrong = np.minimum(np.nan_to_num(wrong, nan=_NOTHING, posinf=_NOTHING), _NOTHING)
        return made._replace(error=made.error + wrong + 64.0 * U)


def lattice_points(excess: FiniteExcess, m: float) -> int:
    """How many points `compressed` takes."""
    reach = float(excess.losses[-1]) - float(excess.losses[0])
    return int(min(max(_DENSITY * reach / min(m, 2.0), _FEWEST), _MOST))


def compressed(excess: FiniteExcess, m: float) -> FiniteExcess:
    """A shorter list with the transform of this one for Gaussians about as wide as `m` or wider."""
    first, last = float(excess.losses[0]), float(excess.losses[-1])
    count = lattice_points(excess, m)
    if excess.losses.size <= max(LONG, 2 * count):
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
