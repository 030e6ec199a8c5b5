"""One step of DP-SGD: Gaussian noise on a Poisson sample, in closed form.

Add-remove and zero-out: `(1-q) N(0, σ²) + q N(Δ, σ²)` against `N(0, σ²)` and its reversal (Abadi
et al. 2016; tight by Zhu, Dong and Wang 2022, theorem 11). Replace-one: against
`(1-q) N(0, σ²) + q N(-Δ, σ²)`, where `Δ` bounds what one record contributes. Two records contribute
`v` and `v'` of norm at most `Δ`; by advanced joint convexity (Balle, Barthe and Gaboardi 2018,
theorem 2) the curve is that of `N(v)` against a mixture of `N(0)` and `N(v')`, and mixtures of
Gaussians at given distances are worst on a line (Choquette-Choo et al. 2024, Privacy
amplification for matrix mechanisms).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side
from residua.mechanisms.relations import directions
from residua.pld.pld import Pld


@dataclass(frozen=True)
class SubsampledGaussian(Mechanism):
    """Gaussian noise on the sum over a Poisson sample; one record contributes `sensitivity`."""

    sigma: float
    sampling_rate: float
    sensitivity: float = 1.0

    kind: ClassVar[str] = "subsampled_gaussian"
    pair: ClassVar[str] = "(1-q) N(0, σ²) + q N(Δ, σ²) | N(0, σ²), or | (1-q) N(0) + q N(-Δ)"
    reference: ClassVar[str] = "Abadi et al. 2016; Zhu, Dong and Wang 2022, theorem 11"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            sigma=checks.positive("sigma", self.sigma),
            sampling_rate=checks.probability("sampling_rate", self.sampling_rate),
            sensitivity=checks.non_negative("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return {
            direction: limits.subsampled_gaussian(
                self.sigma, self.sampling_rate, direction, self.sensitivity, side
            )
            for direction in directions(relation)
        }
