"""A black box that is `eps`-DP: `R_eps` dominates every such mechanism.

Kairouz, Oh and Viswanath 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.black_boxes.black_box import BlackBox
from residua.mechanisms.mechanism import Side, both
from residua.pld.pld import Pld


@dataclass(frozen=True)
class PureDp(BlackBox):
    """Anything `eps`-DP."""

    eps: float
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "pure_dp"
    pair: ClassVar[str] = "randomized response"
    reference: ClassVar[str] = "Kairouz, Oh and Viswanath 2015"

    def __post_init__(self) -> None:
        self._check_declared()
        checks.set_fields(self, eps=checks.non_negative("eps", self.eps))

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.pure_dp(Fraction(self.eps), side))
