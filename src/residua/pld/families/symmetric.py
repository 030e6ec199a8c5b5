"""The symmetric family of randomized response, Laplace noise and bounded ranges.

The finite losses have mass `a` at `e`, mass `a e^-e` at `-e`, and the density `b e^{(z-e)/2} / 2`
between. With `g = 1 - e^{(t-e)/2}` and `r = e^{-(2s+1)e}`,

    h(e^t) = p_inf + a g (2-g) + b g²                          |t| <= e
    M(s) e^{-se} = a (1+r) + b (1-r) / (2s+1)                  finite part

                          a                      b
    response `R_{e,d}`    (1-d) / (1 + e^-e)     0
    Laplace noise         1/2                    1/2
    range, atoms `w`      w / (1 + e^-e)         (1-w) / (1 - e^-e)

Errors: `a` is off by at most `EXP + 4`, `b` by `EXPM1 + 4`, the float of `e` by one unit, all
relative in units of `u`; functions as in `ulp_bounds.py`. All terms of the curve and of real
moments are positive, so relative errors do not grow. At a node each part counts relative to its
value at the real point `λ`, which is at least its modulus; the arguments `ωe` are off by `4ωe`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats, quotient_up
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.work_limit import work

Columns = tuple[Floats, Floats, Floats]
"""`e`, `a` and `b` of several losses, to broadcast against arguments."""

_SERIES_BELOW = 0.1
"""Below this `e` a series gives the mean: in closed form `e coth(e/2)` cancels against 2."""


class SymmetricLoss:
    """Base of the losses of this family; by default without mass at infinity."""

    __slots__ = ()

    eps: float
    """`e`, relative error at most `u`."""

    @property
    def top(self) -> Fraction:
        """The largest finite loss `e`, exactly."""
        return Fraction(self.eps)

    @property
    def eps_above(self) -> float:
        """The least float at least `e`."""
        return self.eps

    @property
    def weights(self) -> tuple[float, float]:
        """`a` and `b`."""
        raise NotImplementedError

    @property
    def atomic_share(self) -> float:
        """The weight `a (1 + e^-e)` of the atoms, relative to a randomized response."""
        return 1.0

    @property
    def is_symmetric(self) -> bool:
        return True

    def reverse(self) -> Self:
        return self

    @property
    def mass_at_infinity(self) -> Fraction:
        return Fraction(0)

    @property
    def mass_at_minus_infinity(self) -> Fraction:
        return self.mass_at_infinity

    @property
    def atom_count(self) -> int | None:
        return None

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of the finite part of `h(e^t)`, `t >= 0` known up to `±dt`."""
        work(15.0 * t.size)
        a, b = self.weights
        gap = np.minimum(t - self.eps, 0.0)
        slack = 1.01 * (dt + (np.abs(gap) + self._eps_error) * U)
        g = -np.expm1(0.5 * gap)
        g_error = g * ((EXP_ULPS + 2.0) * U) + 0.5 * slack
        g_low, g_high = np.maximum(g - g_error, 0.0), g + g_error
        # Both parts increase in g on [0, 1].
        low = a * g_low * (2.0 - g_low) + b * g_low * g_low
        high = a * g_high * (2.0 - np.minimum(g_high, 1.0)) + b * g_high * g_high
        # The curve falls by at most dt over dt, which is the better bound for tiny ranges.
        value = a * g * (2.0 - g) + b * g * g
        slack = slack + value * (3.0 * EXP_ULPS * U)
        low, high = np.maximum(low, value - slack), np.minimum(high, value + slack)
        relative_error = (2.0 * EXP_ULPS + 12.0) * U
        inside = t - self.eps < dt + self._eps_error * U
        return (
            np.where(inside, low * (1.0 - relative_error), 0.0),
            np.where(inside, high * (1.0 + relative_error) + TINY, 0.0),
        )

    @property
    def _eps_error(self) -> float:
        """The error of `eps` in units of `u`."""
        return 0.0

    @property
    def mean_loss(self) -> tuple[float, float]:
        """`E[Z; Z < inf]` and its absolute error: `e a (1-q)` and `b (1-q) (e coth(e/2) - 2)`."""
        a, b = self.weights
        e, fall = self.eps, -float(np.expm1(-self.eps))
        square = e * e
        series = 1.0 - square / 60.0 * (1.0 - square / 42.0 * (1.0 - square / 40.0))
        rest, rest_error = square / 6.0 * series, e**10 / 2e7
        if e >= _SERIES_BELOW:
            rest = e * (2.0 - fall) / fall - 2.0
            rest_error = (2.0 * EXP_ULPS + 12.0) * U * (e + 4.0)
        value = fall * (a * e + b * rest)
        return value, fall * b * rest_error + value * (3.0 * EXP_ULPS + 24.0) * U

    def __repr__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Laplace(SymmetricLoss):
    """Laplace noise of the given scale on a query of the given sensitivity.

    With `e = sensitivity / scale` the loss is `e` with mass 1/2, `-e` with mass `e^-e / 2`,
    and has density `e^{(z-e)/2} / 4` between:

        h(e^t)   = 1 - e^{(t-e)/2}                                  |t| <= e
        M(s)     = ((s+1) e^{se} + s e^{-(s+1)e}) / (2s+1)

    `e` is one rounded division (or exact), so its float carries `u` relative.
    """

    scale: float
    sensitivity: float

    @cached_property
    def top(self) -> Fraction:
        """The largest loss `e`, exactly."""
        return Fraction(self.sensitivity) / Fraction(self.scale)

    @cached_property
    def eps(self) -> float:  # type: ignore[override]
        """`e` in floating point, relative error at most `u`."""
        return self.sensitivity / self.scale

    @property
    def eps_above(self) -> float:
        return quotient_up(self.sensitivity, self.scale)

    @property
    def weights(self) -> tuple[float, float]:
        return 0.5, 0.5

    @property
    def atomic_share(self) -> float:
        return 0.5 * (1.0 + math.exp(-self.eps))

    @property
    def _eps_error(self) -> float:
        return self.eps

    def __repr__(self) -> str:
        if self.sensitivity == 1.0:
            return f"laplace(scale={self.scale!r})"
        return f"laplace(scale={self.scale!r}, sensitivity={self.sensitivity!r})"


@dataclass(frozen=True, slots=True)
class RandomizedResponse(SymmetricLoss):
    """`R_{eps,delta}`, the largest privacy loss that is `(eps, delta)`-DP.

    Mass `delta` at `+inf` (and, for `Q`, at `-inf`), `(1-delta)/(1+e^-eps)` at `eps` and
    `(1-delta)/(1+e^eps)` at `-eps`. The losses `±eps` are exact; the masses are irrational and live
    in intervals:

        h(e^t)       = delta + (1-delta) (1 - e^{t-eps}) / (1 + e^-eps)       |t| <= eps
        M(λ+iω)/M(λ) = cos(ω eps) + i tanh((λ+½) eps) sin(ω eps)

    Both parameters denote their exact float values, `eps > 0` and `delta < 1`: `R_{0,delta}` has
    rational masses (`atoms.py`).
    """

    eps: float
    delta: float

    @property
    def mass_at_infinity(self) -> Fraction:
        return Fraction(self.delta)

    @property
    def atom_count(self) -> int:
        return 2

    @property
    def weights(self) -> tuple[float, float]:
        return (1.0 - self.delta) / (1.0 + math.exp(-self.eps)), 0.0

    def __repr__(self) -> str:
        if self.delta == 0.0:
            return f"pure_dp({self.eps!r})"
        return f"approximate_dp({self.eps!r}, {self.delta!r})"


@dataclass(frozen=True, slots=True)
class BoundedRange(SymmetricLoss):
    """`w R_e + (1-w) B_e`: the exponential mechanism, and Laplace noise with other atoms.

    A mechanism of range `e` has, for each pair of neighbours, losses in an interval of length `e`.
    The supremum of all of them has the density `e^{z/2} / (4 sinh(e/2))` on `[-e, e]`, say `B_e`:

        h(e^t)   = (1 - e^{(t-e)/2})² / (1 - e^-e)                      |t| <= e
        E e^{sZ} = sinh((s+½)e) / ((2s+1) sinh(e/2))

    (Dong, Durfee and Rogers 2020: for each `t` the worst two-point pair has losses `(t ± e)/2`; the
    curve above is its value, so every point is attained.) Between `B_e` and the response `R_e` lie
    `w R_e + (1-w) B_e`: `w = (1 + e^-e) / 2` is Laplace noise, and other `w` are Laplace noise cut
    off on both sides. They increase in `e` and in `w`. Both parameters denote their exact floats.
    """

    eps: float
    atomic: float

    @property
    def atomic_share(self) -> float:
        return self.atomic

    @property
    def weights(self) -> tuple[float, float]:
        flat = (1.0 - self.atomic) / -math.expm1(-self.eps)
        return self.atomic / (1.0 + math.exp(-self.eps)), flat

    def __repr__(self) -> str:
        more = f", atomic={self.atomic!r}" if self.atomic else ""
        return f"bounded_range({self.eps!r}{more})"


def log_moment(eps: Floats, a: Floats, b: Floats, s: Floats) -> tuple[Floats, Floats]:
    """`ln E[e^{sZ}; Z < inf]` for real `s` and its absolute error; broadcasts."""
    # The moment is symmetric about -1/2, so `s >= -1/2` covers everything.
    rate = 2.0 * np.abs(s + 0.5)
    far = np.where(s >= -0.5, s, -1.0 - s)
    fall = -np.expm1(-rate * eps)
    share = np.where(rate > 0.0, fall / np.where(rate > 0.0, rate, 1.0), eps)
    # Next to 0 the digits of `K(s) / s` are those of what the base is above its value there.
    q, lost = np.exp(-eps), -np.expm1(-eps)
    # The mass: 1 exactly of Laplace noise, and without cancelling of tiny ranges.
    whole = np.where(b <= 1.0, (a + b) + q * (a - b), a * (1.0 + q) + b * lost)
    per = b / np.where(rate > 0.0, rate, 1.0)
    one = q * np.expm1(np.minimum(-2.0 * far * eps, 700.0)) * (a - per)
    other = -2.0 * per * far * lost
    close = (np.abs(one) + np.abs(other) < 0.125 * whole) & (np.abs(far) < 0.125)
    plain = np.log(a * (2.0 - fall) + b * share)
    log_base = np.where(
        close, np.log(whole) + np.log1p(np.where(close, one + other, 0.0) / whole), plain
    )
    error = (3.0 * EXP_ULPS + 16.0) + (EXP_ULPS + 2.0) * np.abs(log_base)
    return far * eps + log_base, U * (error + 8.0 * (np.abs(far) + 1.0) * eps)


def nodes(
    eps: Floats, a: Floats, b: Floats, lam: float, omega: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """`M(λ+iω)/M(λ)` and a bound on its absolute error, for `λ >= -0.45`; broadcasts."""
    rate = 2.0 * lam + 1.0
    fall = -np.expm1(-rate * eps)
    base = a * (2.0 - fall) + b * fall / rate
    argument = omega * eps
    cosine, sine = np.cos(argument), np.sin(argument)
    # e^{iωe} ± r e^{-iωe}, r = 1 - fall
    plus = (2.0 - fall) * cosine + 1j * (fall * sine)
    minus = fall * cosine + 1j * ((2.0 - fall) * sine)
    value = (a * plus + b * minus / (rate + 2j * omega)) / base
    # The sine of a small argument is relatively accurate, so its error is at most
    # 2 SINCOS u min(1, ωe), and divided by |2s+1| that is min(2e, 1/ω) SINCOS u.
    far = np.minimum(2.0 * eps, 1.0 / np.maximum(omega, rate))
    error = a * (4.0 * EXP_ULPS + 8.0 * argument + 24.0)
    error = error + b * (fall / rate) * (3.0 * EXP_ULPS + 4.0 * argument + 32.0)
    error = error + b * (far * (2.0 * EXP_ULPS + 8.0) + 4.0 * eps)
    return value, error * (1.01 * U / base) + np.abs(value) * ((2.0 * EXP_ULPS + 16.0) * U)


def log_decay(eps: Floats, a: Floats, b: Floats, lam: float, edges: Floats) -> Floats:
    """An upper bound of `ln |M(λ+iω)/M(λ)|` for all `ω >= edge`, `λ >= -0.45`; broadcasts.

    It is `|a + b/(2s+1)| + r |a - b/(2s+1)|` over the same at `λ`. As `ω` grows the first modulus
    falls to `a`, and the second rises or falls to it.
    """
    rate = 2.0 * lam + 1.0
    whole = np.hypot(rate, 2.0 * edges)
    first = np.hypot(a * rate + b, 2.0 * a * edges) / whole
    second = np.maximum(np.hypot(a * rate - b, 2.0 * a * edges) / whole, a)
    base = a * (2.0 + np.expm1(-rate * eps)) - b * np.expm1(-rate * eps) / rate
    log_bound = np.log((first + second * np.exp(-rate * eps)) / base)
    ulps = 10.0 * EXP_ULPS + 60.0
    return np.asarray(np.minimum(log_bound * (1.0 - 32.0 * U) + ulps * U, 0.0))
