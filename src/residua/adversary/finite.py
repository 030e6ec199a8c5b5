"""Queries as finite PLDs with rational masses, on a stated side.

Exact worst cases need exact atoms. A finite PLD with rational masses is taken as it is. A
randomized response has irrational masses: its testing region is a triangle on the diagonal's
upper side, and the corner is moved outwards (`above`) or inwards (`below`) to dyadic rationals
of 64 bits or more, so that it stays symmetric:

    (0, delta),  (1 - delta - p, delta + p),  (1 - delta, 1),      p = (1 - delta)/(1 + e^-eps).

Everything else (Gaussians, Laplaces, mixtures) is replaced by a finite PLD just above or just
below it (`pld/discretise/finite.py`), `accuracy` apart in `eps`, with atoms merged within that
share (`coarsen`).

Upper sides are for guarantees, lower sides for attacks: `⊕` and `sup` are monotone.

**Fewer atoms**, on a stated side, make long games affordable. Two curves of a finite PLD matter:
`h`, and its excess over that of `Id`, `e(x) = h(x) - (1 - x)_+`, which for `x < 1` is `x` times the
reversed curve at `1/x`.

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
from functools import partial

import numpy as np

from residua.pld.arithmetic.exact import (
    EXACT_IDENTITY,
    GRID,
    ExactAtoms,
    Side,
    exp_of,
    floats,
    region,
)
from residua.pld.curve import right_half
from residua.pld.discretise.finite import Profile, finite, listed_atoms, region_above
from residua.pld.families.atoms import Atoms
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.pld import Pld
from residua.work_limit import remembered


def coarsen(atoms: ExactAtoms, side: Side, share: float) -> ExactAtoms:
    """A PLD above or below `atoms`, of fewer atoms, whose excess is within `1 ± share`."""
    if len(atoms) <= 8:  # nothing to gain
        return atoms
    if side == "above":
        return _connect_kinks(atoms, _kept_places(len(atoms), _Excess(atoms, share).chord_fits))
    return _inner_hull(atoms, _kept_places(len(atoms) + 1, _Excess(atoms, share).corners_may_go))


def _connect_kinks(atoms: ExactAtoms, kept: list[int]) -> ExactAtoms:
    x = [atoms.kink(i) for i in kept]
    v = [atoms.height(i + 1, at.numerator, at.denominator) for i, at in zip(kept, x, strict=True)]
    total = Fraction(atoms.q_den - atoms.q_inf, atoms.q_den)
    return region_above(x, v, False, None, total)


def _inner_hull(atoms: ExactAtoms, kept: list[int]) -> ExactAtoms:
    points = []
    for i in kept:
        q = -(-atoms.q_tails[i] * GRID // atoms.q_den)
        points.append((q, max(atoms.p_tails[i] * GRID // atoms.p_den, q)))
    return region(points, GRID, GRID)


def _kept_places(count: int, fine: Callable[[int, int], bool]) -> list[int]:
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


class _Excess:
    """The curve of some atoms and its excess, in floats, and what may be left out of them."""

    def __init__(self, atoms: ExactAtoms, share: float):
        self.share = share
        # Tails at and above each atom, and what lies below it, of P and of Q.
        self.p_up = floats(atoms.p_tails, atoms.p_den)
        self.q_up = floats(atoms.q_tails, atoms.q_den)
        self.p_down = floats([atoms.p_den - t for t in atoms.p_tails], atoms.p_den)
        self.q_down = floats([atoms.q_den - t for t in atoms.q_tails], atoms.q_den)
        with np.errstate(all="ignore"):
            self.x = floats(atoms.p, atoms.p_den) / floats(atoms.q, atoms.q_den)
            self.h = self.p_up[1:] - self.x * self.q_up[1:]
            below = self.x * self.q_down[:-1] - self.p_down[:-1]
        self.excess = np.where(self.x >= 1.0, self.h, below)

    def chord_fits(self, a: int, b: int) -> bool:
        """Whether a chord between two kinks stays within the share of the excess."""
        inner, x = slice(a + 1, b), self.x
        # Where 1 lies between the two, the excess has another kink there.
        whole = self.h if x[a] < 1.0 < x[b] else self.excess
        with np.errstate(all="ignore"):
            weight = (x[inner] - x[a]) / (x[b] - x[a])
            chord = whole[a] + weight * (whole[b] - whole[a])
            return bool(np.all(chord - whole[inner] <= self.share * self.excess[inner]))

    def corners_may_go(self, a: int, b: int) -> bool:
        """Whether the corners between two may go: the curve loses most where their lines meet."""
        with np.errstate(all="ignore"):
            if self.q_up[a] <= 0.5:
                x = (self.p_up[a] - self.p_up[b]) / (self.q_up[a] - self.q_up[b])
            else:
                x = (self.p_down[b] - self.p_down[a]) / (self.q_down[b] - self.q_down[a])
            best = min(max(int(np.searchsorted(self.x, x, side="right")), a), b)
            here, left = self._at_corner(best, x), self._at_corner(a, x)
            return bool(here - left <= self.share * here)

    def _at_corner(self, corner: int, x: float) -> float:
        if x >= 1.0:
            return float(self.p_up[corner] - x * self.q_up[corner])
        return float(x * self.q_down[corner] - self.p_down[corner])


RESPONSE_BITS = 64
"""Masses of randomized responses are rounded to multiples of 2^-RESPONSE_BITS, or finer."""
ACCURACY = 1e-3
"""The accuracy of queries that are not finite, in `eps`, unless another is asked for."""


def is_exact(pld: Pld) -> bool:
    """Whether both sides are the PLD itself."""
    rational = pld.gaussian is None and all(type(factor) is Atoms for factor in pld.terms)
    return rational and _written_out(pld, "above") is not None


def irrational_factors(pld: Pld) -> int | None:
    """How many factors have rounded masses, each by 2^-64 at most; None if there is more to it."""
    if _written_out(pld, "above") is None:
        return None
    return sum(n for factor, n in pld.terms.items() if isinstance(factor, RandomizedResponse))


@remembered(maxsize=4096)
def finite_atoms(pld: Pld, side: Side, accuracy: float = ACCURACY) -> ExactAtoms:
    """Rational atoms of a PLD that dominates the given one, or is dominated by it."""
    whole = _written_out(pld, side)
    return _smooth(pld, side, accuracy) if whole is None else whole


@remembered(maxsize=4096)
def _written_out(pld: Pld, side: Side) -> ExactAtoms | None:
    """All atoms of a composition of at most 200 finite factors; None for anything else."""
    if pld.gaussian is not None or sum(pld.terms.values()) > 200:
        return None
    whole = EXACT_IDENTITY
    for factor, n in pld.terms.items():
        if isinstance(factor, RandomizedResponse):
            atoms = _response(factor, side)
        elif isinstance(factor, Atoms):
            atoms = factor.exact
        else:
            return None
        for _ in range(n):
            if len(whole) * len(atoms) > 1 << 16:
                return None
            whole = whole.compose(atoms)
    return whole


def _response(factor: RandomizedResponse, side: Side) -> ExactAtoms:
    delta, eps = Fraction(factor.delta), Fraction(factor.eps)
    # The smaller mass is about e^-eps, so it keeps log2(e) < 1.45 bits more for each unit of eps.
    grid = max(1 << (RESPONSE_BITS + int(1.45 * factor.eps) + 1), delta.denominator)
    e = exp_of(eps, side)
    kept = 1 - delta
    p = kept * e / (1 + e) * grid
    top = -(-p.numerator // p.denominator) if side == "above" else p.numerator // p.denominator
    rest = int(kept * grid) - top
    return ExactAtoms((rest, top), (top, rest), grid, grid)


def _smooth(pld: Pld, side: Side, accuracy: float) -> ExactAtoms:
    ways = pld, pld.reverse()
    right, left = (partial(right_half, way, accuracy=accuracy) for way in ways)
    ends = tuple(float(way.mass_at_infinity_bounds.lo) for way in ways)
    made = finite(Profile(right, left, (ends[0], ends[1])), accuracy, side)
    if made.is_identity:
        return EXACT_IDENTITY
    return coarsen(listed_atoms(made).exact, side, accuracy)
