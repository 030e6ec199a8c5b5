"""Gaussian noise: `N(0, σ²)` against `N(Δ, σ²)`, exactly `G_mu` with `mu = Δ / σ`.

Dong, Roth and Su 2022 (Gaussian differential privacy), theorem 2.7. In any number of dimensions,
with the sensitivity in the Euclidean norm: the two means span a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.pld.pld import Pld


@checks.keyword_only("sigma or mu", "Gaussian(sigma={}) or Gdp(mu={})")
@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """Gaussian noise of standard deviation `sigma` on a query of this (Euclidean) sensitivity."""

    sigma: float
    sensitivity: float = 1.0

    kind: ClassVar[str] = "gaussian"
    pair: ClassVar[str] = "N(0, σ²) | N(Δ, σ²)"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, theorem 2.7"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            sigma=checks.positive("sigma", self.sigma),
            sensitivity=checks.non_negative("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.gaussian(self.sigma, self.sensitivity, side))
