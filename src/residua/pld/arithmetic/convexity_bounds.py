"""Chords above, tangents below: what convexity proves between sampled points.

A hockey-stick curve `h(x)` is convex and decreasing with slope at least -1. Sampled at
`x_i = e^{t_i}` with enclosures `[lo_i, hi_i]`, it lies on each cell `[x_i, x_{i+1}]`

* below the chord through the upper ends, and
* above two lines: the chord of the cell before, extended to the right, and the chord of
  the cell after, extended to the left.

The two lines cross inside the cell; that point is the deepest the curve can hang. Both
bounds are within `O(width²)` of the curve. Everything is relative to `x_i`, in
`w = x/x_i - 1`, so that no `x` overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import ROUNDING


@dataclass(frozen=True)
class Cells:
    """The lower bound of a sampled curve on each cell: `max(left + a w, right + b (w - width))`."""

    width: Floats
    left: Floats
    left_slope: Floats
    right: Floats
    right_slope: Floats
    slack: Floats
    """Rounding allowance for any value computed from these lines."""

    def bottom(self) -> tuple[Floats, Floats]:
        """Where in the cell the bound is lowest (as `w`), and its value there, rounded down."""
        a, b = self.left_slope, self.right_slope
        flat = b - a
        cross = (self.left - self.right + b * self.width) / np.where(flat > 0.0, flat, 1.0)
        w = np.clip(np.where(flat > 0.0, cross, 0.0), 0.0, self.width)
        return w, self.at(w)

    def at(self, w: Floats) -> Floats:
        """The lower bound at `w`, rounded down."""
        value = np.maximum(
            self.left + self.left_slope * w, self.right + self.right_slope * (w - self.width)
        )
        return value - self.slack


def lower_cells(t: Floats, lo: Floats, hi: Floats) -> Cells:
    """Lower bounds on the cells of a curve sampled at increasing `t`."""
    gaps = np.diff(t)
    width = np.expm1(gaps)
    # Chord of the cell before, per unit of w of this cell; -x_0 (slope -1) for the first.
    before = np.empty_like(width)
    before[0] = -np.exp(min(float(t[0]), 700.0))
    before[1:] = (lo[1:-1] - hi[:-2]) / -np.expm1(-gaps[:-1])
    # Chord of the cell after; flat for the last (the curve decreases).
    after = np.zeros_like(width)
    after[:-1] = (hi[2:] - lo[1:-1]) / (np.exp(gaps[:-1]) * np.expm1(gaps[1:]))
    after = np.minimum(after, 0.0)
    slack = ROUNDING * (hi[:-1] + np.abs(before) * width + np.abs(after) * width)
    return Cells(width, lo[:-1], before, lo[1:], after, slack)


def chord(hi: Floats, width: Floats, w: Floats) -> Floats:
    """The chord through the upper ends at `w`, rounded up."""
    value = hi[:-1] + (hi[1:] - hi[:-1]) * (w / width)
    return value + ROUNDING * hi[:-1]


def lower_hull(x: Sequence[Any], v: Sequence[Any]) -> list[int]:
    """Indices of the lower convex hull of points with increasing `x`; exact for exact numbers."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (v[b] - v[a]) * (x[i] - x[b]) < (v[i] - v[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return kept
