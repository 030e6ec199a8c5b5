"""`R_{eps,delta}`, the largest privacy loss that is `(eps, delta)`-DP.

Mass `delta` at `+inf` (and, for `Q`, at `-inf`), `(1-delta)/(1+e^-eps)` at `eps` and
`(1-delta)/(1+e^eps)` at `-eps`. The losses `±eps` are exact; the masses are irrational
and live in intervals. With `r = e^{-(2s+1) eps}`:

    h(e^t)     = delta + (1-delta) (1 - e^{t-eps}) / (1 + e^-eps)       |t| <= eps
    E e^{sZ}   = (1-delta) e^{s eps} (1 + r) / (1 + e^-eps)             finite part
    M(λ+iω)/M(λ) = cos(ω eps) + i tanh((λ+½) eps) sin(ω eps)

`eps = 0` is not represented here: `R_{0,delta}` has rational masses (`atoms.py`).
Errors: `t - eps`, one rounding of relative size `u`; `expm1`, `exp`, `tanh` and the
like as in `ulp_bounds.py`; the argument `ω eps` of sine and cosine, `3u |ω eps|`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    EXPM1_ULPS,
    LOG1P_ULPS,
    SINCOS_ULPS,
    TANH_ULPS,
    TINY,
    U,
)
from residua.pld.families.bounded_range import SymmetricLoss
from residua.work_limit import work


@dataclass(frozen=True, slots=True)
class RandomizedResponse(SymmetricLoss):
    """`R_{eps,delta}` with `eps > 0` and `delta < 1`, both denoting their exact float values."""

    eps: float
    delta: float

    @property
    def mass_at_infinity(self) -> Fraction:
        return Fraction(self.delta)

    @property
    def mass_at_minus_infinity(self) -> Fraction:
        return Fraction(self.delta)

    @property
    def top(self) -> Fraction:
        """The largest finite loss, exactly."""
        return Fraction(self.eps)

    @property
    def atom_count(self) -> int:
        return 2

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `E[(1 - e^{t-Z})_+; Z < inf]`, `t >= 0` known up to `±dt`."""
        work(15.0 * t.size)
        gap = np.minimum(t - self.eps, 0.0)
        gap_error = dt + np.abs(gap) * U
        scale = (1.0 - self.delta) / (1.0 + np.exp(-self.eps))
        value = -np.expm1(gap) * scale
        error = value * ((EXPM1_ULPS + EXP_ULPS + 6.0) * U) + scale * gap_error * 1.01
        inside = t - self.eps < dt
        return (
            np.where(inside, np.maximum(value - error, 0.0), 0.0),
            np.where(inside, value + error + TINY, 0.0),
        )

    def __repr__(self) -> str:
        if self.delta == 0.0:
            return f"pure_dp({self.eps!r})"
        return f"approximate_dp({self.eps!r}, {self.delta!r})"


def log_moment(eps: Floats, delta: Floats, s: Floats) -> tuple[Floats, Floats]:
    """`ln E[e^{sZ}; Z < inf]` for real `s` and its absolute error; broadcasts."""
    # The moment is symmetric about -1/2, so `s >= -1/2` covers everything.
    far = np.abs(s + 0.5) - 0.5
    tail = np.log1p(np.exp(-(2.0 * far + 1.0) * eps))
    value = np.log1p(-delta) + far * eps + tail - np.log1p(np.exp(-eps))
    size = -np.log1p(-delta) + np.abs(far) * eps + 2.0
    return value, size * ((LOG1P_ULPS + EXP_ULPS + 8.0) * U)


def nodes(
    eps: Floats, _delta: Floats, lam: float, omega: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """`M(λ+iω)/M(λ)`, whatever `delta`, and a bound on its absolute error; broadcasts."""
    argument = omega * eps
    weight = np.tanh((lam + 0.5) * eps)
    value = np.cos(argument) + 1j * (weight * np.sin(argument))
    error = (2.0 * SINCOS_ULPS + TANH_ULPS + 6.0) * U + 3.0 * U * argument
    return value, error
