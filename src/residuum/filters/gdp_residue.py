"""The GDP residue filter: the largest Gaussian that is left.

A query `L` on the budget `G_mu` leaves the largest `G_m` with `G_m ⊕ L ⪯ G_mu`, and takes
`c = mu² - m²`, which is never more than the GDP filter's `nu²`. What is left of `mu²` is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residuum.filters import amounts
from residuum.filters.divergence import gaussian_variance, without_gaussian
from residuum.filters.gdp import Gaussians
from residuum.filters.query import described
from residuum.pld.gdp_residue import gdp_residue_cost
from residuum.pld.value import Pld


@dataclass(frozen=True)
class GdpResidueFilter(Gaussians):
    """Admits what fits `G_mu`, and keeps the largest Gaussian that is then left."""

    mu: float

    kind: ClassVar[str] = "gdp_residue"

    def __post_init__(self) -> None:
        super().__post_init__()

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        noise = gaussian_variance(loss)
        rest = without_gaussian(loss)
        if not rest.terms:
            return (noise,)
        if left[0] <= noise:
            return (
                f"{described(loss)} has Gaussian noise alone that needs {float(noise):.6g} of mu²"
            )
        cost = gdp_residue_cost(left[0], rest)
        if cost is None:
            return f"{described(loss)} does not fit the Gaussian that is left"
        return (noise + amounts.rounded_up(float(cost.hi)),)
