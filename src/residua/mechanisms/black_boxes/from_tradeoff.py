"""A piecewise-linear tradeoff curve, given by its points: `f`-DP.

Dong, Roth and Su 2022. The curve is that of `remove`; `add` is its inverse, and replace-one
takes the lower envelope of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms.black_boxes.black_box import BlackBox, oriented
from residua.mechanisms.mechanism import Side
from residua.pld import constructors
from residua.pld.pld import Pld


@dataclass(frozen=True)
class FromTradeoff(BlackBox):
    """The tradeoff curve through `(alphas[i], betas[i])`."""

    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "from_tradeoff"
    pair: ClassVar[str] = "the finite pair with this curve"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, proposition 2.2"

    def __post_init__(self) -> None:
        self._check_declared()
        checks.set_fields(
            self,
            alphas=checks.numbers("alphas", self.alphas),
            betas=checks.numbers("betas", self.betas),
        )
        self._one()

    def _one(self) -> Pld:
        return constructors.from_tradeoff(self.alphas, self.betas)

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return oriented(relation, self._one())
