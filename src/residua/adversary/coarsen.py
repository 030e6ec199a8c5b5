"""Fewer atoms, on a stated side: what makes long games affordable.

Two curves of a finite PLD matter: `h`, and its excess over that of `Id`,
`e(x) = h(x) - (1 - x)_+`, which for `x < 1` is `x` times the reversed curve at `1/x`.

* above: keep some kinks of `h` and connect the dots. A chord of a convex curve lies above it.
* below: keep some corners of the testing region. Their hull lies inside it.

Either moves `h` by at most `share · e(x)`. Such errors do not pile up beyond a factor: if
`h_V` is off by at most `c · e_V`, then `h_{L ⊕ V}(x) = E h_V(x e^-Z)` is off by at most
`c · E e_V(x e^-Z) = c (h_{L ⊕ V} - h_L)(x) <= c · e_{L ⊕ V}(x)`, and a supremum is off by no
more than its members are. After `k` rounds the excess is within a factor `(1 ± share)^k`.

Floats choose what is kept; the sides are proven whatever they choose. Results are rounded
outwards to multiples of 2^-400.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.exact import ExactAtoms, floats, region
from residua.pld.arithmetic.rational import Side
from residua.pld.discretise.finite import region_above

_GRID = 1 << 400
_FEW = 8


def coarsened(atoms: ExactAtoms, side: Side, share: float) -> ExactAtoms:
    """A PLD above or below `atoms`, of fewer atoms, whose excess is within `1 ± share`."""
    if len(atoms) <= _FEW:
        return atoms
    if side == "above":
        return _connected(atoms, _stops(len(atoms), _Chords(atoms, share)))
    return _inside(atoms, _stops(len(atoms) + 1, _Corners(atoms, share)))


def _connected(atoms: ExactAtoms, kept: list[int]) -> ExactAtoms:
    x = [atoms.kink(i) for i in kept]
    v = [atoms.height(i + 1, at.numerator, at.denominator) for i, at in zip(kept, x, strict=True)]
    total = Fraction(atoms.q_den - atoms.q_inf, atoms.q_den)
    return region_above(x, v, False, None, total)


def _inside(atoms: ExactAtoms, kept: list[int]) -> ExactAtoms:
    points = []
    for i in kept:
        q = -(-atoms.q_tails[i] * _GRID // atoms.q_den)
        points.append((q, max(atoms.p_tails[i] * _GRID // atoms.p_den, q)))
    return region(points, _GRID, _GRID)


def _stops(count: int, fine: Callable[[int, int], bool]) -> list[int]:
    """The first, the last, and from each kept place the farthest that is still fine."""
    kept = [0]
    while kept[-1] < count - 1:
        start, step = kept[-1], 1
        while start + 2 * step < count and fine(start, start + 2 * step):
            step *= 2
        low, high = start + step, min(start + 2 * step, count) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fine(start, middle) else (low, middle - 1)
        kept.append(min(low, count - 1))
    return kept


class _Chords:
    """Whether a chord between two kinks stays within the share of the excess."""

    def __init__(self, atoms: ExactAtoms, share: float):
        self.share = share
        p, q = floats(atoms.p, atoms.p_den), floats(atoms.q, atoms.q_den)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.x = p / q
        p_up, q_up, p_down, q_down = _sums(atoms)
        self.h = p_up[1:] - self.x * q_up[1:]
        self.excess = np.where(self.x >= 1.0, self.h, self.x * q_down[:-1] - p_down[:-1])

    def __call__(self, a: int, b: int) -> bool:
        inner = slice(a + 1, b)
        x, whole = self.x, self.h if x_straddles(self.x, a, b) else self.excess
        with np.errstate(all="ignore"):
            weight = (x[inner] - x[a]) / (x[b] - x[a])
            chord = whole[a] + weight * (whole[b] - whole[a])
            return bool(np.all(chord - whole[inner] <= self.share * self.excess[inner]))


class _Corners:
    """Whether the corners between two may go: the curve loses most where their lines meet."""

    def __init__(self, atoms: ExactAtoms, share: float):
        self.share = share
        p, q = floats(atoms.p, atoms.p_den), floats(atoms.q, atoms.q_den)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.ratios = p / q
        self.p_up, self.q_up, self.p_down, self.q_down = _sums(atoms)

    def __call__(self, a: int, b: int) -> bool:
        with np.errstate(all="ignore"):
            if self.q_up[a] <= 0.5:
                x = (self.p_up[a] - self.p_up[b]) / (self.q_up[a] - self.q_up[b])
            else:
                x = (self.p_down[b] - self.p_down[a]) / (self.q_down[b] - self.q_down[a])
            best = int(np.searchsorted(self.ratios, x, side="right"))
            best = min(max(best, a), b)
            here, left = self._excess(best, x), self._excess(a, x)
            return bool(here - left <= self.share * here)

    def _excess(self, corner: int, x: float) -> float:
        if x >= 1.0:
            return float(self.p_up[corner] - x * self.q_up[corner])
        return float(x * self.q_down[corner] - self.p_down[corner])


def x_straddles(x: Floats, a: int, b: int) -> bool:
    """Whether 1 lies between two kinks: there the excess has a kink of its own."""
    return bool(x[a] < 1.0 < x[b])


def _sums(atoms: ExactAtoms) -> tuple[Floats, Floats, Floats, Floats]:
    """Tails at and above each atom, and what lies below it, of `P` and of `Q`."""
    p_up, q_up = floats(atoms.p_tails, atoms.p_den), floats(atoms.q_tails, atoms.q_den)
    p_down = floats([atoms.p_den - t for t in atoms.p_tails], atoms.p_den)
    q_down = floats([atoms.q_den - t for t in atoms.q_tails], atoms.q_den)
    return p_up, q_up, p_down, q_down
