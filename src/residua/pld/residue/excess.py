"""Excess of a privacy loss over none, and its Gaussian transform: what a residue is computed from.

The *excess* of `L` is `e_L(y) = e^{-y/2} (h_L(e^y) - (1 - e^y)_+)`, non-negative, zero for `Id`,
mirrored by reversal. Composing with `G_m` convolves `e_L` with the density of `N(0, m²)`, up to the
constant `e^{-m²/8}` and the excess of `G_m` itself; so with `v = mu²`, `m² = v - c`,

    G_m ⊕ L ⪯ G_mu   iff   A(l) <= B(l) for all real l,
    A(l) = ∫ e_L(y) e^{-y²/2m² + ly} dy,     B(l) the same for G_√c        (x = e^t, t = l m²).

Both are moment generating functions of positive measures, hence log-convex in `l`. The excess of
atoms `(p, q)` at `z` is a sum of tents, `√(pq) 2 sinh((|z| - |y|)/2)` between 0 and `z`, and the
excess of `G_√c` is a mixture of normal densities, `½ ∫ e^{-s/8} φ_s(y) ds` over `0 < s < c`. So

    A(l) = Σ √(pq) ∫ 2 sinh((|z|-y)/2) e^{-y²/2m² ± ly} dy                   over 0 < y < |z|,
    B(l) = ½ m² ∫ exp(w/2 - m² (e^w - 1)/8 + ½ l² m² (1 - e^-w)) dw           over 0 < w < ln v/m².

Every integrand is positive, log-concave and entire: Gauss–Legendre panels of `_ORDER` nodes give
both with relative accuracy however small the loss, since nothing is subtracted. The panels are at
most `m` long and short beside the slope of the logarithm; the Bernstein ellipse of parameter 9 then
bounds the relative error by 3e-14 for the panel at the peak. What is outside the window is below
`e^-40` of what is inside. Both are covered by `QUADRATURE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic import BATCH
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, MILLS_ULPS, U, mills_ratio
from residua.pld.residue.excess_nodes import (
    QUADRATURE,
    Nodes,
    longest_panel,
    quadrature,
)
from residua.work_limit import remembered, work

_ORDER = 12
"""Nodes of a panel."""
_MANY = 64
"""Atoms from which on short tents are kept apart from long ones."""
_UNRESOLVED = 64.0
"""How much larger than its error the excess must be, in units of `d²`."""
_DROP = 40.0
"""Exponents that far below the largest are left out."""


class Transform(NamedTuple):
    """`ln A` (or `ln B`) with its absolute error, and about its two derivatives, at each `l`."""

    log: Floats
    error: Floats
    mean: Floats
    spread: Floats


Budget = Callable[[float, float, Floats], Transform]
"""`ln B` of what a budget lets through: a function of `m²`, `c` and `l`."""


@lru_cache(maxsize=64)
def panels(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1] of that many equal panels."""
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    starts = np.arange(count)[:, None]
    return ((starts + 0.5 * (x + 1.0)) / count).ravel(), np.tile(0.5 * w, count) / count


@dataclass(frozen=True, eq=False)
class FiniteExcess:
    """The excess of finitely many atoms: weights `√(pq)` and losses, with their errors."""

    weights: Floats
    losses: Floats
    weight_error: float
    """Relative."""
    loss_error: float
    """Absolute."""

    @cached_property
    def top(self) -> float:
        """An upper bound on the largest loss."""
        return float(self.losses[-1]) + self.loss_error

    @cached_property
    def bottom(self) -> float:
        """A lower bound on the smallest loss."""
        return float(self.losses[0]) - self.loss_error

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the excess is even, exactly (as the losses and weights are given)."""
        return bool(
            np.array_equal(self.losses, -self.losses[::-1])
            and np.array_equal(self.weights, self.weights[::-1])
        )

    @cached_property
    def reversed(self) -> FiniteExcess:
        """The excess of the reversal: mirrored."""
        return FiniteExcess(
            self.weights[::-1].copy(), -self.losses[::-1], self.weight_error, self.loss_error
        )

    @cached_property
    def missing(self) -> float:
        """`1 - Σ √(pq)`, about: the squared Hellinger distance."""
        return float(self.weights @ (2.0 * np.sinh(0.25 * self.losses) ** 2))

    @cached_property
    def is_resolved(self) -> bool:
        """Whether the losses are known well enough to tell the excess from none at all.

        Losses off by `d` move `A` by up to `36 d²` of the weights (`_loss_effect`), which for
        masses below `1e-28` or so beside a loss of about 0 is as much as `A` itself.
        """
        return self.missing > _UNRESOLVED * self.loss_error**2

    def log_density(self, m2: float, l: Floats) -> Floats:
        """About `ln Σ √(pq) e^{lz - z²/2m²}`: how fast `A - B` falls as `c` grows, times two."""
        work(5.0 * l.size * self.losses.size, 32.0 * l.size * self.losses.size)
        exponent = l[:, None] * self.losses - (0.5 / m2) * self.losses**2
        top = exponent.max(axis=1)
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(np.exp(exponent - top[:, None]) @ self.weights))

    def transform(self, m2: float, l: Floats) -> Transform:
        """`ln A(l)`; `m2` may be off by `2u` relative."""
        nodes = self._nodes(m2, l)
        return self._tent_by_tent(m2, l) if nodes is None else self._at_nodes(nodes, m2, l)

    def _nodes(self, m2: float, l: Floats) -> Nodes | None:
        """One quadrature for all of these `l`, unless the losses reach too far for that."""
        reach = max(self.top, -self.bottom)
        return _quadrature(self, longest_panel(m2, float(np.abs(l).max(initial=0.0)) + reach / m2))

    def _at_nodes(self, nodes: Nodes, m2: float, l: Floats) -> Transform:
        rows = max(1, BATCH // nodes.places.size)
        if l.size > rows:
            pieces = [l[start : start + rows] for start in range(0, l.size, rows)]
            parts = [self._at_nodes(nodes, m2, piece) for piece in pieces]
            return Transform(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        y = nodes.places
        work(6.0 * l.size * y.size, 24.0 * l.size * y.size)
        exponent = l[:, None] * y
        exponent += nodes.logs - (0.5 / m2) * (y * y)
        top = exponent.max(axis=1)
        exponent -= top[:, None]
        np.exp(exponent, out=exponent)
        total, first, second, whole, slope = (exponent @ nodes.columns).T
        mean = first / total
        log = np.log(total) + top
        size = np.abs(l) * nodes.reach + (0.5 / m2) * nodes.reach**2
        wrong = self.weight_error + QUADRATURE + (nodes.ulps + 8.0 * (size + np.abs(log))) * U
        wrong = wrong * (whole / total) + self._moved(m2, l, log, slope / total, whole / total)
        return Transform(log, 1.01 * wrong, mean, second / total - mean * mean)

    def _moved(self, m2: float, l: Floats, log: Floats, slope: Floats, whole: Floats) -> Floats:
        """How far errors of the losses move the sum, relative to it.

        As `Ψ'' = Ψ/4 + k`, `Ψ` moves by at most `d (|Ψ'| + d Ψ/4 + d sup k)` over a distance `d`.
        """
        d = self.loss_error
        if d == 0.0:
            return np.zeros(l.size)
        steep = np.abs(l) + max(self.top, -self.bottom) / m2
        work(5.0 * l.size * self.losses.size, 32.0 * l.size * self.losses.size)
        exponent = l[:, None] * self.losses - (0.5 / m2) * self.losses**2 - log[:, None]
        bend = np.exp(np.minimum(exponent, 600.0)) @ np.abs(self.weights)
        near = np.exp(np.minimum(2.0 * d * steep, 600.0))
        return np.asarray(1.01 * d * (slope + d * (whole + near * bend)))

    def _tent_by_tent(self, m2: float, l: Floats) -> Transform:
        """The same for each tent by itself, in a separate window."""
        rows = max(1, BATCH // (2 * _ORDER * max(self.losses.size, 1)))
        if l.size <= rows:
            return self._by_length(m2, l)
        parts = [self._by_length(m2, l[start : start + rows]) for start in range(0, l.size, rows)]
        return Transform(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _by_length(self, m2: float, l: Floats) -> Transform:
        """Short tents take few panels: keep them apart from long ones if there are many."""
        short = np.abs(self.losses) <= 2.0 * math.sqrt(m2)
        together = self.losses.size < _MANY or short.all() or not short.any()
        # Weights of a compressed list cancel: a part of it may come to less than nothing.
        if together or float(self.weights.min()) < 0.0:
            return self._rows(m2, l)
        one, other = (self._part(kept)._rows(m2, l) for kept in (short, ~short))
        log = np.logaddexp(one.log, other.log)
        share = np.exp(one.log - log)
        mean = share * one.mean + (1.0 - share) * other.mean
        spread = share * one.spread + (1.0 - share) * other.spread
        spread = spread + share * (1.0 - share) * (one.mean - other.mean) ** 2
        return Transform(log, np.maximum(one.error, other.error) + 32.0 * U, mean, spread)

    def _part(self, kept: NDArray[np.bool_]) -> FiniteExcess:
        return FiniteExcess(
            self.weights[kept], self.losses[kept], self.weight_error, self.loss_error
        )

    def _rows(self, m2: float, l: Floats) -> Transform:
        """The same; rows that need as many panels go together."""
        m = math.sqrt(m2)
        work(30.0 * l.size * self.losses.size, 120.0 * l.size * self.losses.size)
        length = np.abs(self.losses)
        # With y = |z| - d: slope of the exponent in y at y = 0 is `pull`.
        pull = np.sign(self.losses) * l[:, None]
        centre = np.minimum(np.maximum((pull - 0.5) * m2, 0.0), length)
        # Where the slope is still positive at `y = |z|`, the far end of the tent is what matters.
        rise = (pull - 0.5) - length / m2
        fall = 0.5 - pull
        left = np.minimum(10.0 * m, 1.4 * _DROP / np.maximum(rise, 1e-300))
        right = np.minimum(9.0 * m, _DROP / np.maximum(fall, 1e-300))
        low = np.maximum(centre - left, 0.0)
        high = np.minimum(centre + right, length)
        slope = np.maximum(np.maximum(rise, fall), 0.0)
        longest = np.minimum(min(m, 4.0), 6.0 / np.maximum(slope, 1e-300))
        needed = np.ceil(((high - low) / longest).max(axis=1, initial=1.0))
        if l.size == 1:
            return self._integrals(m2, l, pull, low, high, int(needed[0]))
        kinds = np.ceil(2.0 * np.log2(needed))
        columns = [np.empty(l.size) for _ in range(4)]
        for kind in np.unique(kinds):
            rows = np.flatnonzero(kinds == kind)
            count = int(needed[rows].max())
            part = self._integrals(m2, l[rows], pull[rows], low[rows], high[rows], count)
            for column, values in zip(columns, part, strict=True):
                column[rows] = values
        return Transform(*columns)

    def _integrals(
        self, m2: float, l: Floats, pull: Floats, low: Floats, high: Floats, count: int
    ) -> Transform:
        """Each tent's part between `low` and `high`, with that many panels."""
        length = np.abs(self.losses)
        x, w = panels(count)
        size_of_all = l.size * self.losses.size * x.size
        work(12.0 * size_of_all, 64.0 * size_of_all)
        width = high - low
        # Both from the same end: `|z| - d` would move nodes by a unit of `|z|`, however narrow the
        # window.
        step = width[..., None] * x
        d, y = (length - high)[..., None] + step, high[..., None] - step
        exponent = (pull[..., None] - (0.5 / m2) * y) * y - 0.5 * d
        top = exponent.max(axis=(1, 2))
        integrand = np.exp(exponent - top[:, None, None]) * np.expm1(d)
        pulled = integrand * y
        scale = width * self.weights
        tents = (integrand @ w) * scale
        whole = np.abs(tents).sum(axis=1)
        # Where every part underflows nothing is known of the sum.
        lost = whole == 0.0
        total = np.where(lost, 1.0, np.maximum(tents.sum(axis=1), U * whole))
        mean = ((pulled @ w) * scale) @ np.sign(self.losses) / total
        spread = (((pulled * y) @ w) * scale).sum(axis=1) / total - mean * mean
        # Of the weights, the losses (see `_loss_effect`), the exponents and the sums. In units of
        # `u`, nodes are off by `2 y`, which moves exponents by at most `2 y (|l| + y/m²)`, and `d`
        # by `3 d`, which moves what depends on it by `6 (1 + d)`; with `y <= |l| m² + 10 m` and
        # `y <= |z|` that is covered, as is the rounding of exponents themselves.
        size = (np.abs(l) + 1.0) * float(length.max()) + np.abs(top) + _DROP
        ulps = 2.0 * EXP_ULPS + 96.0 + 2.0 * w.size + 16.0 * size
        wrong = (self.weight_error + QUADRATURE + ulps * U) * (whole / total)
        wrong = wrong + self._loss_effect(l, length, np.abs(tents)) / total
        wrong = np.where(lost, np.inf, 1.01 * wrong)
        return Transform(np.log(total) + top, wrong, mean, spread)

    def _loss_effect(self, l: Floats, length: Floats, tents: Floats) -> Floats:
        """How far errors of the losses move the sum: `d ln Ψ / d|z| <= 2/|z| + 1/2 + |l|`.

        (Scale `y` by `|z|` and use `x coth x <= 1 + x`.)
        """
        if self.loss_error == 0.0:
            return np.zeros(l.size)
        near = np.where(length > 4.0 * self.loss_error, length, np.inf)
        effect = tents @ (2.0 / near) + tents.sum(axis=1) * (0.5 + np.abs(l))
        # Atoms closer to 0 than that have at most (5 δ)² of it each.
        tiny = float(self.weights[~np.isfinite(near)].sum()) * 36.0 * self.loss_error
        return np.asarray(self.loss_error * (1.05 * effect + tiny))


@remembered(maxsize=32, once=False)
def _quadrature(excess: FiniteExcess, kind: int) -> Nodes | None:
    """One quadrature for panels of length up to `2^kind`; the long ones have some megabytes."""
    return quadrature(excess.weights, excess.losses, kind)


def gaussian_transform(m2: float, c: float, l: Floats) -> Transform:
    """`ln B(l)` of `G_√c`; `m2` and `c` may be off by `2u` relative."""
    end = math.log1p(c / m2)
    half = 0.5 * l * l * m2
    # The exponent is concave in w; its slope vanishes at e^w = 2 (1 + √(1 + l²m⁴)) / m².
    crest = np.log((2.0 / m2) * (1.0 + np.sqrt(1.0 + (l * m2) ** 2)))
    peak = np.minimum(np.maximum(crest, 0.0), end)
    rising, falling = half * np.exp(-peak), 0.125 * m2 * np.exp(peak)
    slope = np.abs(0.5 - falling + rising)
    bend = np.maximum(falling + rising, 1e-290)
    reach = np.sqrt(2.0 * math.e * _DROP / bend)
    reach = np.where(reach <= 1.0, reach, np.inf)
    sloped = (crest < 0.0) | (crest > end)
    reach = np.where(sloped, np.minimum(reach, _DROP / np.maximum(slope, 1e-300)), reach)
    low, high = np.maximum(peak - reach, 0.0), np.minimum(peak + reach, end)
    steep = np.maximum(np.where(sloped, slope, 0.0), np.sqrt(bend))
    needed = (high - low) * np.maximum(1.0, 0.25 * steep)
    count = math.ceil(needed.max(initial=1.0))
    x, w = panels(count)
    work(15.0 * l.size * x.size, 64.0 * l.size * x.size)
    width = high - low
    at = low[:, None] + width[:, None] * x
    gone = -np.expm1(-at)
    exponent = 0.5 * at - 0.125 * m2 * np.expm1(at) + half[:, None] * gone
    top = exponent.max(axis=1)
    integrand = np.exp(exponent - top[:, None]) * w
    total = integrand.sum(axis=1)
    value = 0.5 * m2 * width * total
    share = integrand * gone
    first = share.sum(axis=1) / total
    second = (share * gone).sum(axis=1) / total - first * first
    mean = l * m2 * first
    spread = m2 * first + (l * m2) ** 2 * second
    size = half * -math.expm1(-end) + 0.125 * c + 1.0
    # `end` has a relative error of a few u, and the integral changes by at most that share.
    wrong = QUADRATURE + (3.0 * EXP_ULPS + 96.0 + 16.0 * size) * U
    return Transform(np.log(value) + top, 1.01 * wrong, mean, spread)


def _log_mills(a: Floats) -> Floats:
    """`ln R(a)`; absolute error at most `2 (MILLS_ULPS + EXP_ULPS + 32 + 8a²) U`."""
    near = mills_ratio(np.abs(a))
    # R(a) = √(2π) e^{a²/2} - R(-a) for a < 0.
    swell = 0.5 * np.log(2.0 * math.pi) + 0.5 * a * a
    return np.where(a >= 0.0, np.log(near), swell + np.log1p(-near * np.exp(-swell)))


def _mills_error(a: Floats) -> Floats:
    return np.asarray((MILLS_ULPS + EXP_ULPS + 32.0 + 8.0 * a * a) * U * 2.0)


def tail_transform(m2: float, l: Floats) -> Transform:
    """`∫ e^{-y/2 - y²/2m² + ly} dy` over `y > 0`: `m R((1/2 - l) m)`."""
    m = math.sqrt(m2)
    a = (0.5 - l) * m
    log = _log_mills(a)
    inverse = np.exp(-log)
    mean = m * (inverse - a)
    spread = m2 * np.maximum(1.0 - inverse * (inverse - a), 0.0)
    return Transform(log + math.log(m), _mills_error(a), mean, spread)
