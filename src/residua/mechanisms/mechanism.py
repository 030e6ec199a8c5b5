"""What a mechanism is: a frozen description that knows its privacy loss.

A description says what was run, in the words people use, and nothing else; it is what a ledger
keeps. Its meaning never changes: a new meaning is a new `version`. From it follow the PLDs, one
for each direction of a neighbouring relation, above (dominating, the default) or below.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.mechanisms import relations
from residua.mechanisms.explanation import Explanation, explain
from residua.pld.pld import Pld
from residua.sizes import DEEPEST

Side = Literal["above", "below"]

DEFAULT_ACCURACY = 1e-6
"""What discretising may cost in `eps` for one use."""
_CACHED = 4096


@dataclasses.dataclass(frozen=True)
class Mechanism(ABC):
    """Base of all descriptions. Subclasses are frozen dataclasses, one a file."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    relations: ClassVar[tuple[str, ...]] = relations.RELATIONS
    """Relations it has PLDs for; the first is taken where none is named."""
    pair: ClassVar[str]
    """The dominating pair, in a line of text."""
    reference: ClassVar[str]
    """Where the pair is from."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """One `repr` and one hash for all; a dataclass leaves alone what its class has."""
        super().__init_subclass__(**kwargs)
        cls.__repr__ = Mechanism.__repr__  # type: ignore[method-assign]
        cls.__hash__ = Mechanism.__hash__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """What makes an equal one, without what is left out by default."""
        given = [
            f"{field.name}={value!r}"
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept, so that the hash of what is nested does not take a pass for each level."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return hash((self.kind, *values))

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: hashes differ from process to process."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def supported(self) -> tuple[str, ...]:
        """The relations this description has PLDs for; the first one is the default."""
        return self.relations

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """The mechanisms that this one is made of, if any; equal ones once."""
        return tuple(dict.fromkeys(self._inner))

    @property
    def _inner(self) -> list[Mechanism]:
        inner = [getattr(self, field.name) for field in dataclasses.fields(self)]
        flat = [v for value in inner for v in (value if isinstance(value, tuple) else (value,))]
        return [v for v in flat if isinstance(v, Mechanism)]

    @cached_property
    def depth(self) -> int:
        """How deep mechanisms are nested in this one, itself included."""
        return 1 + max((part.depth for part in self._inner), default=0)

    # -- privacy loss -------------------------------------------------------------------

    def plds(
        self,
        relation: str | None = None,
        *,
        accuracy: float = DEFAULT_ACCURACY,
        side: Side = "above",
    ) -> dict[str, Pld]:
        """The PLD of each direction of a relation (the mechanism's own first one by default).

        Above: each dominates what the mechanism really loses. Closed forms are exact on both
        sides; where a curve must be discretised, `accuracy` is what one use may cost in `eps`.
        """
        name = self.relation_or_first(relation)
        width = checks.between("accuracy", accuracy, 1e-9, 1.0)
        checks.one_of("side", side, ("above", "below"))
        return dict(_built(self, name, width, side))

    def relation_or_first(self, relation: str | None) -> str:
        """Check that there are PLDs for a relation; the first one where none is named."""
        known = self.supported
        name = relations.relation(known[0] if relation is None and known else relation)
        if name not in known:
            raise ArgumentError(
                f"relation must be one that {self.kind} has a pair for ({', '.join(known)}),"
                f" got {name!r}"
            )
        return name

    def pld(
        self,
        direction: str | None = None,
        relation: str | None = None,
        *,
        accuracy: float = DEFAULT_ACCURACY,
        side: Side = "above",
    ) -> Pld:
        """The PLD of one direction (`remove`, or `replace` under replace-one, by default)."""
        every = self.plds(relation, accuracy=accuracy, side=side)
        if direction is None:
            return next(iter(every.values()))
        return every[checks.one_of("direction", direction, tuple(every))]

    @abstractmethod
    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        """The PLDs, uncached; every direction of the relation, in order."""

    def explain(self, relation: str | None = None, *, delta: float = 1e-6) -> Explanation:
        """What is known of this mechanism's loss, how, and what that costs."""
        return explain(self, relation, delta)

    def notes(self) -> tuple[str, ...]:
        """Remarks for `explain`, if any; those of the parts with their kind."""
        found = (f"{part.kind}: {note}" for part in self.parts for note in part.notes())
        return tuple(dict.fromkeys(found))

    def pairs(self) -> tuple[str, ...]:
        """The dominating pair in a line of text, then a line for each kind that is inside."""
        inside: dict[str, str] = {}
        waiting = [*self.parts]
        while waiting:
            part = waiting.pop(0)
            inside[part.kind] = part.pair
            waiting += part.parts
        return (self.pair, *(f"{kind}: {pair}" for kind, pair in inside.items()))

    # -- description --------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The description as plain data: `kind` and every field (`version` where it is not 1)."""
        from residua.mechanisms.codec import to_dict

        return to_dict(self)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, numbers as Python writes them."""
        from residua.mechanisms.codec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: Any) -> Mechanism:
        """Read a description (text or parsed); for a subclass, one of that kind."""
        from residua.mechanisms.codec import from_json

        made = from_json(text)
        if not isinstance(made, cls):
            raise ArgumentError(f"kind must be {cls.kind!r}, got {made.kind!r}")
        return made


@lru_cache(maxsize=_CACHED)
def _built(mechanism: Mechanism, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
    return mechanism._plds(relation, accuracy, side)


def mechanism(name: str, value: Any) -> Mechanism:
    """Check that an argument is a mechanism."""
    if not isinstance(value, Mechanism):
        raise ArgumentTypeError(f"{name} must be a mechanism, got {checks.shown(value)}")
    checks.require(value.depth < DEEPEST, name, f"nested less than {DEEPEST} deep", value)
    return value


def both(relation: str, pld: Pld) -> dict[str, Pld]:
    """One symmetric PLD for every direction."""
    return dict.fromkeys(relations.directions(relation), pld)


def pair(relation: str, remove: Pld) -> dict[str, Pld]:
    """A PLD and its reversal, for relations that are crossed in two directions."""
    return dict(zip(relations.directions(relation), (remove, remove.reverse()), strict=False))
