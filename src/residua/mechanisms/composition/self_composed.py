"""One mechanism run a number of times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.mechanisms.mechanism import Mechanism, Side, mechanism
from residua.pld.pld import Pld
from residua.sizes import LARGEST_COUNT


@dataclass(frozen=True)
class SelfComposed(Mechanism):
    """`mechanism`, `count` times."""

    mechanism: Mechanism
    count: int

    kind: ClassVar[str] = "self_composed"
    pair: ClassVar[str] = "power of the pair"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, theorem 3.2"

    def __post_init__(self) -> None:
        mechanism("mechanism", self.mechanism)
        count = checks.count("count", self.count)
        checks.require(count <= LARGEST_COUNT, "count", "at most 2**53", count)
        checks.set_fields(self, count=count)

    @property
    def supported(self) -> tuple[str, ...]:
        """The relations of the mechanism."""
        return self.mechanism.supported

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        one = self.mechanism.plds(relation, accuracy=accuracy, side=side)
        return {direction: self.count * pld for direction, pld in one.items()}
