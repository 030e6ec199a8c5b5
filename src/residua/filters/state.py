"""States of filters: what is left, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar


@dataclass(frozen=True)
class State:
    """A state belongs to one configuration, whose fingerprint it carries."""

    of: str


@dataclass(frozen=True)
class Left(State):
    """What is left of each of the filter's amounts, exactly."""

    left: tuple[Fraction, ...]

    within: ClassVar[str | None] = None
    """The fingerprint of the filter that has checked that it is one of its states."""
    text: ClassVar[str | None] = None
    """Its JSON, as that filter wrote it."""
    _hash: ClassVar[int | None] = None

    def found_within(self) -> Left:
        """The same, so that it need not be looked at again."""
        object.__setattr__(self, "within", self.of)
        return self

    def __getstate__(self) -> dict[str, object]:
        # Another process checks it again; and a text has another hash there.
        return {"of": self.of, "left": self.left}

    def __hash__(self) -> int:
        # A rational's own hash needs an inverse modulo a prime; equal ones have equal terms.
        known = self._hash
        if known is None:
            known = hash((self.of, *[each.as_integer_ratio() for each in self.left]))
            object.__setattr__(self, "_hash", known)
        return known
