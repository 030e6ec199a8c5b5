"""A cache for functions of texts, bounded by the size of its entries and not by their number alone.

A caller of the service chooses the texts of queries, and a thousand long ones can take gigabytes
where a thousand usual ones take one megabyte. Standard library only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MOST_CHARACTERS = 4 << 20
"""Characters that a cache keeps: thousands of usual queries or records, or a few of the longest."""


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
