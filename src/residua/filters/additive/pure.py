"""The pure-DP filter: losses add up (Dwork et al. 2006; Rogers et al. 2016).

A query takes the least `eps` with `L ⪯ R_eps`, its largest absolute loss, and
`R_{eps-eps_L} ⊕ L ⪯ R_eps`: the residue condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.declared_costs import stated_eps
from residua.filters.losses import largest_eps, largest_loss, missing_mass, response_eps
from residua.filters.state import Left, State
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import pure_dp
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

    def _amounts(self) -> tuple[Fraction, ...]:
        return (amounts.written(self.eps),)

    def _stated(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        eps = stated_eps(mechanism)
        return None if eps is None else (eps,)

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
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

    def _cost_value(self, costs: tuple[Fraction, ...]) -> float:
        return amounts.charged(costs[0])

    def remaining_in(self, state: State) -> Pld:
        assert isinstance(state, Left)
        return pure_dp(amounts.reported(state.left[0]))

    def spent_in(self, state: State) -> Pld:
        return pure_dp(super().spent_in(state))

    @property
    def guarantee(self) -> Pld:
        return pure_dp(self.eps)
