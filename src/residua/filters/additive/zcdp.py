"""The zCDP filter (Bun and Steinke 2016; Whitehouse et al. 2023): `rho` adds up.

`D_α <= rho α` at every order, and each order by itself is a free filter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.budgets import ZcdpBudget
from residua.filters.declared_costs import stated_zcdp
from residua.filters.divergence import gaussian_variance, without_gaussian
from residua.filters.state import Left, State
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import zcdp_parameter


def zcdp_cost(loss: Pld) -> Fraction | None:
    """The least `rho` of a loss, from above and exact for Gaussian noise; None if infinite."""
    cost = gaussian_variance(loss) / 2
    if loss.terms:
        rho = zcdp_parameter(without_gaussian(loss))
        if not math.isfinite(rho):
            return None
        cost += amounts.rounded_up(rho)
    return cost


@dataclass(frozen=True)
class ZcdpFilter(Additive):
    """Admits while zCDP parameters sum to at most `rho`."""

    rho: float

    kind: ClassVar[str] = "zcdp"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.set_fields(self, rho=checks.between("rho", self.rho, 0.0, 1e6))
        super().__post_init__()

    def _amounts(self) -> tuple[Fraction, ...]:
        return (amounts.written(self.rho),)

    def _stated(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        cost = stated_zcdp(mechanism)
        # No rho covers a delta: its loss says so.
        return None if cost is None or cost[1] else cost[:1]

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        cost = zcdp_cost(loss)
        if cost is None:
            return "may lose everything, which no rho covers"
        return (cost,)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("rho",)

    def _cost_value(self, costs: tuple[Fraction, ...]) -> float:
        return amounts.charged(costs[0])

    def remaining_in(self, state: State) -> ZcdpBudget:
        assert isinstance(state, Left)
        return ZcdpBudget(amounts.reported(state.left[0]))

    @property
    def guarantee(self) -> Pld:
        return ZcdpBudget(self.rho).pld
