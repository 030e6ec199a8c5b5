"""A black box that is `(eps, delta)`-DP: `R_{eps,delta}` dominates every such mechanism.

Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.black_boxes.black_box import BlackBox
from residua.mechanisms.mechanism import Side, both
from residua.pld import constructors
from residua.pld.pld import Pld


@dataclass(frozen=True)
class ApproximateDp(BlackBox):
    """Anything `(eps, delta)`-DP."""

    eps: float
    delta: float
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "approximate_dp"
    pair: ClassVar[str] = "randomized response, and everything revealed with probability δ"
    reference: ClassVar[str] = "Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016"

    def __post_init__(self) -> None:
        self._check_declared()
        checks.set_fields(
            self,
            eps=checks.non_negative("eps", self.eps),
            delta=checks.probability("delta", self.delta),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        if self.eps <= 600.0 and (self.eps == 0.0 or self.eps >= 2.0**-1000):
            return both(relation, constructors.approximate_dp(self.eps, self.delta))
        core = limits.pure_dp(Fraction(self.eps), side)
        return both(relation, core + constructors.approximate_dp(0.0, self.delta))
