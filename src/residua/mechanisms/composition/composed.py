"""Several mechanisms run one after another (or at once, on the same data).

Composition is non-adaptive in the description: what was run. Each direction composes with the
same direction throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.mechanisms.mechanism import Mechanism, Side, mechanism
from residua.mechanisms.relations import RELATIONS, directions
from residua.pld.pld import Pld


@dataclass(frozen=True)
class Composed(Mechanism):
    """All of these mechanisms."""

    mechanisms: tuple[Mechanism, ...]

    kind: ClassVar[str] = "composed"
    pair: ClassVar[str] = "product of the pairs"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, theorem 3.2"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanisms, list | tuple):
            raise ArgumentTypeError(
                f"mechanisms must be a list, got {checks.shown(self.mechanisms)}"
            )
        if not self.mechanisms:
            raise ArgumentError("mechanisms must be a non-empty list, got []")
        checks.set_fields(
            self, mechanisms=tuple(mechanism("mechanisms", m) for m in self.mechanisms)
        )
        if not self.supported:
            raise ArgumentError(
                "mechanisms must have a neighbouring relation in common, got "
                + "; ".join(f"{m.kind}: {', '.join(m.supported)}" for m in self.mechanisms)
            )

    @cached_property
    def supported(self) -> tuple[str, ...]:
        """The relations that all of them have."""
        known = [set(m.supported) for m in self.mechanisms]
        return tuple(r for r in RELATIONS if all(r in one for one in known))

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        parts = [m.plds(relation, accuracy=accuracy, side=side) for m in self.mechanisms]
        return {
            direction: sum((part[direction] for part in parts[1:]), parts[0][direction])
            for direction in directions(relation)
        }
