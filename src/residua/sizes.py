"""How large a description may be, in one table, and a cache that is bounded by size.

A description of a mechanism or a filter comes from outside, and its reader pays for its size. So
nothing is made of one before `oversized` has passed it, in one pass of bounded length. The library,
the ledger, the service and the verifier read this table, so none accepts what another rejects. What
a ledger records must also be provable: `provable/` has narrower ranges, and the sizes among them
are here. Standard library only.

A cache for functions of texts is bounded by the size of its entries and not by their number alone
(`sized_cache`): a caller of the service chooses the texts of queries, and a thousand long ones can
take gigabytes where a thousand usual ones take one megabyte.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

DEEPEST = 32
"""How many mechanisms may be nested in each other, the outermost one included."""
DEEPEST_TEXT = 256
"""Levels of lists and objects in a JSON text: far more than any description has."""
LONGEST_LIST = 1 << 12
"""Of atoms, points of a curve, orders, components of a mixture, mechanisms, queries on a menu or
plan."""
LONGEST_AMOUNT = 1500
"""Characters of an amount: the square of the least `eps` has some seven hundred digits."""
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
MOST_CHARACTERS = 4 << 20
"""Characters that a cache keeps: thousands of usual queries or records, or a few of the longest."""

P = ParamSpec("P")
T = TypeVar("T")


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


def sized_cache(
    maxsize: int, size: Callable[[Any], int] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache like `functools.lru_cache`, of at most `MOST_CHARACTERS` in all.

    Args:
        maxsize: how many values are kept.
        size: the characters that a value counts for; those of its text arguments unless given.
    """

    def around(function: Callable[P, T]) -> Callable[P, T]:
        entries: OrderedDict[tuple[Any, ...], tuple[T, int]] = OrderedDict()
        lock = Lock()
        total = 0

        @wraps(function)
        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            assert not kwargs, "pass arguments by position"
            nonlocal total
            with lock:
                found = entries.get(args)
                if found is not None:
                    entries.move_to_end(args)
                    return found[0]
            value = function(*args, **kwargs)
            texts = (len(each) for each in args if isinstance(each, str))
            characters = sum(texts) if size is None else size(value)
            with lock:
                # Another thread may have kept an equal value meanwhile: all go on with one object.
                kept = entries.setdefault(args, (value, characters))
                if kept[0] is value:
                    total += characters
                while len(entries) > maxsize or total > MOST_CHARACTERS:
                    _, (_, dropped) = entries.popitem(last=False)
                    total -= dropped
            return kept[0]

        def clear() -> None:
            nonlocal total
            with lock:
                entries.clear()
                total = 0

        cached.cache_clear = clear  # type: ignore[attr-defined]
        cached.cache_size = lambda: (len(entries), total)  # type: ignore[attr-defined]
        return cached

    return around
