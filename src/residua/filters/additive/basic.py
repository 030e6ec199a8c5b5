"""The basic composition filter: `eps` and `delta` add up (Dwork et al. 2006; Rogers et al. 2016).

A query takes its largest finite loss and its mass at infinity. A query whose finite losses are
unbounded (Gaussian noise) is charged at a point of its curve that the caller chooses, by asking
for `approximate_dp(loss.epsilon(d), d)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.budgets import ApproximateDpBudget
from residua.filters.declared_costs import stated_eps
from residua.filters.losses import largest_eps, largest_loss, missing_mass, without_infinity
from residua.filters.state import Left, State
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld


@dataclass(frozen=True)
class BasicFilter(Additive):
    """Admits while the sums of `eps` and of `delta` stay within these."""

    eps: float
    delta: float

    kind: ClassVar[str] = "basic"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps = largest_eps(self.eps)
        delta = checks.real("delta", self.delta, "in [0, 1)")
        checks.require(0.0 <= delta < 1.0, "delta", "in [0, 1)", self.delta)
        checks.set_fields(self, eps=eps, delta=delta + 0.0)
        super().__post_init__()

    def _amounts(self) -> tuple[Fraction, ...]:
        return (amounts.written(self.eps), amounts.written(self.delta))

    def _stated(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        eps = stated_eps(mechanism)
        return None if eps is None else (eps, Fraction(0))

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        kept = without_infinity(loss)
        largest = Fraction(0) if kept is not None and kept.is_identity else largest_loss(loss)
        if largest is None:
            return (
                "has unbounded losses (ask for approximate_dp(eps, delta) at a point of its curve)"
            )
        return largest, missing_mass(loss)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("eps", "delta")

    def _cost_value(self, costs: tuple[Fraction, ...]) -> ApproximateDpBudget:
        return ApproximateDpBudget(amounts.charged(costs[0]), amounts.charged(costs[1]))

    def remaining_in(self, state: State) -> ApproximateDpBudget:
        assert isinstance(state, Left)
        eps, delta = state.left
        return ApproximateDpBudget(amounts.reported(eps), amounts.reported(delta))

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)
