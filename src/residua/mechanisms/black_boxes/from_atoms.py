"""A finite privacy loss, given atom by atom.

Under add-remove and zero-out the atoms are those of `remove`, and `add` is their reversal; under
replace-one both orders of a pair occur, so the supremum of the two is taken.
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
class FromAtoms(BlackBox):
    """Losses and their masses under `P`; the rest of `P` is at infinity."""

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    mass_at_infinity: float = 0.0
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "from_atoms"
    pair: ClassVar[str] = "the atoms and their tilt"
    reference: ClassVar[str] = "Meiser and Mohammadi 2018; Koskela, Jälkö and Honkela 2020"

    def __post_init__(self) -> None:
        self._check_declared()
        checks.set_fields(
            self,
            losses=checks.numbers("losses", self.losses),
            masses=checks.numbers("masses", self.masses),
            mass_at_infinity=checks.probability("mass_at_infinity", self.mass_at_infinity),
        )
        self._one()

    def _one(self) -> Pld:
        return constructors.from_atoms(self.losses, self.masses, self.mass_at_infinity)

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return oriented(relation, self._one())
