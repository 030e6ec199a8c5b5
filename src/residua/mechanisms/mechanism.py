"""What a mechanism is: a frozen description that knows its privacy loss.

A description says what was run, in the words people use, and nothing else; it is what a ledger
keeps. Its meaning never changes: a new meaning is a new `version`. From it follow the PLDs, one
for each direction of a neighbouring relation, above (dominating, the default) or below.
"""

from __future__ import annotations

import dataclasses
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, get_type_hints

from residua import checks
from residua.bounds import Interval
from residua.errors import ArgumentError
from residua.mechanisms import relations
from residua.pld.arithmetic.exact import Side
from residua.pld.pld import Pld
from residua.sizes import DEEPEST
from residua.work_limit import remembered

Check = Callable[[str, Any], Any]
"""Takes the name and the value of a field; returns the value to keep, or raises."""

DEFAULT_ACCURACY = 1e-6
"""What discretising may cost in `eps` for one use."""


@dataclasses.dataclass(frozen=True)
class Mechanism(ABC):
    """Base of all descriptions. Subclasses are frozen dataclasses."""

    kind: ClassVar[str]
    """The name in JSON: that of the class, in snake case."""
    version: ClassVar[int] = 1
    relations: ClassVar[tuple[str, ...]] = relations.RELATIONS
    """Relations it has PLDs for; the first is taken where none is named."""
    pair: ClassVar[str]
    """The dominating pair, in a line of text."""
    reference: ClassVar[str]
    """Where the pair is from."""

    def __post_init__(self) -> None:
        for name, check in _field_checks(type(self)):
            checks.set_fields(self, **{name: check(name, getattr(self, name))})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Name the kind; share one `repr` and one hash, which a dataclass keeps if it has them."""
        super().__init_subclass__(**kwargs)
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.__repr__ = Mechanism.__repr__  # type: ignore[method-assign]
        cls.__hash__ = Mechanism.__hash__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """The call that makes an equal mechanism, without the fields that have their default."""
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
        """Cached, so that hashing nested mechanisms does not take a pass for each level."""
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
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]
        flat = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
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
        """The PLD of each direction of a neighbouring relation.

        Args:
            relation: the mechanism's own first one by default.
            accuracy: what one use may cost in `eps` where a curve must be discretised. Closed
                forms are exact.
            side: "above" for PLDs that dominate what the mechanism really loses, or "below".

        Returns:
            The PLD of each direction by its name, `remove` or `replace` first.

        Raises:
            ArgumentError: the mechanism has no pair for this relation.
        """
        name = self.relation_or_first(relation)
        width = checks.between("accuracy", accuracy, 1e-9, 1.0)
        checks.one_of("side", side, ("above", "below"))
        return dict(_cached_plds(self, name, width, side))

    def relation_or_first(self, relation: str | None) -> str:
        """Check that there are PLDs for a relation; None is the first one that has."""
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
        """The PLD of one direction: by default `remove`, or `replace` under replace-one.

        The other arguments and errors are those of `plds`.
        """
        plds = self.plds(relation, accuracy=accuracy, side=side)
        if direction is None:
            return next(iter(plds.values()))
        return plds[checks.one_of("direction", direction, tuple(plds))]

    @abstractmethod
    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        """The PLDs, uncached; every direction of the relation, in order."""

    def explain(self, relation: str | None = None, *, delta: float = 1e-6) -> Explanation:
        """What is known of this mechanism's loss, how, and what the bounds cost.

        Args:
            relation: the neighbouring relation, the mechanism's own first one by default.
            delta: where `eps` is given for each direction.

        Returns:
            Both sides of the loss of each direction, and remarks; `print` it.
        """
        level = checks.probability("delta", delta)
        name = self.relation_or_first(relation)
        below = self.plds(name, side="below")
        rows = []
        for direction, pld in self.plds(name).items():
            low = float(below[direction].epsilon_bounds(level).lo)
            rows.append(Direction(direction, pld, Interval(low, max(low, pld.epsilon(level)))))
        return Explanation(self, name, level, tuple(rows), self.notes())

    def notes(self) -> tuple[str, ...]:
        """Remarks for `explain`, if any; those of the parts begin with their kind."""
        remarks = (f"{part.kind}: {note}" for part in self.parts for note in part.notes())
        return tuple(dict.fromkeys(remarks))

    def pairs(self) -> tuple[str, ...]:
        """The dominating pair in a line of text, then a line for each kind of part."""
        of_parts: dict[str, str] = {}
        queue = [*self.parts]
        while queue:
            part = queue.pop(0)
            of_parts[part.kind] = part.pair
            queue += part.parts
        return (self.pair, *(f"{kind}: {pair}" for kind, pair in of_parts.items()))

    # -- description --------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The description as plain data: `kind` and every field (`version` where it is not 1)."""
        out: dict[str, Any] = {"kind": self.kind}
        if self.version != 1:
            out["version"] = self.version
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                out[field.name] = _plain(value)
        return out

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, numbers as Python writes them."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: Any) -> Mechanism:
        """Read a description (text or parsed); for a subclass, one of that kind."""
        from residua.mechanisms.codec import from_json

        made = from_json(text)
        if not isinstance(made, cls):
            raise ArgumentError(f"kind must be {cls.kind!r}, got {made.kind!r}")
        return made


def _plain(value: Any) -> Any:
    if isinstance(value, Mechanism):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@dataclasses.dataclass(frozen=True)
class Direction:
    """One direction: the PLD above, and proven bounds of `eps` at the `delta` asked for."""

    name: str
    pld: Pld
    epsilon: Interval


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What is known of a mechanism's privacy loss, for people to read; `print` it."""

    mechanism: Mechanism
    relation: str
    delta: float
    directions: tuple[Direction, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.mechanism!r}",
            *(f"  pair       {pair}" for pair in self.mechanism.pairs()),
            f"  reference  {self.mechanism.reference}",
            f"  relation   {self.relation}",
        ]
        for one in self.directions:
            lines.append(f"  {one.name:<9}  {one.pld!r}")
            lines.append(
                f"             eps at delta {self.delta:g}: "
                f"between {one.epsilon.lo:.9g} and {one.epsilon.hi:.9g}"
            )
        lines += [f"  note       {note}" for note in self.notes]
        return "\n".join(lines)


@remembered(maxsize=1024)
def _cached_plds(
    mechanism: Mechanism, relation: str, accuracy: float, side: Side
) -> dict[str, Pld]:
    return mechanism._plds(relation, accuracy, side)


@cache
def _field_checks(cls: type[Mechanism]) -> tuple[tuple[str, Check], ...]:
    """The fields whose types name a check, with it, in their order."""
    hints = get_type_hints(cls, include_extras=True)
    names = [field.name for field in dataclasses.fields(cls)]
    return tuple((n, check) for n in names for check in getattr(hints[n], "__metadata__", ()))


def check_mechanism(name: str, value: Any) -> Mechanism:
    """Check that an argument is a mechanism, not nested too deeply."""
    found: Mechanism = checks.instance(name, value, Mechanism, "a mechanism")
    checks.require(found.depth < DEEPEST, name, f"nested less than {DEEPEST} deep", found)
    return found


Positive = Annotated[float, checks.positive]
NonNegative = Annotated[float, checks.non_negative]
Probability = Annotated[float, checks.probability]
Count = Annotated[int, checks.count]
Flag = Annotated[bool, checks.flag]
Numbers = Annotated[tuple[float, ...], checks.numbers]
Inner = Annotated[Mechanism, check_mechanism]


def both(relation: str, pld: Pld) -> dict[str, Pld]:
    """One symmetric PLD for every direction."""
    return dict.fromkeys(relations.directions(relation), pld)


def pair(relation: str, remove: Pld) -> dict[str, Pld]:
    """A PLD and its reversal, for relations that are crossed in two directions."""
    return dict(zip(relations.directions(relation), (remove, remove.reverse()), strict=False))
