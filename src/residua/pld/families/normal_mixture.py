"""Mixtures of unit-variance normals on the line: likelihoods, with their errors, and quadrature.

A side is `Σ w_i N(a_i, 1)`. Against `N(0, 1)` its likelihood is `A(x) = Σ w_i e^{a_i x - a_i²/2}`,
and for a pair `(P, Q)` of sides `E_P e^{sZ} = ∫ φ(x) A(x)^{1+s} B(x)^{-s} dx`. The integrand `f` is
analytic in a strip, so the trapezoid rule converges geometrically. On `x + iy`, with `r` the
spread of a side's shifts and `|y| r < π`, all terms of `A` lie in a sector of angle `|y| r`:

    cos(yr/2) A(x) <= |A(x + iy)| <= A(x),     y a_min <= arg A(x + iy) <= y a_max  (y > 0).

Hence, with `D = a_max - b_min >= 0` and `s = λ + iω`, the integral of `|f|` along `Im x = ±d`
is at most `e^{d²/2} cos(..)^{-λ} e^{ωdD}` times the moment at `λ`, and the rule of step `h` is
wrong by that times `2 e^{-2πd/h} / (1 - e^{-2πd/h})` (Trefethen and Weideman 2014, theorem 5.1).

Beyond the grid, `(ln f)' <= -(x - m)` to the right of `m = (1+s) a_max - s b_min` (and likewise
to the left), so the tail past `m + W` is at most `f(m + W) / W`.

"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import BATCH
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, SQRT_TWO_PI, U
from residua.work_limit import remembered, work

_LOG_SQRT_TWO_PI = math.log(SQRT_TWO_PI)


_WINDOW = 9.5
"""How far past the last possible centre the grid runs: `e^{-W²/2}` is 2.5e-20."""
_STRIP_DEPTH = 42.0
"""The trapezoid rule is wrong by at most about `e^-42`, relative."""
_STRIPS = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
_SIZES = (0.0, 60.0, 400.0, 2000.0)
"""Moments are worked out together for `(|s|+1) D` between these; beyond, by bounds."""
_RULE = 4.0 * math.exp(-_STRIP_DEPTH)
LATTICE = np.geomspace(1e-5, 1e6, 56)
"""Tilts at which rough moments are kept."""
_SETUP = 20_000
"""Operations of a step on a short grid, beside those of its arrays: for the calls of numpy."""
_LIFTS = (0.5, 0.9)
"""Heights `y` of the moved line among which the best bound is taken."""


@dataclass(frozen=True)
class Side:
    """`Σ w_i N(a_i, 1)`, each `a_i` within `u` relative of what it denotes.

    `weights[0]` is the remainder `1 - Σ_{i>0} w_i` (rounded); the others are exact.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    @cached_property
    def least(self) -> float:
        return min(self.shifts)

    @cached_property
    def most(self) -> float:
        return max(self.shifts)

    @property
    def spread(self) -> float:
        return self.most - self.least

    @property
    def is_origin(self) -> bool:
        """Whether this is `N(0, 1)`, with likelihood 1."""
        return self.shifts == (0.0,)

    def log_likelihood(self, x: Floats) -> tuple[Floats, Floats]:
        """`ln A(x)` and its absolute error.

        Relative to the first term: `log1p(Σ w_i expm1(d_i))` keeps the digits of a
        likelihood close to 1; where it is far below or above, a plain log-sum-exp.
        """
        size_of_all = x.size * len(self.shifts)
        work(_SETUP + 8.0 * size_of_all, 80.0 * size_of_all)
        a0 = self.shifts[0]
        first: Floats | float = 0.0
        first_error: Floats | float = 0.0
        if a0 != 0.0:
            first = a0 * x - 0.5 * a0 * a0
            first_error = U * (3.0 * abs(a0) * np.abs(x) + 3.0 * a0 * a0)
        if len(self.shifts) == 1:
            return first + np.zeros_like(x), first_error + np.zeros_like(x)
        far = np.abs(x)
        total: Floats | float = 0.0
        size: Floats | float = 0.0
        moved: Floats | float = 0.0
        gaps = []
        for a, w in zip(self.shifts[1:], self.weights[1:], strict=True):
            d = (a - a0) * x - 0.5 * (a - a0) * (a + a0)
            reach = 5.0 * (abs(a) + abs(a0))
            wrong = (U * reach) * (far + (abs(a) + abs(a0)))
            part = w * np.expm1(np.minimum(d, EXP_RANGE))
            total = total + part
            size = size + np.abs(part)
            moved = moved + (part + w) * wrong
            gaps.append((d, w, wrong))
        beyond = np.any([d > EXP_RANGE for d, _, _ in gaps], axis=0)
        plain = (total < -0.5) | (total > 1e290) | beyond
        kept = np.where(plain, 0.0, total)
        value = np.log1p(kept)
        grain = (EXP_ULPS + 2.0 * len(gaps) + 3.0) * U
        error = (size * grain + moved * 1.01) / (1.0 + kept) + EXP_ULPS * U * np.abs(value)
        if plain.any():
            logs = np.stack(
                [np.full(x.shape, math.log(self.weights[0]) if self.weights[0] else -np.inf)]
                + [math.log(w) + d for d, w, _ in gaps]
            )
            top = logs.max(axis=0)
            share = np.exp(logs - top)
            whole = share.sum(axis=0)
            drift = np.max(np.stack([wrong for _, _, wrong in gaps]), axis=0)
            rough = top + np.log(whole)
            rough_error = drift + U * (
                (EXP_ULPS + 4.0) * (np.abs(top) + 4.0) + EXP_ULPS + len(gaps) + 4.0
            )
            # The log of the first weight, and of w_i, each carry EXP_ULPS relative.
            rough_error += EXP_ULPS * U * max(abs(math.log(w)) if w else 0.0 for w in self.weights)
            value = np.where(plain, rough, value)
            error = np.where(plain, rough_error, error)
        value = value + first
        return value, error + first_error + U * np.abs(value)

    def off_axis(self, x: Floats, y: float) -> tuple[Floats, Floats, Floats]:
        """`ln|A(x+iy)|`, `arg A(x+iy)` and `Re A'/A`, to about 1e-12 each."""
        if len(self.shifts) == 1:
            a = self.shifts[0]
            return a * x - 0.5 * a * a, np.full(x.shape, a * y), np.full(x.shape, a)
        size_of_all = x.size * len(self.shifts)
        work(_SETUP + 20.0 * size_of_all, 80.0 * size_of_all)
        shifts = np.array(self.shifts)[:, None]
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self.weights))[:, None] + shifts * x - 0.5 * shifts * shifts
        top = logs.max(axis=0)
        turned = np.exp(logs - top) * np.exp(1j * (shifts - self.shifts[0]) * y)
        total = turned.sum(axis=0)
        slope = ((shifts * turned).sum(axis=0) / total).real
        return np.log(np.abs(total)) + top, np.angle(total) + self.shifts[0] * y, slope


@dataclass(frozen=True)
class Quadrature:
    """The trapezoid rule for moments at a few real `s`: one grid, one row of `ln f` for each."""

    x: Floats
    step: float
    log_f: Floats
    log_f_error: Floats
    loss: Floats
    loss_error: Floats

    @cached_property
    def weights(self) -> Floats:
        """`f` at the points, each row scaled to the largest value 1."""
        return np.asarray(np.exp(self.log_f - self.top[:, None]))

    @cached_property
    def top(self) -> Floats:
        return np.asarray(self.log_f.max(axis=1))

    @cached_property
    def totals(self) -> Floats:
        return np.asarray(self.weights.sum(axis=1))

    @cached_property
    def tails(self) -> Floats:
        """What lies outside the grid at most, in the integral and in the sum, relative."""
        ends = self.weights[:, 0] + self.weights[:, -1]
        ends = 2.0 * ends * (1.0 + 1.0 / (_WINDOW * self.step))
        return np.asarray(ends / self.totals)

    @cached_property
    def weight_error(self) -> Floats:
        """Relative error of the sum of the weights, by rounding."""
        wrong = (self.weights * self.log_f_error).sum(axis=1) / self.totals
        # A pairwise sum of positive numbers is off by at most 64 u: blocks of 128 in 8 lanes.
        return np.asarray(wrong * 1.01 + (EXP_ULPS + 72.0) * U + 2.0 * U * abs(self.top))

    @cached_property
    def log_moment(self) -> tuple[Floats, Floats]:
        """`ln M(s)` and its absolute error: rounding, the range left out, and the rule."""
        value = self.top + np.log(self.totals * self.step) - _LOG_SQRT_TWO_PI
        error = self.weight_error + self.tails + _RULE
        error = error + 4.0 * EXP_ULPS * U * (2.0 + np.abs(value - self.top))
        return value, error * 1.01 + 2.0 * U * np.abs(value)


@dataclass(frozen=True)
class Lifted:
    """A line `Im x = y` in cells: `arg A/B` and the mass of each, all relative to `M(λ)`."""

    turn: Floats
    masses: Floats
    outside: float
    """The log of what lies outside the cells."""
    slack: float


@dataclass(frozen=True)
class Pair:
    """Two sides with `a_min >= b_max`: the loss `ln A/B` does not decrease in `x`."""

    p: Side
    q: Side

    @property
    def reach(self) -> float:
        """`D`, the largest slope of the loss."""
        return self.p.most - self.q.least

    def loss(self, x: Floats) -> tuple[Floats, Floats]:
        """`ln A(x)/B(x)` and its absolute error."""
        a, a_error = self.p.log_likelihood(x)
        b, b_error = self.q.log_likelihood(x)
        return a - b, a_error + b_error + U * np.abs(a - b)

    @cached_property
    def _strips(self) -> tuple[Floats, Floats, Floats]:
        """Half-widths `d` to choose from, and `-ln cos` of half the angle of each side there."""
        widest = 0.95 * math.pi / max(self.p.spread, self.q.spread, 1e-300)
        d = np.unique(np.minimum(_STRIPS, widest))
        narrowing = [-np.log(np.cos(0.5 * d * side.spread)) for side in (self.p, self.q)]
        return d, narrowing[0], narrowing[1]

    def rule_step(self, s: Floats, omega: float) -> float:
        """A step with an error of the rule below `e^-42` of `M(s)`, for every `s`."""
        d, narrow_p, narrow_q = self._strips
        depth = _STRIP_DEPTH + 2.0 + (0.5 * d + omega * self.reach) * d
        most, least = float(s.max()), float(s.min())
        if most > 0.0:
            depth = depth + most * narrow_q
        if least < -1.0:
            depth = depth + (-1.0 - least) * narrow_p
        return float((2.0 * math.pi * d / depth).max())

    def points(self, lam: float) -> tuple[float, float]:
        """About how many points the rule has at `λ`: for `ω = 0`, and more for each unit of `ω`."""
        width = (1.0 + lam) * self.p.spread + lam * self.q.spread + 2.0 * _WINDOW
        return width / self.rule_step(np.array([lam]), 0.0), width * self.reach / 6.0

    def quadrature(self, s: Floats, omega: float = 0.0) -> Quadrature | None:
        """The rule at each `s`, fit for `M(s ± iω')` with `ω' <= ω`; None if that is too much."""
        step = self.rule_step(s, omega)
        # Where f may be centred: linear in s for each pair of components.
        centres = [
            (1.0 + at) * a - at * b
            for at in (float(s.min()), float(s.max()))
            for a in (self.p.least, self.p.most)
            for b in (self.q.least, self.q.most)
        ]
        low, high = min(centres) - _WINDOW, max(centres) + _WINDOW
        count = (high - low) / step
        if not count * s.size < BATCH:
            return None
        work(_SETUP + 6.0 * count * s.size, 64.0 * count * s.size)
        x = low + step * np.arange(int(count) + 2.0)
        up, down = (1.0 + s)[:, None], s[:, None]
        square = x * x
        log_f: Floats = -0.5 * square
        error: Floats = (2.0 * U) * square
        loss, loss_error = np.zeros_like(x), np.zeros_like(x)
        if not self.p.is_origin:
            a, a_error = self.p.log_likelihood(x)
            log_f = log_f + up * a
            error = error + np.abs(up) * (a_error + 3.0 * U * np.abs(a))
            loss, loss_error = a, a_error
        if not self.q.is_origin:
            b, b_error = self.q.log_likelihood(x)
            log_f = log_f - down * b
            error = error + np.abs(down) * (b_error + 3.0 * U * np.abs(b))
            loss, loss_error = loss - b, loss_error + b_error
        error = error + (3.0 * U) * np.abs(log_f)
        return Quadrature(x, step, log_f, error, loss, loss_error + U * np.abs(loss))

    def log_moment(self, s: Floats) -> tuple[Floats, Floats]:
        """`ln E e^{sZ}` for real `s` and its absolute error.

        For `s` beyond reach of the rule: between 0 (outside `[-1, 0]`) and the value of the
        Gaussian of distance `D`, which dominates the pair.
        """
        cap = 0.5 * self.reach**2 * s * (s + 1.0)
        value, error = 0.5 * cap, np.abs(0.5 * cap) * (1.0 + 16.0 * U)
        size = (np.abs(s) + 1.0) * self.reach
        for least, most in pairwise(_SIZES):
            rows = np.flatnonzero((least < size) & (size <= most))
            rule = self.quadrature(s[rows]) if rows.size else None
            if rule is not None:
                value[rows], error[rows] = rule.log_moment
        return value, error

    def rough_log_moment(self, s: Floats) -> Floats:
        """About `ln E e^{sZ}` for `s > 0`, to choose a tilt by: the Gaussian above it far out."""
        near = (s + 1.0) * self.reach <= _SIZES[2]
        value = 0.5 * self.reach**2 * s * (s + 1.0)
        if near.any():
            value[near] = self.log_moment(s[near])[0]
        return value

    def log_decay(self, lam: float, edges: Floats) -> Floats:
        """An upper bound on `ln |M(λ+iω)/M(λ)|` for all `ω >= edge`, for each edge, `λ > 0`.

        The line of integration is moved to `Im x = y`: `|f|` is multiplied by `e^{-ω arg A/B}`
        with `arg A >= arg B`, so a bound at the edge holds beyond. Per cell of width `g` the
        rest, `e^H` with `|H''| <= k`, is at most `g e^H e^{kg²/8} sinhc(g H'/2)`.
        """
        best = np.zeros(edges.shape)
        for line in _moved_lines(self, lam):
            work(3.0 * edges.size * line.turn.size, 16.0 * edges.size * line.turn.size)
            phases = np.exp(-np.multiply.outer(edges, line.turn))
            inside = np.logaddexp(np.log(phases @ line.masses + 1e-300), line.outside)
            best = np.minimum(best, inside + line.slack)
        return best


# Few: each takes tens of kilobytes, and one decision reads it again and again.
@remembered(maxsize=64)
def _moved_lines(pair: Pair, lam: float) -> tuple[Lifted, ...]:
    """The moved lines, the best of which serves: asked for again with other edges."""
    p, q = pair.p, pair.q
    rule = pair.quadrature(np.array([lam]))
    found: list[Lifted] = []
    if rule is None:
        return ()
    log_m, log_m_error = (float(v[0]) for v in rule.log_moment)
    low, high = float(rule.x[0]), float(rule.x[-1])
    widest = 0.95 * math.pi / max(p.spread, q.spread, 1e-300)
    for lift in _LIFTS:
        y = min(lift, 0.6 * lift * widest)
        wide_p, wide_q = (1.0 / math.cos(0.5 * y * side.spread) for side in (p, q))
        bend = 1.0 + 0.25 * (1.0 + lam) * p.spread**2 * (wide_p + wide_p**2)
        bend += 0.25 * lam * q.spread**2 * (wide_q + wide_q**2)
        cells = int(min(max((high - low) * math.sqrt(bend) / 0.5, 64.0), 2048.0))
        g = (high - low) / cells
        # Middles at odd places, ends at even ones.
        both = low + 0.5 * g * np.arange(2.0 * cells + 1.0)
        x = both[1::2]
        size_a, arg_a, slope_a = p.off_axis(both, y)
        size_b, arg_b, slope_b = q.off_axis(both, y)
        h = (1.0 + lam) * size_a[1::2] - lam * size_b[1::2] - 0.5 * x * x + 0.5 * y * y
        h = h + (bend * g * g / 8.0 - log_m - _LOG_SQRT_TWO_PI)
        slope = (1.0 + lam) * slope_a[1::2] - lam * slope_b[1::2] - x
        # Off the grid the moved integrand is at most e^{y²/2} cos^-λ times the unmoved one.
        outside = math.log(float(rule.tails[0]) + 1e-300) + 0.5 * y * y
        outside += lam * math.log(wide_q)
        h = h + _log_sinhc(0.5 * g * slope)
        turn = np.maximum(arg_a[:-2:2] - arg_b[2::2], 0.0) * (1.0 - 1e-9)
        masses = g * np.exp(np.minimum(h, EXP_RANGE))
        slack = log_m_error + 1e-9 * (1.0 + lam)
        found.append(Lifted(turn, masses, outside, slack))
    return tuple(found)


def _log_sinhc(z: Floats) -> Floats:
    """An upper bound of `ln (sinh z / z)`: both `z²/6` and `|z|` are."""
    return np.minimum(z * z / 6.0, np.abs(z))
