"""The GDP residue filter: the largest Gaussian that is left.

A query `L` on the budget `G_mu` leaves the largest `G_m` with `G_m ⊕ L ⪯ G_mu`, and takes
`c = mu² - m²`, which is never more than the GDP filter's `nu²`. What is left of `mu²` is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua.bounds import float_down, float_up
from residua.filters import amounts, wording
from residua.filters.additive.gdp import Gaussians, lift_tiny
from residua.filters.base import DecreasingCost
from residua.filters.costs import gaussian_variance, split, without_gaussian
from residua.filters.decision import Decision
from residua.filters.query import Query, loss_of
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import closed_form_parameter, gdp_parameter
from residua.pld.residue.gdp_residue import cost_bounds
from residua.work_limit import remembered

_NO_ROOM = "is not proven to fit the Gaussian that is left"


@dataclass(frozen=True)
class GdpResidueFilter(Gaussians):
    """Admits what fits `G_mu`, and keeps the largest Gaussian that is then left."""

    mu: float

    kind: ClassVar[str] = "gdp_residue"

    def __post_init__(self) -> None:
        super().__post_init__()

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        if loss.gaussian is None:
            cost = rest_bounds(left[0], loss)
            return _NO_ROOM if cost is None else (cost[1],)
        bounds = self._bounds(left[0], loss)
        return bounds if isinstance(bounds, str) else (bounds[1],)

    def _bounds(self, left: Fraction, loss: Pld) -> tuple[Fraction, Fraction] | str:
        """The cost of a loss when so much is left: a lower bound, and what is charged."""
        rest = without_gaussian(loss)
        noise = gaussian_variance(loss)
        if not rest.terms:
            return noise, noise
        if noise and left <= noise:
            return _NO_ROOM
        cost = rest_bounds(left, rest)
        return _NO_ROOM if cost is None else (noise + Fraction(cost[0]), noise + cost[1])

    def _need(self, decision: Decision) -> str:
        """The Gaussian that the query alone would need."""
        if decision._why_not != _NO_ROOM:
            return super()._need(decision)
        nu = gdp_parameter(loss_of(decision.query, decision._relation))
        if not nu < math.inf:
            return "is not covered by any Gaussian"
        left, needed = self._amounts_left(decision._before), amounts.written(nu) ** 2
        if not needed > left[0][1]:
            return _NO_ROOM
        return f"needs {wording.need_words(left, (needed,))}"

    def decreasing_cost(self, query: Query, relation: str | None = None) -> DecreasingCost:
        """Never more for a larger `mu`: compose both sides of `G_m ⊕ L ⪯ G_mu` with a Gaussian."""
        stated, loss = split(query, relation, self._declared_costs)
        fixed = stated[0] if stated else Fraction(0)

        def cost(left: Fraction) -> tuple[Fraction, Fraction] | None:
            bounds = (Fraction(0),) * 2 if loss.is_identity else self._bounds(left, loss)
            if isinstance(bounds, str) or not fixed + bounds[1] <= left:
                return None
            return fixed + bounds[0], fixed + bounds[1]

        return cost


def rest_bounds(left: Fraction, rest: Pld) -> tuple[float, Fraction] | None:
    """The same for a loss without a Gaussian part; None if it does not fit."""
    # By its integers: to hash a rational takes a division modulo a prime.
    return _bounds_at(*left.as_integer_ratio(), rest)


@remembered(maxsize=512, once=False)
def _bounds_at(numerator: int, denominator: int, rest: Pld) -> tuple[float, Fraction] | None:
    left, above = Fraction(numerator, denominator), lift_tiny(rest)
    low, high = 0.0, left + 1
    cost = cost_bounds(left, above)
    if cost is not None:
        low = float_down(cost[0]) if above is rest else 0.0
        high = amounts.rounded_up(float_up(cost[1]))
    nu = closed_form_parameter(above)
    if nu < math.inf:
        # What the GDP filter charges, rounded as it rounds.
        high = min(high, amounts.rounded_up(nu) ** 2)
    return (low, high) if high <= left else None
