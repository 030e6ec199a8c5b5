"""Discrete Gaussian noise on the integers, against itself shifted by an integer sensitivity.

Canonne, Kamath and Steinke 2020 (The discrete Gaussian for differential privacy). The loss has
countably many values; all but the lightest are written out, exactly
(`pld/discretise/discrete_gaussian.py`). Beyond what can be written out (`sigma` above 2000) its
concentrated-DP bound stands in.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import float_up
from residua.mechanisms.black_boxes.zcdp import Zcdp
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.pld.constructors import from_exact, identity
from residua.pld.discretise.discrete_gaussian import (
    LARGEST_SHIFT,
    LARGEST_SIGMA,
    discrete_gaussian,
)
from residua.pld.pld import Pld


@checks.keyword_only("sigma or its square", "DiscreteGaussian(sigma={})")
@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Mechanism):
    """Integer noise with `P(x) ∝ e^{-x²/(2σ²)}` on a query of this integer sensitivity."""

    sigma: float
    sensitivity: int = 1

    kind: ClassVar[str] = "discrete_gaussian"
    pair: ClassVar[str] = "N_Z(0, σ²) | N_Z(Δ, σ²)"
    reference: ClassVar[str] = "Canonne, Kamath and Steinke 2020"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            sigma=checks.positive("sigma", self.sigma),
            sensitivity=checks.count("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        if self.sensitivity == 0:
            return both(relation, identity())
        if self.sigma <= LARGEST_SIGMA and self.sensitivity <= LARGEST_SHIFT:
            return both(relation, from_exact(discrete_gaussian(self.sigma, self.sensitivity, side)))
        # Too many values to write out: what is left is its concentrated-DP bound.
        rho = Fraction(self.sensitivity) ** 2 / (2 * Fraction(self.sigma) ** 2)
        if side == "below":
            return both(relation, identity())
        return Zcdp(float_up(min(rho, Fraction(10**6)))).plds(relation)
