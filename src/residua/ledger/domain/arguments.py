"""Checks of what callers pass."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import Filter, is_unspent
from residua.filters.codec import from_json as filter_from_json
from residua.records import LEAST_WINDOW

_LONGEST_REASON = 2000
"""Characters of a reason; a verifier accepts no more."""

label, new_label = checks.label, checks.new_label


def optional(check: Callable[[str, Any], str], name: str, value: Any) -> str | None:
    """What a check makes of a value, or None."""
    return None if value is None else check(name, value)


def reason(value: Any) -> str:
    """A reason in words."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"reason must be a string, got {checks.shown(value)}")
    # Half of a surrogate pair cannot be encoded.
    encodes = value.encode(errors="ignore").decode() == value
    good = 0 < len(value.strip()) <= len(value) <= _LONGEST_REASON and encodes
    checks.require(good, "reason", f"a string of 1 to {_LONGEST_REASON} characters", value)
    return value


def window(value: Any) -> float | None:
    """The seconds of a window, at least one, or None."""
    if value is None:
        return None
    expected = "at least 1 second and finite"
    seconds = checks.real("window", value, expected)
    checks.require(LEAST_WINDOW <= seconds < math.inf, "window", expected, value)
    return seconds


def key(value: Any) -> str:
    """The caller's key, or a random one."""
    return secrets.token_hex(16) if value is None else label("key", value)


def names(value: Any) -> tuple[tuple[str, ...], bool]:
    """The budgets that are named, each once, and whether it was a single name.

    In the order of names, which is that of records: what was asked first is not in them.
    """
    if isinstance(value, str):
        return (label("budget", value),), True
    if not isinstance(value, Iterable) or isinstance(value, bytes | dict):
        raise ArgumentTypeError(f"budget must be a name or a list, got {checks.shown(value)}")
    found = tuple(sorted({label("budget", each) for each in value}))
    checks.require(len(found) > 0, "budget", "at least one name", value)
    return found, False


def fresh_filter(value: Any) -> Filter:
    """A filter to begin with: as an object or as JSON, and unspent."""
    if not isinstance(value, Filter):
        return filter_from_json(value)
    if not is_unspent(value):
        raise ArgumentError(
            f"filter must be unspent, got {value!r} with a history:"
            " a budget begins at the filter's first state"
        )
    return value
