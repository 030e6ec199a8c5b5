"""Laws on a lattice that dominate a query, mass by mass.

A `Law` has masses `p_j` at the losses `j d`, `|j| <= J`, a mass at `+inf` and `Q`'s mass at `-inf`.
The floats are upper bounds of what they stand for: the masses of an exact PLD `L⁺`, the chord
interpolant of the query on the lattice, cut at both ends (beyond the last point its curve is
constant, before the first it is the chord to `(0, 1)`; both only raise it). Sums and products of
upper bounds of non-negative numbers are upper bounds, so composition is convolution.

Masses of a curve. With `h_k = h(e^{kd})`, the atom of the interpolant at `k > 0` is `x_k` times the
jump of slopes, that is

    p_k = ((h_{k+1} - h_k) + e^d (h_{k-1} - h_k)) / (e^d - 1),

from upper ends for `h_{k±1}` and lower ends for `h_k`; left of 0 the same for the reversed curve,
times `e^{-kd}`; at 0 what the two slopes beside it leave of 1. Masses of atoms. `(p, z)` between
two lattice points is split so that both `p` and `p e^-z` stay what they are: dominating, and exact
on the lattice.

The excess at lattice points needs no differences: with `S_k = Σ_{j>=k} p_j` and
`A_k = Σ_{j>k} p_j (1 - e^{(k-j)d})`, `A_{k-1} = e^-d A_k + (1 - e^-d) S_k`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, EXPM1_ULPS, TINY, U
from residua.pld.curve.reads import right_half
from residua.pld.families.atoms import ATOM_ULPS, Atoms
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld
from residua.work_limit import remembered, work

_ACCURACY = 1e-3
"""The relative accuracy of the curve at lattice points."""
_SNAP = 1e-9
"""Losses this close to a lattice point (in cells) are moved there; what that costs is charged."""
_START = 16
"""The points of a curve that are evaluated at first; doubled until its tail is small."""


@dataclass(frozen=True, eq=False)
class Law:
    """Upper bounds of the masses at `low, low + 1, …` times the spacing, and of those beyond."""

    spacing: Fraction
    low: int
    """At most 0; the masses reach to 0 at least."""
    masses: Floats
    plus: float
    """`P`'s mass at `+inf`."""
    minus: float
    """`Q`'s mass at `-inf`."""
    ratio: int = 1
    """How many lattice cells make a cell of the grid it is for."""
    chords: float = 0.0
    """About how much chords have added to the variance, relatively, at worst over the factors."""
    repeats: int = 1
    """How many factors were composed on the lattice."""

    @property
    def high(self) -> int:
        return self.low + self.masses.size - 1

    def __add__(self, other: Law) -> Law:
        """The composition."""
        work(
            0.2 * self.masses.size * other.masses.size
            + 40.0 * (self.masses.size + other.masses.size)
        )
        masses = np.convolve(self.masses, other.masses)
        fewer = min(self.masses.size, other.masses.size)
        masses = np.where(masses > 0.0, masses * (1.0 + (fewer + 4.0) * U) + fewer * TINY, 0.0)
        return Law(
            self.spacing,
            self.low + other.low,
            masses,
            _either(self.plus, other.plus),
            _either(self.minus, other.minus),
            self.ratio,
            max(self.chords, other.chords),
            self.repeats + other.repeats,
        )

    def cut(self, reach: int, tail: float) -> Law:
        """The same with fewer atoms, those beyond moved to the ends and to infinity."""
        right, left = self._sides()
        high, low = (_cut_place(side, reach, tail) for side in (right, left))
        if high == self.high and low == -self.low:
            return self
        up = 1.0 + 2.0 * (self.masses.size + 8.0) * U
        masses = self.masses[-low - self.low : high - self.low + 1].copy()
        far = float(right[high + 1 :].sum()) * up
        near = float(self.masses[: -low - self.low].sum()) * up
        lost = float(left[low + 1 :].sum()) * up
        masses[-1] = (masses[-1] + far) * up
        masses[0] = (masses[0] + near) * up
        plus, minus = (self.plus + far) * up, (self.minus + lost) * up
        return replace(self, low=-low, masses=masses, plus=plus, minus=minus)

    def _sides(self) -> tuple[Floats, Floats]:
        """`P`'s masses at `0, d, …` and `Q`'s at `0, -d, …`."""
        return self.masses[-self.low :], self.masses[-self.low :: -1] * self._tilt()

    def _tilt(self) -> Floats:
        """`e^{kd}` for `k = 0 … -low`, rounded up: `q / p` of the atom at `-k`."""
        d = float(self.spacing)
        k = np.arange(1.0 - self.low)
        return np.asarray(np.exp(d * k) * (1.0 + (EXP_ULPS + 4.0 + 4.0 * d * k) * U))

    def power(self, n: int, reach: int, tail: float) -> Law:
        """The `n`-fold composition, cut where almost nothing is left."""
        made: Law | None = None
        square = self
        while n:
            if n & 1:
                made = square if made is None else (made + square).cut(reach, tail)
            n >>= 1
            if n:
                square = (square + square).cut(reach, tail)
        assert made is not None
        return made

    def excess(self, half: int) -> Floats:
        """Upper bounds of the excess at the grid points `-half … half`."""
        work(60.0 * (self.masses.size + half))
        forth, back = self._sides()
        right = self._heights(forth, half, self.plus)
        left = self._heights(back, half, self.minus)
        d = float(self.spacing) * self.ratio
        k = np.arange(half + 1.0)
        left *= np.exp(-d * k) * (1.0 + (EXP_ULPS + 4.0 + 4.0 * d * k) * U)
        middle = max(right[0], left[0])
        return np.concatenate([left[:0:-1], [middle], right[1:]])

    def _heights(self, masses: Floats, half: int, beyond: float) -> Floats:
        """Upper bounds of `h` at the grid points `0 … half`, from masses at `0, d, 2d, …`."""
        from scipy.signal import lfilter

        d = float(self.spacing)
        keep = float(np.exp(-d)) * (1.0 + (EXP_ULPS + 4.0) * U)
        step = -float(np.expm1(-d)) * (1.0 + (EXPM1_ULPS + 4.0) * U)
        sums = np.cumsum(masses[::-1])  # S_J, S_{J-1}, …
        a = lfilter([step], [1.0, -keep], sums)[:-1] if sums.size > 1 else np.empty(0)
        heights = np.concatenate([[0.0], a])[::-1]  # A_0 … A_J
        heights = heights * (1.0 + (32.0 + 8.0 * masses.size) * U) + masses.size * TINY
        out = np.full(half + 1, beyond)
        at = heights[:: self.ratio][: half + 1]
        out[: at.size] += at
        return out * (1.0 + 2.0 * U)

    def coarse(self) -> tuple[int, Floats]:
        """The first grid point with mass, and the masses: atoms split between neighbours."""
        r = self.ratio
        if r == 1:
            return self.low, self.masses.copy()
        d = float(self.spacing)
        first, last = self.low // r, -(-self.high // r)
        padded = np.zeros((last - first) * r + 1)
        start = self.low - first * r
        padded[start : start + self.masses.size] = self.masses
        i = np.arange(float(r))
        lower = np.expm1((r - i) * d) / np.expm1(r * d)
        upper = np.expm1(-i * d) / np.expm1(-r * d)
        body = padded[:-1].reshape(-1, r)
        out = np.zeros(last - first + 1)
        out[:-1] += body @ lower
        out[1:] += body @ upper
        out[-1] += padded[-1]
        return first, out * (1.0 + (2.0 * EXPM1_ULPS + 16.0 + 2.0 * r) * U)


def _either(a: float, b: float) -> float:
    """`1 - (1-a)(1-b)`, rounded up; upper bounds of masses may exceed 1."""
    return (a + b * max(0.0, 1.0 - a)) * (1.0 + 8.0 * U)


def _cut_place(masses: Floats, reach: int, tail: float) -> int:
    """How far to go so that at most `tail` lies beyond (zeros at the end are dropped at least)."""
    beyond = np.cumsum(masses[::-1])[::-1]
    return min(reach, max(1, int(np.count_nonzero(beyond > tail)) - 1), masses.size - 1)


@remembered(maxsize=512)
def law_of(loss: Pld, spacing: Fraction, tail: float, reach: int, ratio: int) -> Law:
    """The law of a query on a lattice; tails below `tail` and beyond `reach` are cut upwards."""
    whole: Law | None = None
    for part, n in _parts(loss):
        law = _factor_law(part, spacing, tail / n, reach, ratio)
        law = replace(law, chords=_chord_share(law)).power(n, reach, tail)
        whole = law if whole is None else (whole + law).cut(reach, tail)
    return whole or Law(spacing, -1, np.array([0.0, 1.0, 0.0]), 0.0, 0.0, ratio)


def _chord_share(law: Law) -> float:
    """About the share of the variance that chords added: none for atoms on the lattice."""
    if np.count_nonzero(law.masses) <= 2:
        return 0.0
    d = float(law.spacing)
    z = np.arange(law.low, law.high + 1) * d
    mean = float(law.masses @ z)
    variance = float(law.masses @ (z * z)) - mean * mean
    return 0.25 * d * d / variance


def _parts(loss: Pld) -> Iterator[tuple[Pld, int]]:
    if loss.gaussian is not None:
        yield Pld(loss.gaussian, {}), 1
    for factor, n in loss.terms.items():
        yield Pld(None, {factor: 1}), n


def _factor_law(part: Pld, spacing: Fraction, tail: float, reach: int, ratio: int) -> Law:
    for factor in part.terms:
        if isinstance(factor, RandomizedResponse):
            keep = 1.0 - factor.delta
            z = np.array([-factor.eps, factor.eps])
            p = keep / (1.0 + np.exp(-z)) * (1.0 + (EXP_ULPS + 8.0) * U)
            return _from_atoms(z, p, 0.0, factor.delta, factor.delta, spacing, reach, ratio)
        if isinstance(factor, Atoms):
            p = factor.p * (1.0 + (ATOM_ULPS + 2.0) * U)
            plus, minus = (
                float(part.mass_at_infinity),
                float(part.mass_at_minus_infinity),
            )
            return _from_atoms(factor.z, p, factor.loss_error, plus, minus, spacing, reach, ratio)
    return _from_curve(part, spacing, tail, reach, ratio)


def _from_atoms(
    z: Floats,
    p: Floats,
    error: float,
    plus: float,
    minus: float,
    spacing: Fraction,
    reach: int,
    ratio: int,
) -> Law:
    """Atoms with losses known up to `error`, split between lattice points."""
    d = float(spacing)
    most = int(np.ceil(np.max(np.abs(z), initial=0.0) / d)) + 1
    work(500.0 * z.size + 20.0 * most, 32.0 * most)
    masses = np.zeros(2 * most + 1)
    for loss, mass in zip(z.tolist(), p.tolist(), strict=True):
        place = loss / d
        near = round(place)
        slack = error / d + 8.0 * U * (abs(place) + 1.0)
        if abs(place - near) <= _SNAP:
            # Moved by `off`, its excess changes by at most p off right of 0 and e^t q off left
            # of it; averaged over any V, by max(p, q) off and e^t times that.
            off = 1.01 * (abs(place - near) + slack) * d
            masses[near + most] += mass
            cost = mass * max(1.0, float(np.exp(-loss))) * off
            plus += cost
            minus += cost
            continue
        k = int(np.floor(place))
        share = float(np.expm1(-(place - k) * d) / np.expm1(-d))
        masses[k + 1 + most] += mass * (share + slack)
        masses[k + most] += mass * (1.0 - share + slack)
    masses *= 1.0 + (z.size + 2.0 * EXPM1_ULPS + 8.0) * U
    up = 1.0 + (z.size + 8.0) * U
    whole = Law(spacing, -most, masses, plus * up, minus * up, ratio)
    return whole.cut(reach, 0.0)


def _from_curve(part: Pld, spacing: Fraction, tail: float, reach: int, ratio: int) -> Law:
    """The chord interpolant of a curve."""
    d = float(spacing)
    count = _START
    while True:
        count = min(count, reach)
        t = np.arange(count + 1.0) * d
        sides = [right_half(who, t, 4.0 * U * t, _ACCURACY) for who in (part, part.reverse())]
        if count == reach or all(hi[-1] <= tail for _, hi in sides):
            break
        count *= 2
    work(100.0 * count)
    ends = [int(np.argmax(np.append(hi, 0.0) <= tail)) for _, hi in sides]
    last = min(count, max(2, *ends))
    sides = [(lo[: last + 1], hi[: last + 1]) for lo, hi in sides]
    (right_lo, right_hi), (left_lo, left_hi) = sides
    right, left = (_half(lo, hi, d) for lo, hi in sides)
    k = np.arange(1.0, last + 1.0)
    left = left * np.exp(-d * k) * (1.0 + (EXP_ULPS + 6.0 + 4.0 * d * k) * U)
    e_low = float(np.exp(d)) * (1.0 - (EXP_ULPS + 4.0) * U)
    width = float(np.expm1(d)) * (1.0 + (EXPM1_ULPS + 4.0) * U)
    low = max(float(right_lo[0]), float(left_lo[0]))
    slopes = (low - right_hi[1]) + (e_low * low - left_hi[1])
    slopes -= 8.0 * U * (3.0 * low + right_hi[1] + left_hi[1])
    middle = min(1.0, max(0.0, (1.0 - slopes / width) * (1.0 + 4.0 * U)))
    masses = np.concatenate([left[::-1], [middle], right])
    plus, minus = float(right_hi[-1]), float(left_hi[-1])
    return Law(spacing, -last, masses, plus, minus, ratio).cut(reach, tail)


def _half(lo: Floats, hi: Floats, d: float) -> Floats:
    """Upper bounds of the masses at `d, 2d, …`; the curve is constant after the last point."""
    e = float(np.exp(d)) * (1.0 + (EXP_ULPS + 4.0) * U)
    width = float(np.expm1(d)) * (1.0 - (EXPM1_ULPS + 4.0) * U)
    ahead = np.append(hi[2:] - lo[1:-1], 0.0)
    behind = e * (hi[:-1] - lo[1:])
    error = 8.0 * U * (np.append(hi[2:] + lo[1:-1], 0.0) + hi[:-1] + lo[1:])
    return np.asarray(np.maximum(ahead + behind + error, 0.0) / width * (1.0 + 4.0 * U))
