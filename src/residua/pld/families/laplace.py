"""The privacy loss of the Laplace mechanism, in closed form.

With `e = sensitivity / scale` the loss is `e` with mass 1/2, `-e` with mass `e^-e / 2`,
and has density `e^{(z-e)/2} / 4` between. It is symmetric, and

    h(e^t)   = 1 - e^{(t-e)/2}                                  |t| <= e
    E e^{sZ} = e^{se} (1 + s (e^{-(2s+1)e} - 1) / (2s+1))       real s
    M(s)     = ((s+1) e^{se} + s e^{-(s+1)e}) / (2s+1)          complex s

Errors: `e` is one rounded division (or exact), so every `e` carries `u` relative;
the rest as in `ulp_bounds.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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
from residua.pld.families.bounded_range import SymmetricLoss
from residua.work_limit import work


@dataclass(frozen=True)
class Laplace(SymmetricLoss):
    """Laplace noise of the given scale on a query of the given sensitivity."""

    scale: float
    sensitivity: float

    @cached_property
    def top(self) -> Fraction:
        """The largest loss `e`, exactly."""
        return Fraction(self.sensitivity) / Fraction(self.scale)

    @cached_property
    def eps(self) -> float:
        """`e` in floating point, relative error at most `u`."""
        return self.sensitivity / self.scale

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `h(e^t)`, `t >= 0` known up to `±dt`."""
        work(15.0 * t.size)
        gap = np.minimum(t - self.eps, 0.0)
        slack = dt + (np.abs(gap) + self.eps) * U
        value = -np.expm1(0.5 * gap)
        error = value * ((EXPM1_ULPS + 4.0) * U) + 0.5 * slack * 1.01
        inside = t - self.eps < slack
        return (
            np.where(inside, np.maximum(value - error, 0.0), 0.0),
            np.where(inside, value + error + TINY, 0.0),
        )

    def __repr__(self) -> str:
        if self.sensitivity == 1.0:
            return f"laplace(scale={self.scale!r})"
        return f"laplace(scale={self.scale!r}, sensitivity={self.sensitivity!r})"


def log_moment(eps: Floats, s: Floats) -> tuple[Floats, Floats]:
    """`ln E e^{sZ}` for real `s` and its absolute error; broadcasts."""
    far = np.abs(s + 0.5) - 0.5
    rate = 2.0 * far + 1.0
    decay = np.expm1(-rate * eps)
    share = np.where(rate > 0.0, decay / np.where(rate > 0.0, rate, 1.0), -eps)
    value = far * eps + np.log1p(far * share)
    size = np.abs(far) * eps + 1.0
    return value, size * ((LOG1P_ULPS + 2.0 * EXPM1_ULPS + 12.0) * U)


def nodes(eps: Floats, lam: float, omega: Floats) -> tuple[NDArray[np.complex128], Floats]:
    """`M(λ+iω)/M(λ)` and a bound on its absolute error, for `λ >= -0.45`; broadcasts."""
    s = lam + 1j * omega
    rate = 2.0 * lam + 1.0
    decay = np.exp(-rate * eps)
    base = 1.0 + lam * np.expm1(-rate * eps) / rate
    argument = omega * eps
    turn = np.cos(argument) + 1j * np.sin(argument)
    value = ((s + 1.0) * turn + s * decay * np.conj(turn)) / ((2.0 * s + 1.0) * base)
    # For λ > 0, |s+1| + |s| <= 2|2s+1| and base >= 1/2: every relative error counts at most 4
    # times. Else |s+1| + |s| <= |2s+1| + 1 and base >= 1, and 2s+1 has lost some digits.
    times = 4.0 if lam > 0.0 else 1.0 + 1.0 / rate
    ulps = 2.0 * SINCOS_ULPS + EXP_ULPS + EXPM1_ULPS + 40.0 + rate * eps * decay + 4.0 / rate
    error = times * U * (ulps + 4.0 * argument)
    return value, error


def log_fall(eps: Floats, lam: float, edges: Floats) -> Floats:
    """An upper bound of `ln |M(λ+iω)/M(λ)|` for all `ω >= edge`, `λ >= -0.45`; broadcasts.

    As `ω` grows `|s+1| / |2s+1|` falls to 1/2, and `|s| / |2s+1|` rises or falls to it.
    """
    rate = 2.0 * lam + 1.0
    whole = np.hypot(rate, 2.0 * edges)
    first = np.hypot(lam + 1.0, edges) / whole
    second = np.maximum(np.hypot(lam, edges) / whole, 0.5)
    base = 1.0 + lam * np.expm1(-rate * eps) / rate
    bound = (first + second * np.exp(-rate * eps)) / base
    ulps = EXP_ULPS + EXPM1_ULPS + 40.0 + 8.0 / rate + 2.0 * rate * eps
    return np.asarray(np.minimum(np.log(bound) + ulps * U, 0.0))
