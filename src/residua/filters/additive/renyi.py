"""Rényi filters, at orders fixed in advance (Feldman and Zrnic 2021; Lécuyer 2021).

`D_α` adds up under adaptive composition, in each direction, so an `α` chosen before the first
answer is free. For a whole curve, each order has a separate free filter and a query must pass all
of them, so the interaction stays below the curve at every order. The popular rule that admits while
*some* order has budget left is not free: it chooses the order to protect after looking at answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.errors import ArgumentTypeError
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.budgets import RenyiBudget, RenyiCurveBudget
from residua.filters.costs import renyi_cost, stated_renyi
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld

MOST_ORDER = 1e9
"""The largest Rényi order."""


def order(name: str, value: Any) -> float:
    """Check a Rényi order."""
    number = checks.real(name, value, "a finite order above 1")
    checks.require(1.0 + 1e-9 <= number <= MOST_ORDER, name, "between 1 + 1e-9 and 1e9", value)
    return number


class RenyiOrders(Additive):
    """A filter whose amounts are Rényi divergences of fixed orders."""

    fixed_costs: ClassVar[bool] = True

    @property
    @abstractmethod
    def _orders(self) -> tuple[float, ...]:
        """The order of each amount."""

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        costs = [stated_renyi(mechanism, alpha) for alpha in self._orders]
        known = tuple(cost for cost in costs if cost is not None)
        return known if len(known) == len(costs) else None

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        costs = []
        for alpha in self._orders:
            cost = renyi_cost(loss, alpha)
            if cost is None:
                return f"has infinite Rényi divergence of order {alpha:g}"
            costs.append(cost)
        return tuple(costs)


@dataclass(frozen=True)
class RenyiFilter(RenyiOrders):
    """Admits while Rényi divergences of order `alpha` sum to at most `rho`."""

    alpha: float
    rho: float

    kind: ClassVar[str] = "renyi"

    def __post_init__(self) -> None:
        checks.set_fields(
            self, alpha=order("alpha", self.alpha), rho=checks.between("rho", self.rho, 0.0, 1e6)
        )
        super().__post_init__()

    @property
    def _orders(self) -> tuple[float, ...]:
        return (self.alpha,)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("rho",)

    def _budget(self, numbers: tuple[float, ...]) -> RenyiBudget:
        return RenyiBudget(self.alpha, *numbers)

    @property
    def guarantee(self) -> Pld:
        return RenyiBudget(self.alpha, self.rho).pld


@dataclass(frozen=True)
class RenyiCurveFilter(RenyiOrders):
    """Admits while divergences stay within `rho` at every `(alpha, rho)` of the curve."""

    curve: tuple[tuple[float, float], ...]

    kind: ClassVar[str] = "renyi_curve"

    def __post_init__(self) -> None:
        given = self.curve.items() if isinstance(self.curve, Mapping) else self.curve
        points: dict[float, float] = {}
        for point in checks.items("curve", given, "a mapping of orders to rho"):
            if not isinstance(point, list | tuple) or len(point) != 2:
                raise ArgumentTypeError(
                    f"curve must be made of (alpha, rho), got {checks.shown(point)}"
                )
            alpha = order("alpha", point[0])
            checks.require(alpha not in points, "curve", "without repeated orders", alpha)
            points[alpha] = checks.between("rho", point[1], 0.0, 1e6)
        checks.require(bool(points), "curve", "non-empty", self.curve)
        checks.set_fields(self, curve=tuple(sorted(points.items())))
        super().__post_init__()

    def _amounts(self) -> tuple[Fraction, ...]:
        return tuple(amounts.written(rho) for _, rho in self.curve)

    @property
    def _orders(self) -> tuple[float, ...]:
        return tuple(alpha for alpha, _ in self.curve)

    @property
    def _units(self) -> tuple[str, ...]:
        return tuple(f"order {alpha:g} rho" for alpha in self._orders)

    def _budget(self, numbers: tuple[float, ...]) -> RenyiCurveBudget:
        return RenyiCurveBudget(self._orders, numbers)

    def _cost_value(self, costs: tuple[Fraction, ...]) -> RenyiCurveBudget:
        return self._budget(tuple(map(amounts.charged, costs)))

    @property
    def guarantee(self) -> Pld:
        return self.capacity.pld  # type: ignore[no-any-return]
