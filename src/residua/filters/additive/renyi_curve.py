"""The Rényi filter for a whole curve: every order is enforced.

Each order has a separate free filter and a query must pass all of them, so the interaction stays
below the curve at every order. The popular rule that admits while some order has budget left is
not free: it chooses which order to protect after looking at answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.errors import ArgumentTypeError
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.additive.renyi import order
from residua.filters.budgets import RenyiCurveBudget
from residua.filters.declared_costs import stated_renyi
from residua.filters.divergence import renyi_cost
from residua.filters.state import Left, State
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld


@dataclass(frozen=True)
class RenyiCurveFilter(Additive):
    """Admits while divergences stay within `rho` at every `(alpha, rho)` of the curve."""

    curve: tuple[tuple[float, float], ...]

    kind: ClassVar[str] = "renyi_curve"
    fixed_costs: ClassVar[bool] = True

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

    def _stated(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        costs = [stated_renyi(mechanism, alpha) for alpha, _ in self.curve]
        known = tuple(cost for cost in costs if cost is not None)
        return known if len(known) == len(costs) else None

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        costs = []
        for alpha, _ in self.curve:
            cost = renyi_cost(loss, alpha)
            if cost is None:
                return f"has infinite Rényi divergence of order {alpha:g}"
            costs.append(cost)
        return tuple(costs)

    @property
    def _units(self) -> tuple[str, ...]:
        return tuple(f"order {alpha:g} rho" for alpha, _ in self.curve)

    def _budget(self, rhos: tuple[float, ...]) -> RenyiCurveBudget:
        return RenyiCurveBudget(tuple(alpha for alpha, _ in self.curve), rhos)

    def _cost_value(self, costs: tuple[Fraction, ...]) -> RenyiCurveBudget:
        return self._budget(tuple(amounts.charged(cost) for cost in costs))

    def remaining_in(self, state: State) -> RenyiCurveBudget:
        assert isinstance(state, Left)
        return self._budget(tuple(amounts.reported(left) for left in state.left))

    @property
    def guarantee(self) -> Pld:
        return self.capacity.pld  # type: ignore[no-any-return]
