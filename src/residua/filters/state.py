"""States of filters: what is left, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class State:
    """A state belongs to one configuration, whose fingerprint it carries."""

    of: str


@dataclass(frozen=True)
class Left(State):
    """What is left of each of the filter's amounts, exactly."""

    left: tuple[Fraction, ...]
