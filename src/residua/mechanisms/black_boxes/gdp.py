"""A black box that is `mu`-GDP: `G_mu` dominates every such mechanism, by definition.

Dong, Roth and Su 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.black_boxes.black_box import BlackBox
from residua.mechanisms.mechanism import Side, both
from residua.pld.pld import Pld


@dataclass(frozen=True)
class Gdp(BlackBox):
    """Anything `mu`-GDP."""

    mu: float
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "gdp"
    pair: ClassVar[str] = "N(0, 1) | N(μ, 1)"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, definition 2.4"

    def __post_init__(self) -> None:
        self._check_declared()
        checks.set_fields(self, mu=checks.non_negative("mu", self.mu))

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.gaussian(1.0, self.mu, side))
