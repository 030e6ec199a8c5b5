"""Discrete Gaussian noise on the integers, against itself shifted by an integer sensitivity.

Canonne, Kamath and Steinke 2020 (The discrete Gaussian for differential privacy). The loss has
countably many values; all but the lightest are written out, exactly (`pld/discrete_gaussian.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residuum import checks
from residuum.mechanisms.mechanism import Mechanism, Side, both
from residuum.pld.constructors import from_exact, identity
from residuum.pld.discrete_gaussian import discrete_gaussian
from residuum.pld.value import Pld


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Integer noise with `P(x) ∝ e^{-x²/(2σ²)}` on a query of this integer sensitivity."""

    sigma: float
    sensitivity: int = 1

    kind: ClassVar[str] = "discrete_gaussian"
    pair: ClassVar[str] = "N_Z(0, σ²) | N_Z(Δ, σ²)"
    reference: ClassVar[str] = "Canonne, Kamath and Steinke 2020"

    def __post_init__(self) -> None:
        self._set(
            sigma=checks.positive("sigma", self.sigma),
            sensitivity=checks.count("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        if self.sensitivity == 0:
            return both(relation, identity())
        return both(relation, from_exact(discrete_gaussian(self.sigma, self.sensitivity, side)))
