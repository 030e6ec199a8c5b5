"""Laplace noise: `Lap(0, b)` against `Lap(sensitivity, b)`, in closed form.

Dwork, McSherry, Nissim and Smith 2006; the tight curve in Balle, Barthe and Gaboardi 2018,
theorem 3. In several dimensions with the sensitivity in the sum of absolute values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.pld.pld import Pld


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise of this scale on a query of this (absolute) sensitivity."""

    scale: float
    sensitivity: float = 1.0

    kind: ClassVar[str] = "laplace"
    pair: ClassVar[str] = "Lap(0, b) | Lap(Δ, b)"
    reference: ClassVar[str] = "Dwork et al. 2006; Balle, Barthe and Gaboardi 2018, theorem 3"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            scale=checks.positive("scale", self.scale),
            sensitivity=checks.non_negative("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.laplace(self.scale, self.sensitivity, side))
