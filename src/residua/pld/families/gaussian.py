"""`G_mu`, the privacy loss of `N(0, 1)` against `N(mu, 1)`, in closed form.

With `c = mu²`, `s = ln x >= 0`, `y = s/mu - mu/2` and the Mills ratio `R`,

    h(e^s)     = phi(y) (R(y) - R(y + mu))       one difference of tails,
    1 - h(e^s) = phi(y) (R(-y) + R(y + mu))      no cancellation at all,

and `h(e^-s) = 1 - e^-s + e^-s h(e^s)` because `G_mu` is symmetric. The first form
serves `y >= 0`, the second `y < 0`. For small `mu` the difference is the integral
of `-R' = 1 - vR(v)` over `[y, y + mu]`, by six-point Gauss–Legendre quadrature.

Error budget of `h(e^s)`, relative, all of it charged:
* `phi(y)`: `e^{|y| dy + dy²} - 1 + (y² + EXP + 3) u`, where `dy` is the error of `y` from rounding,
  from the uncertainty of `mu` and from that of `s`;
* `R`: `MILLS_ULPS u` each, divided by the difference;
* quadrature: its error is `mu^13 (6!)^4 / (13 (12!)^3)` times the twelfth derivative of
  `-R'`, and `(-R')^(12) / (-R')` is the 12-th moment of the density proportional to
  `v e^{-yv - v²/2}`, decreasing in `y` and below 1e5 at `y = -0.15`: under 1e-17 for
  `mu <= 0.3`.

Log moments: `ln E e^{sZ} = c s(s+1)/2`. Composition adds `c`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    MILLS_ULPS,
    TINY,
    U,
    mills_ratio,
    normal_density,
)
from residua.work_limit import work

_SMALL_MU = 0.3
"""Up to this the difference of Mills ratios is worked out as an integral."""
_WILD = 1e-3
"""Above this the error of `y` is no longer treated to first order."""
_BEYOND = 1e4
"""Far past where `phi` underflows: a larger `y` gives zero all the same."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_UNIT = 1 << 1024
"""Variances are added up in units of `1 / _UNIT`: none is smaller than `2^-700`."""


def _variance_digits(sensitivity: float, sigma: float, count: int) -> int:
    (a, b), (c, d) = sensitivity.as_integer_ratio(), sigma.as_integer_ratio()
    top, bottom = a * d, b * c
    return (count * top * top * _UNIT) // (bottom * bottom)


@dataclass(frozen=True)
class Gaussian:
    """A composition of Gaussian mechanisms: `(sensitivity, sigma, count)` for each kind, sorted."""

    parts: tuple[tuple[float, float, int], ...]

    @cached_property
    def exact_variance(self) -> Fraction:
        """`c = Σ count (sensitivity / sigma)²`, as a rational."""
        return sum((n * (Fraction(d) / Fraction(s)) ** 2 for d, s, n in self.parts), Fraction(0))

    @cached_property
    def _digits(self) -> int:
        """`c` in units of `2^-1024`, rounded down: too small by less than the number of parts."""
        return sum(_variance_digits(d, s, n) for d, s, n in self.parts)

    @cached_property
    def variance(self) -> float:
        """`c` rounded to nearest: a function of its exact value, whatever the parts are."""
        low = self._digits / _UNIT
        if low == (self._digits + len(self.parts)) / _UNIT:
            return low
        return float(self.exact_variance)

    @cached_property
    def variance_error(self) -> float:
        """Bound on the relative error of `variance`: 0 if that is exact."""
        top, bottom = self.variance.as_integer_ratio()
        excess = top * _UNIT // bottom - self._digits
        is_close = 0 <= excess <= len(self.parts)
        return 0.0 if is_close and self.variance == self.exact_variance else U

    def compose(self, other: Gaussian) -> Gaussian:
        """The composition: equal parts are counted together."""
        parts = list(self.parts)
        for d, s, n in other.parts:
            at = bisect_left(parts, (d, s))
            if at < len(parts) and parts[at][:2] == (d, s):
                parts[at] = (d, s, n + parts[at][2])
            else:
                parts.insert(at, (d, s, n))
        made = Gaussian(tuple(parts))
        if len(parts) == len(self.parts) + len(other.parts):
            made.__dict__["_digits"] = self._digits + other._digits
        return made

    def power(self, n: int) -> Gaussian:
        """The `n`-fold composition."""
        return Gaussian(tuple((d, s, n * k) for d, s, k in self.parts))


def curve(t: Floats, dt: Floats | float, c: float, c_error: float) -> tuple[Floats, Floats]:
    """Enclosure `(lo, hi)` of `h(e^t)` of `G_mu`, `mu² = c (1 ± c_error)`.

    `t` may be any array of reals, each known up to `±dt`.
    """
    s = np.abs(t)
    h, error = _right(s, dt, c, c_error)
    lo = np.maximum(h - error, 0.0)
    hi = np.minimum(h + error, 1.0)
    left = t < 0.0
    if left.any():
        lo, hi = from_reversed(t, dt, lo, hi, left)
    return lo, hi


def from_reversed(
    t: Floats, dt: Floats | float, lo: Floats, hi: Floats, left: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """`h(e^t) = 1 - e^t + e^t h_rev(e^-t)` where `left`, from an enclosure of `h_rev(e^-t)`."""
    tail = np.where(left, t, 0.0)
    x = np.exp(tail)
    above = -np.expm1(tail)
    x_error = EXP_ULPS * U + dt
    slack = (EXP_ULPS + 4.0) * U * above + x * (2.0 * dt + 4.0 * U * hi) + TINY
    low = above + x * lo * (1.0 - 2.0 * x_error) - slack
    high = above + x * hi * (1.0 + 2.0 * x_error) + slack
    return (
        np.where(left, np.clip(low, 0.0, 1.0), lo),
        np.where(left, np.clip(high, 0.0, 1.0), hi),
    )


def _right(s: Floats, ds: Floats | float, c: float, c_error: float) -> tuple[Floats, Floats]:
    """`h(e^s)` for `s >= 0` and a bound on its absolute error."""
    mu = float(np.sqrt(c))
    work((60.0 if mu <= _SMALL_MU else 16.0) * s.size, 160.0 * s.size)
    mu_error = 0.5 * c_error * (1.0 + c_error) + U
    ratio = np.minimum(s / mu, mu + _BEYOND)
    y = ratio - 0.5 * mu
    far = ratio + 0.5 * mu
    dy = (ratio + 0.5 * mu) * (mu_error + 2.0 * U) + ds / mu
    density = normal_density(y)
    drift = (np.abs(y) + dy) * dy
    density_error = np.expm1(np.minimum(drift, 1.0)) + (EXP_ULPS + 3.0 + y * y) * U
    mills_far = mills_ratio(far)
    if mu <= _SMALL_MU:
        value, relative = _integral(y, mu)
        relative = relative + 2.0 * dy + mu_error + 4.0 * U
    else:
        # Where y < 0 the difference form is not used: keep its argument in range.
        near = mills_ratio(np.maximum(y, 0.0))
        value = np.maximum(near - mills_far, 0.0)
        # |R'| = 1 - yR <= 1/(1 + y²) for y >= 0.
        uncertainty = MILLS_ULPS * U * (near + mills_far) + 3.0 * dy / (1.0 + y * y)
        relative = uncertainty / np.maximum(value, 1e-300) + 4.0 * U
    h = density * value
    error = h * (relative + density_error) * (1.0 + 1e-9) + TINY
    if mu > _SMALL_MU:
        bulk = y < 0.0
        if bulk.any():
            complement = density * (mills_ratio(np.maximum(-y, 0.0)) + mills_far)
            complement_error = complement * (density_error + (MILLS_ULPS + 4.0) * U + 2.0 * dy)
            h = np.where(bulk, 1.0 - complement, h)
            error = np.where(bulk, complement_error + 2.0 * U, error)
    wild = (drift > _WILD) | (dy > _WILD)
    if wild.any():
        # `y` itself has no digits left: h <= Phi(-y) <= e^{-y²/2} / 2 for y >= 0 is what remains,
        # and h <= 2 Phi(mu/2) - 1 <= mu/2 at s = 0, with slope at least -1 left of it.
        least = np.maximum(y - 2.0 * dy, 0.0)
        reach = np.where(least > 0.0, np.exp(-0.5 * least * least * (1.0 - 1e-12)), 1.0)
        reach = np.minimum(reach, 0.5 * mu + 1.01 * ds)
        h, error = np.where(wild, 0.0, h), np.where(wild, reach + TINY, error)
    return h, error


def _integral(y: Floats, mu: float) -> tuple[Floats, Floats]:
    """`R(y) - R(y + mu)` for small `mu` as an integral of `1 - vR(v)`; its relative error."""
    v = y[..., None] + 0.5 * mu * (1.0 + _NODES)
    slope = np.maximum(1.0 - v * mills_ratio(v), 0.0)
    value = 0.5 * mu * (slope @ _WEIGHTS)
    # 1 - vR(v) >= 1/(v² + 3) for v >= 0 and >= 1 below: the error of vR, divided by it.
    top = np.maximum(np.abs(y), np.abs(y + mu))
    relative = (MILLS_ULPS + 4.0) * U * (top * top + 3.0) + 20.0 * U
    return value, relative
