"""Several mechanisms as one: run one after another, or all at once on the same data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from residua import checks
from residua.errors import ArgumentError
from residua.mechanisms.mechanism import Count, Inner, Mechanism, check_mechanism
from residua.mechanisms.relations import RELATIONS, directions
from residua.pld.arithmetic.exact import Side
from residua.pld.pld import Pld, composition
from residua.sizes import LARGEST_COUNT


@dataclass(frozen=True)
class Composed(Mechanism):
    """All of these mechanisms.

    The description is of what was run, so the composition is not adaptive. Each direction composes
    with the same direction throughout.
    """

    mechanisms: tuple[Mechanism, ...]

    pair: ClassVar[str] = "product of the pairs"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, theorem 3.2"

    def __post_init__(self) -> None:
        checks.instance("mechanisms", self.mechanisms, list | tuple, "a list")
        if not self.mechanisms:
            raise ArgumentError("mechanisms must be a non-empty list, got []")
        checks.set_fields(
            self, mechanisms=tuple(check_mechanism("mechanisms", m) for m in self.mechanisms)
        )
        if not self.supported:
            raise ArgumentError(
                "mechanisms must share a relation, got "
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
            direction: composition(part[direction] for part in parts)
            for direction in directions(relation)
        }


@dataclass(frozen=True)
class SelfComposed(Mechanism):
    """`mechanism`, `count` times."""

    mechanism: Inner
    count: Count

    pair: ClassVar[str] = "power of the pair"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, theorem 3.2"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require(self.count <= LARGEST_COUNT, "count", "at most 2**53", self.count)

    @property
    def supported(self) -> tuple[str, ...]:
        """The relations of the mechanism."""
        return self.mechanism.supported

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        one = self.mechanism.plds(relation, accuracy=accuracy, side=side)
        return {direction: self.count * pld for direction, pld in one.items()}
