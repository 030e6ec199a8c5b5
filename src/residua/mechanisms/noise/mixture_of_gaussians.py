"""Mixtures of Gaussians: `Σ p_i N(s_i, σ²)` against `N(0, σ²)`, and the reversal.

Choquette-Choo, Ganesh, Steinke and Thakurta 2024 (Privacy amplification for matrix mechanisms):
a sensitivity that is itself random, as in sampling for correlated noise. Sensitivities are
norms; the line is the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, pair
from residua.mechanisms.relations import ADD_REMOVE, ZERO_OUT
from residua.pld.pld import Pld


@dataclass(frozen=True)
class MixtureOfGaussians(Mechanism):
    """Gaussian noise on a query whose sensitivity is `sensitivities[i]` with `probabilities[i]`."""

    sigma: float
    sensitivities: tuple[float, ...]
    probabilities: tuple[float, ...]

    kind: ClassVar[str] = "mixture_of_gaussians"
    relations: ClassVar[tuple[str, ...]] = (ADD_REMOVE, ZERO_OUT)
    pair: ClassVar[str] = "Σ p_i N(s_i, σ²) | N(0, σ²)"
    reference: ClassVar[str] = "Choquette-Choo, Ganesh, Steinke and Thakurta 2024"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            sigma=checks.positive("sigma", self.sigma),
            sensitivities=checks.numbers("sensitivities", self.sensitivities),
            probabilities=checks.numbers("probabilities", self.probabilities),
        )
        self._one("below")

    def _one(self, side: Side) -> Pld:
        return limits.mixture_of_gaussians(self.sigma, self.sensitivities, self.probabilities, side)

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return pair(relation, self._one(side))
