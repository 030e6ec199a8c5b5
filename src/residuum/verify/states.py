"""Configurations and states of filters, as records hold them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from residuum.records import canonical, digest

State = Mapping[str, Any]
_LONGEST = 512


UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
"""What comes of reading a field that is not of its type, or beyond any range."""


class Unreadable(Exception):
    """A state or configuration that is not what its kind should look like."""


def amount(value: Any) -> Fraction:
    """An exact amount: a decimal or `p/q`, in quotes, not negative."""
    if not isinstance(value, str) or len(value) > 600 or not value.isascii():
        raise Unreadable(f"an amount must stand in quotes, got {value!r}")
    parts = value.split("/")
    plain = all(part.replace(".", "", len(parts) == 1).isdigit() for part in parts)
    if not plain or len(parts) > 2 or (len(parts) == 2 and int(parts[1]) == 0):
        raise Unreadable(f"an amount must be a decimal or p/q, got {value!r}")
    return Fraction(value)


def amounts(state: State, count: int) -> tuple[Fraction, ...]:
    """What is left of each amount."""
    left = state.get("left")
    if not isinstance(left, list) or len(left) != count:
        raise Unreadable(f"the state must hold {count} amounts, got {left!r}")
    return tuple(amount(value) for value in left)


def fingerprint(config: Mapping[str, Any]) -> str:
    """What states of this configuration have as `of`."""
    return digest(canonical(config))[:16]


def belongs(config: Mapping[str, Any], state: Any) -> str | None:
    """None where a state is one of this configuration, else what is wrong."""
    if not isinstance(state, Mapping):
        return f"the state is not an object: {state!r}"
    if state.get("kind") != config.get("kind"):
        return f"the state is of kind {state.get('kind')!r}, the filter of {config.get('kind')!r}"
    if state.get("version", 1) != config.get("version", 1):
        return "state and filter are of different versions"
    if state.get("of") != fingerprint(config):
        return f"the state is one of another filter ({state.get('of')!r})"
    return None
