"""`R_{eps,delta}`, the largest privacy loss that is `(eps, delta)`-DP.

Mass `delta` at `+inf` (and, for `Q`, at `-inf`), `(1-delta)/(1+e^-eps)` at `eps` and
`(1-delta)/(1+e^eps)` at `-eps`: `b = 0` in the family of `symmetric.py`. The losses `±eps` are
exact; the masses are irrational and live in intervals.

    h(e^t)       = delta + (1-delta) (1 - e^{t-eps}) / (1 + e^-eps)       |t| <= eps
    M(λ+iω)/M(λ) = cos(ω eps) + i tanh((λ+½) eps) sin(ω eps)

`eps = 0` is not represented here: `R_{0,delta}` has rational masses (`atoms.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from residua.pld.families.symmetric import SymmetricLoss


@dataclass(frozen=True, slots=True)
class RandomizedResponse(SymmetricLoss):
    """`R_{eps,delta}` with `eps > 0` and `delta < 1`, both denoting their exact float values."""

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
