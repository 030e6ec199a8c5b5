"""Bounded range: the privacy loss of the exponential mechanism, and Laplace noise with other atoms.

A mechanism of range `e` has, for each pair of neighbours, losses in an interval of length `e`.
The supremum of all of them has the density `e^{z/2} / (4 sinh(e/2))` on `[-e, e]`; call it `B_e`:

    h(e^t)   = (1 - e^{(t-e)/2})² / (1 - e^-e)                      |t| <= e
    E e^{sZ} = sinh((s+½)e) / ((2s+1) sinh(e/2))

(Dong, Durfee and Rogers 2020: for each `t` the worst two-point pair has losses `(t ± e)/2`; the
curve above is its value, so every point is attained.) Between `B_e` and the response `R_e` lie
`w R_e + (1-w) B_e`: `w = (1 + e^-e) / 2` is Laplace noise, and other `w` are Laplace noise cut
off on both sides. They increase in `e` and in `w`, and are symmetric (`symmetric.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from residua.pld.families.symmetric import SymmetricLoss


@dataclass(frozen=True, slots=True)
class BoundedRange(SymmetricLoss):
    """`w R_e + (1-w) B_e`; both parameters denote their exact float values."""

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
