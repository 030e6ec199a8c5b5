"""Connections that send no request, or a head without end: closed, so that others get in.

Uvicorn waits as long as it takes for the head of a request. Every second this looks at who has not
sent one: a connection that is neither being answered nor resting between two requests (for which
uvicorn has a limit of its own) has so many seconds from when it was first seen like that.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any


class Sweeper:
    """Closes connections whose next request does not come to the end of its head in time."""

    def __init__(self, within: float, clock: Callable[[], float] = time.monotonic):
        self._within, self._clock = within, clock
        self._since: dict[Any, float] = {}

    def sweep(self, connections: Iterable[Any]) -> int:
        """Look at all of them; how many were closed."""
        now = self._clock()
        self._since = {one: self._since.get(one, now) for one in connections if _owes_a_head(one)}
        late = [one for one, since in self._since.items() if now - since > self._within]
        for one in late:
            one.transport.abort()
        return len(late)


def _owes_a_head(connection: Any) -> bool:
    """Whether nothing is being answered, and no limit for a rest between requests runs."""
    if connection.timeout_keep_alive_task is not None:
        return False
    return connection.cycle is None or connection.cycle.response_complete


def as_many_as_allowed() -> None:
    """Let this process have as many connections as the system lets it ask for."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
