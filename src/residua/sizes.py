"""How large a description may be, in one table.

A description of a mechanism or a filter comes from outside, and its reader pays for its size. So
nothing is made of one before `oversized` has passed it, in one pass of bounded length. The library,
the ledger, the service and the verifier read this table, so none accepts what another rejects. What
a ledger records must also be provable: `provable/` has narrower ranges, and the sizes among them
are here. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEEPEST = 32
"""How many mechanisms may be nested in each other, the outermost one included."""
DEEPEST_TEXT = 256
"""Levels of lists and objects in a JSON text: far more than any description has."""
LONGEST_LIST = 1 << 12
"""Of atoms, points of a curve, orders, components of a mixture, mechanisms, queries on a menu or
plan."""
MOST_VALUES = 1 << 16
"""Of fields and entries of lists in one description, at all levels together."""
LARGEST_COUNT = 1 << 53
"""Of copies, steps and categories: whole numbers up to here are floats."""
MOST_COMPONENTS = 16
"""Of a union, or of what `auto` becomes."""
MOST_HOLDS = 256
"""Open holds of one budget: where costs do not add up, each spend decides all of them again."""

LONGEST_PROVABLE_LIST = 256
"""Of atoms, points of a curve, orders, or mechanisms that are composed, in a ledger."""
LARGEST_PROVABLE_COUNT = 1_000_000
"""Of copies in one query, and of categories, in a ledger."""


def oversized(description: Any) -> str | None:
    """Why plain data is too large to be read as a description, or None."""
    waiting: list[tuple[Any, int]] = [(description, 1)]
    found = 0
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, list | tuple):
            if len(value) > LONGEST_LIST:
                return f"lists must have at most {LONGEST_LIST} entries, got {len(value)}"
            inner: Any = value
        elif isinstance(value, Mapping):
            inner = value.values()
        else:
            continue
        if depth > DEEPEST_TEXT:
            return f"lists and objects must be nested at most {DEEPEST_TEXT} deep"
        found += len(value)
        if found > MOST_VALUES:
            return f"there must be at most {MOST_VALUES} fields and list entries in total"
        waiting += [(each, depth + 1) for each in inner]
    return None
