"""Decides with every filter, and prints the plain caches that kept counted work.

A value in a plain cache (`functools`) costs nothing when it is read again. If it took counted work
(`residua.work_limit`), a decision would depend on what was read before. Decisions themselves may
keep their texts, which nobody counts.
"""

from __future__ import annotations

import functools
import inspect  # noqa: F401 (as numpy and scipy: loaded before caches are replaced)
import json
import re  # noqa: F401
from collections.abc import Callable
from typing import Any

import hypothesis  # noqa: F401
import numpy  # noqa: F401
import scipy.signal
import scipy.special  # noqa: F401

KEPT_WORK: set[str] = set()
CACHE, PROPERTY = functools.lru_cache, functools.cached_property


def watched(function: Any) -> Any:
    """The function, with a note in `KEPT_WORK` if it does counted work."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    if not name.startswith("residua.") or name.startswith("residua.work_limit."):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        from residua import work_limit

        budget = work_limit._budget.get()
        before = budget and (budget.operations, len(budget.counted_groundwork))
        found = function(*args, **kwargs)
        if budget and (budget.operations, len(budget.counted_groundwork)) != before:
            KEPT_WORK.add(name)
        return found

    return call


def watched_cache(maxsize: Any = 128, typed: bool = False) -> Callable[[Any], Any]:
    if callable(maxsize):
        return CACHE(watched(maxsize))
    return lambda function: CACHE(maxsize=maxsize, typed=typed)(watched(function))


class WatchedProperty(PROPERTY):  # type: ignore[valid-type]
    def __init__(self, function: Any):
        super().__init__(watched(function))


if __name__ == "__main__":
    functools.lru_cache = watched_cache
    functools.cached_property = WatchedProperty
    from cold_threads import work
    from residua.work_limit import measure_work

    for name, read in work().items():
        if name.endswith(" filter"):
            measure_work(read)
    own = "residua.filters.decision.Decision."
    print(json.dumps(sorted(name for name in KEPT_WORK if not name.startswith(own))))
