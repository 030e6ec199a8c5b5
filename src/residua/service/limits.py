"""How much a caller may ask: requests a second, and bytes in one request.

Rates are kept in this process, by a bucket for each caller that fills at `rate` and holds `burst`.
Those who fail to show a valid token share a small bucket for each address they come from. What
takes long takes turns, so that nobody's plans occupy all threads.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from residua.service.problems import Problem

STRANGERS_RATE = 10.0
STRANGERS_BURST = 50
_MOST = 10_000


class Rate:
    """Buckets by name. Used from one thread, that of the event loop."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one from a bucket, or raise the problem that says when to come again."""
        if self._rate <= 0:
            return
        now = self._clock()
        level, then = self._buckets.get(name, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._rate)
        if level < 1.0:
            wait = max(1, math.ceil((1.0 - level) / self._rate))
            raise Problem(
                429,
                "too-many-requests",
                f"at most {self._rate:g} requests a second are answered; come again in {wait} s",
                {"Retry-After": str(wait)},
            )
        if len(self._buckets) >= _MOST and name not in self._buckets:
            self._forget(now)
        self._buckets[name] = (level - 1.0, now)

    def _forget(self, now: float) -> None:
        """Drop buckets that are full again; if none is, the oldest half."""
        full = [
            name
            for name, (level, then) in self._buckets.items()
            if level + (now - then) * self._rate >= self._burst
        ]
        oldest = sorted(self._buckets, key=lambda name: self._buckets[name][1])
        for name in full or oldest[: _MOST // 2]:
            del self._buckets[name]


class Turns:
    """At most so many things at once for each name; whoever has more waits for their own.

    Used from one thread, that of the event loop.
    """

    def __init__(self, most: int):
        self._most = most
        self._waiting: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        semaphore, users = self._waiting.get(name, (asyncio.Semaphore(self._most), 0))
        self._waiting[name] = semaphore, users + 1
        try:
            async with semaphore:
                yield
        finally:
            semaphore, users = self._waiting.pop(name)
            if users > 1:
                self._waiting[name] = semaphore, users - 1


def too_large(largest: int) -> Problem:
    """The problem of a body over the limit."""
    return Problem(413, "body-too-large", f"a body must have at most {largest} bytes")
