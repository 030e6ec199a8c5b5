"""Filters under which losses add up: basic composition, without and with `delta`.

* **Pure** (Dwork et al. 2006; Rogers et al. 2016): a query takes the least `eps` with `L ⪯ R_eps`,
  its largest absolute loss, and `R_{eps-eps_L} ⊕ L ⪯ R_eps`: the residue condition.
* **Basic** (the same authors): `eps` and `delta` add up. A query takes its largest finite loss and
  its mass at infinity. One whose finite losses are unbounded (Gaussian noise) is charged at a point
  of its curve that the caller chooses, by asking for `approximate_dp(loss.epsilon(d), d)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.amounts import State
from residua.filters.budgets import ApproximateDpBudget
from residua.filters.costs import (
    largest_eps,
    largest_loss,
    missing_mass,
    response_eps,
    stated_eps,
    without_infinity,
)
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp, pure_dp
from residua.pld.pld import Pld


@dataclass(frozen=True)
class PureFilter(Additive):
    """Admits while the largest losses sum to at most `eps`."""

    eps: float

    kind: ClassVar[str] = "pure"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.set_fields(self, eps=largest_eps(self.eps))
        super().__post_init__()

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        eps = stated_eps(mechanism)
        return None if eps is None else (eps,)

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        largest = largest_loss(loss)
        if largest is None or missing_mass(loss) > 0:
            return "has unbounded losses, which no eps covers"
        return (largest,)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("eps",)

    def _amounts_of(self, left: Any) -> tuple[Fraction, ...] | None:
        eps = response_eps(left)
        return None if eps is None else (amounts.written(eps),)

    def _budget(self, numbers: tuple[float, ...]) -> Pld:
        return pure_dp(*numbers)

    def spent_in(self, state: State) -> Pld:
        return pure_dp(super().spent_in(state))

    @property
    def guarantee(self) -> Pld:
        return pure_dp(self.eps)


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

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        eps = stated_eps(mechanism)
        return None if eps is None else (eps, Fraction(0))

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        kept = without_infinity(loss)
        largest = Fraction(0) if kept is not None and kept.is_identity else largest_loss(loss)
        if largest is None:
            return "has unbounded losses (use approximate_dp(eps, delta) at a point of its curve)"
        return largest, missing_mass(loss)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("eps", "delta")

    def _budget(self, numbers: tuple[float, ...]) -> ApproximateDpBudget:
        return ApproximateDpBudget(*numbers)

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)
