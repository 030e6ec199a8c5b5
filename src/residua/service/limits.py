"""Limits on callers: requests a second, bytes in one request, and work at one time.

Rates are kept in this process, by a bucket for each caller that fills at `rate` and holds `burst`.
Those who fail to show a valid token share a small bucket for each address they come from. Work is
done by threads with a queue that ends; what takes long takes turns, so that no caller's plans
occupy all threads.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from residua.service.problems import Problem

T = TypeVar("T")

ANONYMOUS_RATE, ANONYMOUS_BURST = 10.0, 50
"""Of an address without a valid token: guesses cost little, and a proxy's users are many."""
BODY_WITHIN = 30.0
"""Seconds in which the body of a request must have come."""
READ_WITHIN = 30.0
"""Seconds in which a caller must take the next piece of an answer."""


class Rate:
    """Buckets by name. Used from one thread, that of the event loop."""

    _MOST = 10_000
    """Buckets that are kept: a few megabytes."""

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
                "too-many-requests",
                f"rate limit of {self._rate:g} requests a second exceeded; retry in {wait} s",
                {"Retry-After": str(wait)},
            )
        if len(self._buckets) >= self._MOST and name not in self._buckets:
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
        for name in full or oldest[: self._MOST // 2]:
            del self._buckets[name]


class Turns:
    """So many things at once, shared fairly between names. Used from the event loop alone.

    A name has at most `share` of them. When all are taken, a request waits in the queue of its
    name. The next turn goes to the name that has the fewest, and among those to the one that got
    its last turn first.
    """

    def __init__(self, most: int, share: int, queue: int, own_queue: int):
        self._most, self._share, self._queue, self._own_queue = most, share, queue, own_queue
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def take(self, name: str) -> None:
        """Wait for a turn, to be given back. Raises the problem that says to retry if too many do.

        Only those who have the turn may give it back.
        """
        if self._is_free(name):
            self._running[name] += 1
            return
        own = self._waiting.get(name, deque())
        if len(own) >= self._own_queue or sum(map(len, self._waiting.values())) >= self._queue:
            raise overloaded(f"too many requests wait ({max(len(own), self._own_queue)} of yours)")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, own).append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give_back(name)
            elif turn in own:
                own.remove(turn)
                if not own:
                    self._waiting.pop(name, None)
            raise

    def give_back(self, name: str) -> None:
        """A turn is over; the next ones begin."""
        self._running[name] -= 1
        if not self._running[name]:
            del self._running[name]
        if name in self._waiting:
            self._waiting[name] = self._waiting.pop(name)  # behind the others
        while (following := self._next()) is not None:
            turns = self._waiting.pop(following)
            turn = turns.popleft()
            if turns:
                self._waiting[following] = turns
            if not turn.done():
                self._running[following] += 1
                turn.set_result(None)

    def _is_free(self, name: str) -> bool:
        return self._running.total() < self._most and self._running[name] < self._share

    def _next(self) -> str | None:
        able = (name for name in self._waiting if self._is_free(name))
        return min(able, key=lambda name: self._running[name], default=None)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn, have it, and give it back."""
        await self.take(name)
        try:
            yield
        finally:
            self.give_back(name)


class Workers:
    """Threads for one kind of work, and a queue that ends. Asked from the event loop."""

    def __init__(self, name: str, threads: int, queue: int):
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._turns = Turns(threads, max(1, threads // 2), queue, max(1, queue // 4))
        self._size, self._most, self._taken = threads, threads + queue, 0

    @property
    def is_busy(self) -> bool:
        """Whether a new request would have to wait for a thread."""
        return self._taken >= self._size

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Do work in a thread; raises the problem that says to retry where the queue is full.

        Cancelled, it does not begin; what has begun is finished.
        """
        if self._taken >= self._most:
            raise overloaded(f"too many requests wait ({self._most})")
        self._taken += 1
        try:
            future = self._threads.submit(work, *arguments)
        except RuntimeError:
            raise shutting_down() from None
        else:
            return await asyncio.wrap_future(future)
        finally:
            self._taken -= 1

    async def run_for(self, name: str, work: Callable[..., T], *arguments: object) -> T:
        """The same for work whose length a caller chooses: half of the threads are for others."""
        async with self._turns.turn(name):
            return await self.run(work, *arguments)

    def close(self) -> None:
        """Finish what was taken, and take no more."""
        self._threads.shutdown(wait=True)


def overloaded(why: str) -> Problem:
    """The problem for a caller that should retry a little later."""
    return Problem("overloaded", f"{why}; nothing was spent, retry in 1 s")


def shutting_down() -> Problem:
    """The problem for a request that arrives during shutdown."""
    return Problem("shutting-down", "the service is shutting down; nothing was spent")


def too_large(largest: int) -> Problem:
    """The problem of a body over the limit."""
    return Problem("body-too-large", f"a body must have at most {largest} bytes")
