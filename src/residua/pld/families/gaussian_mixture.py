"""Mixtures of Gaussians: the privacy loss of subsampled Gaussian noise and its relatives.

`P = Σ w_i N(a_i, σ²)` against `Q = Σ v_j N(b_j, σ²)` with every `a_i >= b_j`, so that the loss does
not decrease in the observation. Poisson sampling at rate `q` (add-remove) is
`(1-q) N(0) + q N(1)` against `N(0)`, and its reversal; there the curve is that of the sampled
Gaussian (`sampled`, `sampled_reversed`). Otherwise the best test
is a threshold `x*` with loss `ln x`, and with `R` the Mills ratio and `r` any number

    h = Σ w_i φ(x*-a_i) (R(x*-a_i) - r) - x Σ v_j φ(x*-b_j) (R(x*-b_j) - r).

Thresholds with loss proven on either side of `ln x` bound it, since `h` decreases.
Moments come from the trapezoid rule (`normal_mixture.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.phases import phase_sums
from residua.pld.arithmetic.ulp_bounds import (
    EXP_RANGE,
    EXP_ULPS,
    MILLS_ULPS,
    SQRT_TWO_PI,
    TINY,
    U,
    mills_ratio,
    normal_density,
)
from residua.pld.families import gaussian
from residua.pld.families.normal_mixture import Pair, Side
from residua.work_limit import remembered_property, work

Components = tuple[tuple[float, float], ...]
"""`(shift, weight)` of each component but the one that takes the remaining weight."""

_LIGHT = 1e-24
"""Quadrature points lighter than this are dropped (and charged)."""


@dataclass(frozen=True)
class GaussianMixture:
    """`(rest, others)` of each side in units of the query; floats denote themselves.

    The component at `rest` has the weight that the others leave, exactly.
    """

    sigma: float
    p_rest: float
    p: Components
    q_rest: float
    q: Components

    # -- structure --------------------------------------------------------------------

    @cached_property
    def is_symmetric(self) -> bool:
        return self.reverse() == self

    def reverse(self) -> GaussianMixture:
        """`(Q, P)`, mirrored so that the loss increases again."""
        return GaussianMixture(
            self.sigma, 0.0 - self.q_rest, _mirrored(self.q), 0.0 - self.p_rest, _mirrored(self.p)
        )

    @property
    def mass_at_infinity(self) -> Fraction:
        return Fraction(0)

    @property
    def mass_at_minus_infinity(self) -> Fraction:
        return Fraction(0)

    @property
    def atom_count(self) -> None:
        return None

    @cached_property
    def pair(self) -> Pair:
        """The two sides in units of `sigma`."""
        return Pair(_side(self.p_rest, self.p, self.sigma), _side(self.q_rest, self.q, self.sigma))

    @cached_property
    def top_ratio(self) -> Fraction | None:
        """`e` to the largest loss, exactly; None if that is infinite."""
        ends = []
        for rest, others in ((self.p_rest, self.p), (self.q_rest, self.q)):
            far = max([rest, *(a for a, _ in others)])
            ends.append((far, _weight_at(far, rest, others)))
        return None if ends[0][0] > ends[1][0] else ends[0][1] / ends[1][1]

    @cached_property
    def top_bounds(self) -> tuple[float, float]:
        """Enclosure of the largest loss: infinite unless both sides reach equally far."""
        ratio = self.top_ratio
        if ratio is None:
            return math.inf, math.inf
        value = math.log1p(float(ratio - 1))
        slack = abs(value) * (EXP_ULPS + 4.0) * U
        return value - slack, value + slack

    @property
    def distance(self) -> float:
        """`D / σ`: the Gaussian of this `mu` dominates the pair."""
        return self.pair.reach * (1.0 + 4.0 * U)

    # -- moments ----------------------------------------------------------------------

    def log_moment(self, s: Floats) -> tuple[Floats, Floats]:
        """`ln E e^{sZ}` for real `s` and its absolute error."""
        return self.pair.log_moment(s)

    def nodes(self, lam: float, step: float, count: int) -> tuple[NDArray[np.complex128], Floats]:
        """`M(λ+iω)/M(λ)` at `ω = 0, step, …, (count-1) step`, and its absolute error."""
        rule = self.pair.quadrature(np.array([lam]), step * count)
        if rule is None:
            return np.zeros(count, dtype=np.complex128), np.ones(count)
        weights = rule.weights[0] / rule.totals[0]
        kept = weights > _LIGHT
        dropped = float(weights[~kept].sum()) if not kept.all() else 0.0
        weights, z = weights[kept], rule.loss[kept]
        total, sums = phase_sums(weights, z, step, count)
        omega = np.arange(float(count)) * step
        drift = float(weights @ (rule.loss_error[kept] + 8.0 * U * np.abs(z)))
        fixed = 2.0 * float(rule.weight_error[0] + rule.tails[0]) + 1e-17 + 2.0 * dropped
        return total, 1.01 * (fixed + 1.5 * sums + omega * drift)

    def log_decay(self, lam: float, edges: Floats) -> Floats:
        """An upper bound on `ln |M(λ+iω)/M(λ)|` for all `ω >= edge`, for each edge."""
        return self.pair.log_decay(lam, edges)

    def slope_bound(self, s: float) -> float:
        """A bound on `|K'|` between `-1 - |s|` and `|s|`: convexity and the Gaussian's `K`."""
        far = abs(s) + 1.0
        return self.distance**2 * (far + 1.0) * (far + 2.0)

    @remembered_property
    def mean_loss(self) -> tuple[float, float]:
        """`E Z` and its absolute error, by the same rule."""
        rule = self.pair.quadrature(np.array([0.0]))
        if rule is None:
            half = 0.25 * self.distance**2
            return half, half * (1.0 + 4.0 * U)
        w = rule.weights[0] / rule.totals[0]
        z = rule.loss
        value, size = float(w @ z), float(w @ np.abs(z))
        wrong = size * (2.0 * float(rule.weight_error[0]) + z.size * U)
        wrong += float(w @ (np.abs(z) * 2.0 * rule.log_f_error[0] + rule.loss_error))
        # Outside the grid and off the axis the loss grows no faster than D|x|, plus constants.
        reach = abs(float(z[0])) + abs(float(z[-1])) + 16.0 * (1.0 + self.distance)
        wrong += reach * (2.0 * float(rule.tails[0]) + 1e-16)
        return value, wrong * 1.01

    # -- curve ------------------------------------------------------------------------

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `h(e^t)`, `t >= 0` known up to `±dt`."""
        work(40.0 * t.size)
        slack = np.broadcast_to(np.asarray(dt, dtype=np.float64), t.shape)
        if len(self.p + self.q) == 1 and self.p_rest == self.q_rest:
            ((shift, rate),) = self.p + self.q
            mu = (shift - self.p_rest) / self.sigma
            inner = partial(gaussian.curve, c=mu * mu, c_error=8.0 * U)
            read = sampled if self.p else sampled_reversed
            return read(inner, rate, t, slack)
        return self._by_threshold(t, slack)

    def _by_threshold(self, t: Floats, dt: Floats) -> tuple[Floats, Floats]:
        flat, slack = t.ravel(), dt.ravel()
        left, right = self._thresholds(flat, slack)
        _, hi = self._tested(left)
        lo, _ = self._tested(right)
        lo = np.where(np.isfinite(right), lo, 0.0)
        hi = np.where(np.isfinite(left), hi, 1.0)
        return lo.reshape(t.shape), hi.reshape(t.shape)

    def _thresholds(self, t: Floats, dt: Floats) -> tuple[Floats, Floats]:
        """Thresholds with loss proven at most `t - dt`, and at least `t + dt` (±inf if none)."""
        pair = self.pair
        span = pair.reach
        middle = 0.5 * (pair.p.most + pair.q.least)
        low = np.full(t.shape, pair.q.least - 60.0 - span)
        high = middle + (np.abs(t) + 60.0) / span + 60.0 + span
        # The loss does not decrease and crosses t >= 0 once, if at all: Newton between brackets.
        x = 0.5 * (low + high)
        for _ in range(64):
            value = pair.loss(x)[0]
            below = value < t
            low, high = np.where(below, x, low), np.where(below, high, x)
            step = 1e-6 * (1.0 + np.abs(x))
            slope = (pair.loss(x + step)[0] - value) / step
            moved = x - (value - t) / np.where(slope > 0.0, slope, np.inf)
            inside = (moved > low) & (moved < high) & (slope > 0.0)
            settled = np.abs(value - t) <= 1e-14 * (1.0 + np.abs(t))
            x = np.where(settled, x, np.where(inside, moved, 0.5 * (low + high)))
            if np.all(settled | (high - low <= 1e-15 * (1.0 + np.abs(x)))):
                break
        return self._proven(x, t - dt, -1.0), self._proven(x, t + dt, 1.0)

    def _proven(self, near: Floats, target: Floats, sign: float) -> Floats:
        """Thresholds whose loss is proven below (`sign = -1`) or above the target; `±inf` if none.

        Doubling steps away from `near`, then halving back where they had to be long.
        """

        def good(x: Floats) -> NDArray[np.bool_]:
            value, error = self.pair.loss(x)
            return np.asarray(sign * (value - target) >= error)

        step = 1e-15 * (1.0 + np.abs(near))
        close, far = near, near
        found = good(near)
        for i in range(72):
            if found.all():
                break
            close = np.where(found, close, far)
            far = np.where(found, far, near + sign * step * 2.0**i)
            found = found | good(far)
        for _ in range(52):
            if not np.any(found & (np.abs(far - close) > 1e-13 * (1.0 + np.abs(near)))):
                break
            middle = 0.5 * (close + far)
            fits = good(middle)
            close, far = np.where(fits, close, middle), np.where(fits, middle, far)
        return np.where(found, far, sign * np.inf)

    def _tested(self, at: Floats) -> tuple[Floats, Floats]:
        """Enclosure of `h` where the threshold `at` is best: all terms as Mills ratios."""
        pair = self.pair
        work(40.0 * at.size * (len(pair.p.shifts) + len(pair.q.shifts)))
        at = np.where(np.isfinite(at), at, 0.0)
        log_x, log_x_error = pair.loss(at)
        total, size, wrong = np.zeros(at.shape), np.zeros(at.shape), np.zeros(at.shape)
        reference = at - min(pair.p.least, 0.5 * (pair.p.least + pair.q.most))
        plain = reference < -0.3
        r = np.where(plain, 0.0, mills_ratio(np.maximum(reference, -0.3)))
        sides = ((pair.p, 1.0, 0.0 * log_x, 0.0), (pair.q, -1.0, log_x, log_x_error))
        for side, scale, log_scale, scale_error in sides:
            for a, w in zip(side.shifts, side.weights, strict=True):
                y = at - a
                density = np.exp(np.minimum(log_scale - 0.5 * y * y, EXP_RANGE)) / SQRT_TWO_PI
                grain = EXP_ULPS + 4.0 + 3.0 * y * y + 3.0 * np.abs(y * a) + 3.0 * np.abs(log_scale)
                grain = grain * U
                near = mills_ratio(np.maximum(y, -0.3))
                whole = np.exp(np.minimum(log_scale, EXP_RANGE)) * _survival(y)
                tail = np.where(y >= -0.3, density * near, whole)
                shared = density * r
                part = np.where(y >= -0.3, density * (near - r), tail - shared)
                total = total + scale * w * part
                size = size + np.abs(scale * w) * np.abs(part)
                blur = (MILLS_ULPS + 2.0 * abs(a)) * U * (tail + shared) + (
                    grain + scale_error
                ) * np.abs(part)
                # What the reference cancels exactly in theory leaves its own rounding behind.
                blur = blur + (grain + scale_error) * shared
                wrong = wrong + np.abs(scale * w) * blur
        wrong = wrong * 1.01 + size * (8.0 + 2.0 * EXP_ULPS) * U + TINY
        return np.maximum(total - wrong, 0.0), np.minimum(np.maximum(total, 0.0) + wrong, 1.0)

    def __repr__(self) -> str:
        sigma = repr(self.sigma)
        if self == self._subsampled("remove") or self == self._subsampled("add"):
            (shift, rate), direction = (self.p or self.q)[0], "remove" if self.p else "add"
            return _sampled_repr(sigma, rate, abs(shift), direction)
        if self == self._subsampled("replace"):
            return _sampled_repr(sigma, self.p[0][1], self.p[0][0], "replace")
        direction = "add" if self.q else "remove"
        one = self.reverse() if self.q else self
        rest = float(1 - sum((Fraction(w) for _, w in one.p), Fraction(0)))
        shifts = [one.p_rest, *(a for a, _ in one.p)]
        weights = [rest, *(w for _, w in one.p)]
        return f"mixture_of_gaussians({sigma}, {shifts!r}, {weights!r}" + (
            f", direction={direction!r})" if direction != "remove" else ")"
        )

    def _subsampled(self, direction: str) -> GaussianMixture | None:
        """The subsampled Gaussian of this rate and shift, for comparison."""
        others = self.p or self.q
        if len(others) != 1:
            return None
        shift, rate = abs(others[0][0]), others[0][1]
        return subsampled(self.sigma, shift, rate, direction)


def subsampled(sigma: float, shift: float, rate: float, direction: str) -> GaussianMixture:
    """Poisson sampling at `rate`: `remove`, `add` (its reversal), or `replace`."""
    if direction == "replace":
        return GaussianMixture(sigma, 0.0, ((shift, rate),), 0.0, ((-shift, rate),))
    one = GaussianMixture(sigma, 0.0, ((shift, rate),), 0.0, ())
    return one if direction == "remove" else one.reverse()


def _sampled_repr(sigma: str, rate: float, shift: float, direction: str) -> str:
    more = "" if shift == 1.0 else f", sensitivity={shift!r}"
    more += "" if direction == "remove" else f", direction={direction!r}"
    return f"subsampled_gaussian({sigma}, {rate!r}{more})"


def _mirrored(others: Components) -> Components:
    return tuple(sorted((-a, w) for a, w in others))


def _side(rest: float, others: Components, sigma: float) -> Side:
    left = float(1 - sum((Fraction(w) for _, w in others), Fraction(0)))
    shifts = (rest / sigma, *(a / sigma for a, _ in others))
    return Side(shifts, (left, *(w for _, w in others)))


def _weight_at(far: float, rest: float, others: Components) -> Fraction:
    at = sum((Fraction(w) for a, w in others if a == far), Fraction(0))
    if rest == far:
        at += 1 - sum((Fraction(w) for _, w in others), Fraction(0))
    return at


def _survival(y: Floats) -> Floats:
    """`P(N > y)` for `y < 0`: `1 - φ(y) R(-y)`."""
    return np.asarray(1.0 - normal_density(y) * mills_ratio(np.maximum(-y, 0.0)))


# -- the curve of a sampled loss from that of the whole one ------------------------------------
#
# A record is sampled at rate `q`, and `(A, C)` is the pair with and without it. With
# `P = (1-q) C + q A` against `C`, and the reverse (Balle, Barthe and Gaboardi 2018, theorem 2, with
# equality for a pair),
#
#     h(x) = q h_{A,C}(1 + (x-1)/q)                x >= 1 - q
#     h_rev(x) = q x y h_{C,A}(1/y)                y = 1 - (1 - 1/x)/q > 0, else 0

Curve = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Enclosure of a curve at `e^t`, each `t` known up to an error."""

_COARSE = 0.125
"""Errors of `t` beyond this share of the rate are charged to the curve, whose slope is below 1."""


def inner_argument(t: Floats, dt: Floats, rate: float) -> tuple[Floats, Floats]:
    """`ln(1 + (e^t - 1)/q)` and its absolute error, `t >= 0` known up to `±dt`."""
    with np.errstate(over="ignore"):
        y = np.expm1(t) / rate
    inner = np.where(np.isfinite(y), np.log1p(y), t - np.log(rate))
    # The derivative x / (x - 1 + q) decreases.
    early = -np.maximum(t - dt, -0.2 * rate)
    drift = dt / (rate * np.exp(early) - np.expm1(early)) * 1.01
    share = -np.expm1(-inner)
    return inner, drift + ((EXP_ULPS + 4.0) * inner + (EXP_ULPS + 4.0) * share) * U


def sampled(inner: Curve, rate: float, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
    """Enclosure of the curve of `(1-q) C + q A` against `C`, `t >= 0`, from that of `(A, C)`."""
    dt = np.broadcast_to(np.asarray(dt, dtype=np.float64), t.shape)
    coarse = dt > _COARSE * rate
    lo, hi = inner(*inner_argument(t, np.where(coarse, 0.0, dt), rate))
    extra = np.where(coarse, 1.01 * dt, 0.0)
    return (
        np.maximum(rate * lo * (1.0 - 4.0 * U) - extra - TINY, 0.0),
        rate * hi * (1.0 + 4.0 * U) + extra + TINY * (hi > 0.0),
    )


def sampled_reversed(
    inner: Curve, rate: float, t: Floats, dt: Floats | float
) -> tuple[Floats, Floats]:
    """Enclosure of the curve of `C` against `(1-q) C + q A`, `t >= 0`, from that of `(C, A)`."""
    fall = np.expm1(-t)
    y = 1.0 + fall / rate
    y_error = (EXP_ULPS + 4.0) * U * np.abs(fall) / rate + 1.01 * dt / rate + U
    clear = y > 8.0 * y_error
    safe = np.where(clear, y, 1.0)
    uncertainty = np.where(clear, y_error / safe, 0.0) * 1.2
    argument = -np.log1p(np.where(clear, fall / rate, 0.0))
    lo, hi = inner(argument, uncertainty + EXP_ULPS * U * np.abs(argument) + TINY)
    x = rate * np.exp(np.minimum(t, 700.0))
    wrong = uncertainty + 1.01 * dt + (EXP_ULPS + 6.0) * U
    most = x * np.maximum(y + y_error, 0.0) * (1.0 + wrong)
    # What is above 0 stays so where the product underflows.
    hi = np.where(clear, x * safe * hi * (1.0 + wrong) + TINY * (hi > 0.0), most + TINY)
    return (
        np.where(clear, np.maximum(x * safe * lo * (1.0 - wrong) - TINY, 0.0), 0.0),
        np.where(y + y_error > 0.0, hi, 0.0),
    )
