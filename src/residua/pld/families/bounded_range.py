"""Bounded range: the privacy loss of the exponential mechanism, and Laplace noise with other atoms.

A mechanism of range `e` has, for each pair of neighbours, losses in an interval of length `e`.
The supremum of all of them has the density `e^{z/2} / (4 sinh(e/2))` on `[-e, e]`; call it `B_e`:

    h(e^t)   = (1 - e^{(t-e)/2})² / (1 - e^-e)                      |t| <= e
    E e^{sZ} = sinh((s+½)e) / ((2s+1) sinh(e/2))

(Dong, Durfee and Rogers 2020: for each `t` the worst two-point pair has losses `(t ± e)/2`; the
curve above is its value, so every point is attained.) Between `B_e` and the response `R_e` lie
`w R_e + (1-w) B_e`: `w = (1 + e^-e) / 2` is Laplace noise, and other `w` are Laplace noise cut
off on both sides. They increase in `e` and in `w`, and are symmetric. With `r = e^{-(2s+1)e}`,

    M(s) e^{-se} = w (1 + r) / (1 + e^-e) + (1-w) (1 - r) / ((2s+1) (1 - e^-e)).

Errors: all terms of real moments are positive, so relative errors do not grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    EXPM1_ULPS,
    LOG1P_ULPS,
    SINCOS_ULPS,
    TINY,
    U,
)
from residua.work_limit import work


class SymmetricLoss:
    """What symmetric losses share; without masses at infinity and atoms unless they say so."""

    __slots__ = ()

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
        return Fraction(0)

    @property
    def atom_count(self) -> int | None:
        return None


@dataclass(frozen=True, slots=True)
class BoundedRange(SymmetricLoss):
    """`w R_e + (1-w) B_e`; both parameters denote their exact float values."""

    eps: float
    atomic: float

    @property
    def top(self) -> Fraction:
        """The largest loss, exactly."""
        return Fraction(self.eps)

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `h(e^t)`, `t >= 0` known up to `±dt`."""
        work(15.0 * t.size)
        gap = np.minimum(t - self.eps, 0.0)
        g = -np.expm1(0.5 * gap)
        g_error = g * ((EXPM1_ULPS + 2.0) * U) + 0.5 * (dt + np.abs(gap) * U) * 1.01
        least, most = np.maximum(g - g_error, 0.0), g + g_error
        w = self.atomic
        response = w / (1.0 + np.exp(-self.eps))
        flat = (1.0 - w) / -np.expm1(-self.eps)
        # Both parts increase in g on [0, 1].
        low = response * least * (2.0 - least) + flat * least * least
        high = response * most * (2.0 - np.minimum(most, 1.0)) + flat * most * most
        # The curve falls by at most dt over dt, which is the better bound for tiny ranges.
        value = response * g * (2.0 - g) + flat * g * g
        slack = 1.01 * (dt + np.abs(gap) * U) + value * (3.0 * EXPM1_ULPS * U)
        low, high = np.maximum(low, value - slack), np.minimum(high, value + slack)
        wrong = (EXP_ULPS + EXPM1_ULPS + 12.0) * U
        inside = t - self.eps < dt
        return (
            np.where(inside, low * (1.0 - wrong), 0.0),
            np.where(inside, high * (1.0 + wrong) + TINY, 0.0),
        )

    @property
    def mean_loss(self) -> tuple[float, float]:
        """`E Z` and its absolute error: `e tanh(e/2)` and `e coth(e/2) - 2`, weighted."""
        e, w = self.eps, self.atomic
        half = float(np.tanh(0.5 * e))
        # e coth(e/2) - 2 = e²/6 - e⁴/360 + …, which alternates.
        flat = e * e / 6.0 * (1.0 - e * e / 60.0) if e < 1e-2 else e / half - 2.0
        slack = e**6 / 15000.0 if e < 1e-2 else 32.0 * U * (e + 4.0)
        value = w * e * half + (1.0 - w) * flat
        return value, slack + 64.0 * U * (abs(value) + w * e * half)

    def __repr__(self) -> str:
        more = f", atomic={self.atomic!r}" if self.atomic else ""
        return f"bounded_range({self.eps!r}{more})"


def log_moment(eps: Floats, atomic: Floats, s: Floats) -> tuple[Floats, Floats]:
    """`ln E e^{sZ}` for real `s` and its absolute error; broadcasts."""
    far = np.abs(s + 0.5) - 0.5
    rate = 2.0 * far + 1.0
    fall = -np.expm1(-rate * eps)
    share = np.where(rate > 0.0, fall / np.where(rate > 0.0, rate, 1.0), eps)
    base = atomic * (2.0 - fall) / (1.0 + np.exp(-eps)) + (1.0 - atomic) * share / -np.expm1(-eps)
    value = far * eps + np.log(base)
    size = np.abs(far) * eps + np.abs(np.log(base)) + 1.0
    return value, size * ((LOG1P_ULPS + 2.0 * EXPM1_ULPS + EXP_ULPS + 16.0) * U)


def nodes(
    eps: Floats, atomic: Floats, lam: float, omega: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """`M(λ+iω)/M(λ)` and a bound on its absolute error, for `λ > 0`; broadcasts."""
    rate = 2.0 * lam + 1.0
    fall = -np.expm1(-rate * eps)
    response = atomic / (1.0 + np.exp(-eps))
    flat = (1.0 - atomic) / -np.expm1(-eps)
    base = response * (2.0 - fall) + flat * fall / rate
    argument = omega * eps
    cosine, sine = np.cos(argument), np.sin(argument)
    # e^{iωe} ± r e^{-iωe}, r = 1 - fall
    plus = (2.0 - fall) * cosine + 1j * (fall * sine)
    minus = fall * cosine + 1j * ((2.0 - fall) * sine)
    value = (response * plus + flat * minus / (rate + 2j * omega)) / base
    # The sine of a small argument is relatively accurate, so its error is at most
    # 2 SINCOS u min(1, ωe), and divided by |2s+1| that is min(2e, 1/ω) SINCOS u.
    far = np.minimum(2.0 * eps, 1.0 / np.maximum(omega, rate))
    error = response * (2.0 * SINCOS_ULPS + EXPM1_ULPS + 6.0 * argument + 20.0)
    error = error + flat * (fall / rate) * (SINCOS_ULPS + EXPM1_ULPS + 3.0 * argument + 20.0)
    error = error + flat * (far * (2.0 * SINCOS_ULPS + 8.0) + 3.0 * eps)
    error = error * (1.01 * U / base) + np.abs(value) * ((EXP_ULPS + 2.0 * EXPM1_ULPS + 20.0) * U)
    return value, error


def log_fall(eps: Floats, atomic: Floats, lam: float, edges: Floats) -> Floats:
    """An upper bound on `ln |M(λ+iω)/M(λ)|` for all `ω >= edge`; broadcasts."""
    rate = 2.0 * lam + 1.0
    fall = -np.expm1(-rate * eps)
    response = atomic / (1.0 + np.exp(-eps))
    flat = (1.0 - atomic) / -np.expm1(-eps)
    base = response * (2.0 - fall) + flat * fall / rate
    bound = (2.0 - fall) * (response + flat / (2.0 * edges)) / base
    return np.minimum(np.log(bound) + 1e-12, 0.0)
