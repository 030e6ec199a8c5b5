"""How much a caller may ask: requests a second, bytes in one request, and work at one time.

Rates are kept in this process, by a bucket for each caller that fills at `rate` and holds `burst`.
Those who fail to show a valid token share a small bucket for each address they come from. Work is
done by threads with a queue that ends; what takes long takes turns, so that no caller's plans
occupy all threads.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from residua.service.problems import Problem

T = TypeVar("T")

STRANGERS_RATE = 10.0
STRANGERS_BURST = 50
_MOST = 10_000
BODY_WITHIN = 30.0
"""Seconds in which the body of a request must have come."""
READ_WITHIN = 30.0
"""Seconds in which a caller must take the next piece of an answer."""


class Rate:
    """Buckets by name. Used from one thread, that of the event loop."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one from a bucket, or raise the problem that says when to retry."""
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
                f"rate limit of {self._rate:g} requests a second exceeded; retry in {wait} s",
                {"Retry-After": str(wait)},
            )
        if len(self._buckets) >= _MOST and name not in self._buckets:
            self._forget(now)
        self._buckets[name] = (level - 1.0, now)

    def give_back(self, name: str) -> None:
        """Put back what was taken."""
        if name in self._buckets:
            level, then = self._buckets[name]
            self._buckets[name] = min(self._burst, level + 1.0), then

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
    """At most so many things at once for each name; a caller with more waits for its own.

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


class Workers:
    """Threads for one kind of work, and a queue that ends. Asked from the event loop."""

    def __init__(self, name: str, threads: int, queue: int):
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._turns = Turns(max(1, threads // 2))
        self._most, self._taken = threads + queue, 0

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Do work in a thread; raises the problem that says to retry where the queue is full."""
        with self._place():
            return await self._done(work, *arguments)

    async def run_for(self, name: str, work: Callable[..., T], *arguments: object) -> T:
        """The same for work whose length a caller chooses: half of the threads are for others."""
        with self._place():
            async with self._turns.turn(name):
                return await self._done(work, *arguments)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._taken >= self._most:
            raise Problem(
                503,
                "overloaded",
                f"too many requests wait ({self._most}); nothing was spent, retry in 1 s",
                {"Retry-After": "1"},
            )
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    async def _done(self, work: Callable[..., T], *arguments: object) -> T:
        try:
            future = self._threads.submit(work, *arguments)
        except RuntimeError:
            raise Problem(
                503, "shutting-down", "the service is shutting down; nothing was spent"
            ) from None
        # What has begun is finished even where nobody waits for it any more.
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what was taken, and take no more."""
        self._threads.shutdown(wait=True)


def too_large(largest: int) -> Problem:
    """The problem of a body over the limit."""
    return Problem(413, "body-too-large", f"a body must have at most {largest} bytes")
