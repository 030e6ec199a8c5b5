"""Claims: a slow query that has lost its race twice reserves its budgets for a while.

A slow query is decided off the lock, and what was decided no longer counts if other requests move
the budgets meanwhile. So after two such losses it claims the budgets that it charges: other
requests of this process that charge one of them wait until it is over, which is after `LONGEST`
seconds at the latest. Requests on other budgets go on. A request that would wait too long, or
behind too many others, fails with an error that asks the caller to retry.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from residua.errors import Contended

LONGEST = 5.0
"""Seconds that a claim lasts at most."""
LONGEST_WAIT = 15.0
"""Seconds that a request waits at most for the claims of others, all waits together."""
MOST_WAITING = 24
"""Requests of one process that wait at a time: fewer than the service has threads for spends."""


class WaitLimit:
    """How long one request may still wait for claims."""

    def __init__(self) -> None:
        self.left = LONGEST_WAIT


class Claims:
    """The claims on budgets. Shared by the threads of a process."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._claimed: dict[int, tuple[frozenset[str], float]] = {}
        """By the id of a request, the budgets and until when."""
        self._waiting = 0

    def __bool__(self) -> bool:
        return bool(self._claimed)

    def until(self, request: object, names: frozenset[str]) -> float | None:
        """Until when another request has claimed one of these budgets; None where none has."""
        now = time.monotonic()
        for owner, (claimed, until) in list(self._claimed.items()):
            if owner != id(request) and now < until and claimed & names:
                return until
        return None

    def wait(self, request: object, wanted: frozenset[str], limit: WaitLimit) -> None:
        """Wait until no other request claims one of these budgets."""
        begun = time.monotonic()
        end = begun + limit.left
        with self._changed:
            if self._waiting >= MOST_WAITING:
                raise _contended()
            self._waiting += 1
            try:
                while (until := self.until(request, wanted)) is not None:
                    now = time.monotonic()
                    if now >= end:
                        raise _contended()
                    self._changed.wait(min(until, end) - now + 0.001)
            finally:
                self._waiting -= 1
                limit.left -= time.monotonic() - begun

    @contextmanager
    def claimed(self, request: object, wanted: frozenset[str], limit: WaitLimit) -> Iterator[None]:
        """Keep budgets still, once no other request does."""
        while True:
            self.wait(request, wanted, limit)
            with self._changed:
                if self.until(request, wanted) is None:
                    self._claimed[id(request)] = wanted, time.monotonic() + LONGEST
                    break
        try:
            yield
        finally:
            with self._changed:
                del self._claimed[id(request)]
                self._changed.notify_all()


def _contended() -> Contended:
    return Contended("a slow query is being decided on the budget; nothing was spent; retry in 1 s")
