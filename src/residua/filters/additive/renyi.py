"""The Rényi filter at one order fixed in advance (Feldman and Zrnic 2021; Lécuyer 2021).

`D_α` adds up under adaptive composition, in each direction, so an `α` chosen before the first
answer is free. Admitting while *some* order has budget left is not: see `renyi_curve.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.budgets import RenyiBudget
from residua.filters.declared_costs import stated_renyi
from residua.filters.divergence import renyi_cost
from residua.filters.state import Left, State
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld

MOST_ORDER = 1e9


@dataclass(frozen=True)
class RenyiFilter(Additive):
    """Admits while Rényi divergences of order `alpha` sum to at most `rho`."""

    alpha: float
    rho: float

    kind: ClassVar[str] = "renyi"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.set_fields(
            self, alpha=order("alpha", self.alpha), rho=checks.between("rho", self.rho, 0.0, 1e6)
        )
        super().__post_init__()

    def _amounts(self) -> tuple[Fraction, ...]:
        return (amounts.written(self.rho),)

    def _stated(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        cost = stated_renyi(mechanism, self.alpha)
        return None if cost is None else (cost,)

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        cost = renyi_cost(loss, self.alpha)
        if cost is None:
            return f"has infinite Rényi divergence of order {self.alpha:g}"
        return (cost,)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("rho",)

    def _cost_value(self, costs: tuple[Fraction, ...]) -> float:
        return amounts.charged(costs[0])

    def remaining_in(self, state: State) -> RenyiBudget:
        assert isinstance(state, Left)
        return RenyiBudget(self.alpha, amounts.reported(state.left[0]))

    @property
    def guarantee(self) -> Pld:
        return RenyiBudget(self.alpha, self.rho).pld


def order(name: str, value: Any) -> float:
    """Check a Rényi order."""
    number = checks.real(name, value, "a finite order above 1")
    checks.require(1.0 + 1e-9 <= number <= MOST_ORDER, name, "between 1 + 1e-9 and 1e9", value)
    return number
