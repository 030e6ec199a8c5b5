"""Limits on callers: requests a second, bytes in one request, work at one time, connections.

Rates are limited in this process, by a token bucket for each caller that fills at `rate` and holds
`burst`. Requests without a valid token share a small bucket for each address. Work is done by
threads with a bounded queue; slow work also needs a permit, of which each caller has a share, so
that no caller's plans occupy all threads.

Connections that owe a request are closed in time, so that others get in. Uvicorn has a limit for
the size of a head and one for the rest between two requests, but none for how long a head may take.
So every connection gets a deadline here, from a subclass of uvicorn's protocol, which its `http`
option takes: the whole head of a request must come within some seconds of the connection's
beginning, or of the end of the answer before. The application says when a request has come and when
it is answered. Nor is there an option for what is answered where there are too many connections:
uvicorn's own answer is plain text.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from residua.service import logs
from residua.service.problems import Problem

T = TypeVar("T")

ANONYMOUS_RATE, ANONYMOUS_BURST = 10.0, 50
"""The limit for an address without a valid token: generous, since a proxy may have many users."""
BODY_TIMEOUT = 30.0
"""Seconds within which the whole body of a request must arrive."""
READ_TIMEOUT = 30.0
"""Seconds within which a caller must read the next piece of an answer."""


class RateLimiter:
    """Token buckets by name. Used from the event loop alone."""

    _MOST = 10_000
    """Buckets that are kept: a few megabytes."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take one token from a bucket, or raise the problem that says when to retry."""
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
        """Put back the token that was taken last."""
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


class FairSemaphore:
    """A number of permits, shared fairly between names. Used from the event loop alone.

    A name holds at most `share` of them. When all are held, a request waits in the queue of its
    name. The next permit goes to the name that holds the fewest, and among those to the one that
    got its last permit first.
    """

    def __init__(self, permits: int, share: int, longest_queue: int, longest_own_queue: int):
        self._permits, self._share = permits, share
        self._longest_queue, self._longest_own_queue = longest_queue, longest_own_queue
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def acquire(self, name: str) -> None:
        """Wait for a permit, which the caller must release.

        Raises the problem that says when to retry if too many requests wait.
        """
        if self._may_acquire(name):
            self._held[name] += 1
            return
        own = self._waiting.get(name, deque())
        queue_length = sum(map(len, self._waiting.values()))
        if len(own) >= self._longest_own_queue or queue_length >= self._longest_queue:
            waiting = max(len(own), self._longest_own_queue)
            raise overloaded(f"too many requests wait ({waiting} of yours)")
        permit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, own).append(permit)
        try:
            await permit
        except BaseException:
            if permit.done() and not permit.cancelled():
                self.release(name)
            elif permit in own:
                own.remove(permit)
                if not own:
                    self._waiting.pop(name, None)
            raise

    def release(self, name: str) -> None:
        """Release a permit of a name, and give the free permits to those that wait."""
        self._held[name] -= 1
        if not self._held[name]:
            del self._held[name]
        if name in self._waiting:
            self._waiting[name] = self._waiting.pop(name)  # behind the others
        while (following := self._next_name()) is not None:
            queue = self._waiting.pop(following)
            permit = queue.popleft()
            if queue:
                self._waiting[following] = queue
            if not permit.done():
                self._held[following] += 1
                permit.set_result(None)

    def _may_acquire(self, name: str) -> bool:
        return self._held.total() < self._permits and self._held[name] < self._share

    def _next_name(self) -> str | None:
        able = (name for name in self._waiting if self._may_acquire(name))
        return min(able, key=lambda name: self._held[name], default=None)

    @asynccontextmanager
    async def permit(self, name: str) -> AsyncIterator[None]:
        """Hold a permit during a `with` block."""
        await self.acquire(name)
        try:
            yield
        finally:
            self.release(name)


class WorkerThreads:
    """Threads for one kind of work, with a bounded queue. Used from the event loop alone."""

    def __init__(self, name: str, threads: int, queue: int):
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._permits = FairSemaphore(threads, max(1, threads // 2), queue, max(1, queue // 4))
        self._size, self._most_requests, self._requests = threads, threads + queue, 0

    @property
    def is_busy(self) -> bool:
        """Whether a new request would have to wait for a thread."""
        return self._requests >= self._size

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Call `work` in a thread; raise the problem that says to retry if the queue is full.

        If the request is cancelled, work that has not begun does not begin; work that has begun is
        finished.
        """
        if self._requests >= self._most_requests:
            raise overloaded(f"too many requests wait ({self._most_requests})")
        self._requests += 1
        try:
            future = self._threads.submit(work, *arguments)
        except RuntimeError:
            raise shutting_down() from None
        else:
            return await asyncio.wrap_future(future)
        finally:
            self._requests -= 1

    async def run_fairly(self, name: str, work: Callable[..., T], *arguments: object) -> T:
        """The same for work whose length a caller chooses; a name gets half of the threads."""
        async with self._permits.permit(name):
            return await self.run(work, *arguments)

    def close(self) -> None:
        """Finish the work that was accepted, and accept no more."""
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


# -- connections ----------------------------------------------------------------------------


Address = tuple[str, int]
"""The host and port of the other side, by which an application knows its connection."""


class Connections:
    """Open connections, and until when each must have sent a head. For one event loop."""

    def __init__(self, head_within: float, most: int = 10_000):
        """Requests on more than `most` connections get the error that the service is overloaded."""
        self._within, self._most = head_within, most
        self._open: dict[Address, tuple[asyncio.Transport, asyncio.TimerHandle | None]] = {}

    @property
    def are_too_many(self) -> bool:
        """Whether there are more than there may be."""
        return len(self._open) > self._most

    def add(self, transport: asyncio.Transport) -> None:
        """A connection has begun."""
        address = _address(transport)
        if address is not None:
            self._open[address] = transport, self._deadline(address)

    def remove(self, transport: asyncio.Transport) -> None:
        """A connection has ended."""
        address = _address(transport)
        if address in self._open and self._open[address][0] is transport:
            _, timer = self._open.pop(address)
            if timer is not None:
                timer.cancel()

    @contextmanager
    def answering(self, client: Any) -> Iterator[None]:
        """While a request is answered, its connection owes nothing; then it owes the next head."""
        address = None if client is None else (client[0], client[1])
        self._settle(address, owes=False)
        try:
            yield
        finally:
            self._settle(address, owes=True)

    def abort(self, client: Any) -> None:
        """Close a connection at once, whatever is still to be sent on it."""
        transport, _ = self._open.get((client[0], client[1]) if client else ("", 0), (None, None))
        if transport is not None:
            transport.abort()

    def _settle(self, address: Address | None, owes: bool) -> None:
        if address is None or address not in self._open:
            return
        transport, timer = self._open[address]
        if timer is not None:
            timer.cancel()
        self._open[address] = transport, self._deadline(address) if owes else None

    def _deadline(self, address: Address) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._within, self._late, address)

    def _late(self, address: Address) -> None:
        logs.event("closed a connection that sent no request in time", level=30)
        self.abort(address)


def timed_protocol(connections: Connections) -> type[H11Protocol]:
    """The protocol of uvicorn, with connections that are known to these."""

    class TimedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            connections.add(transport)
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.remove(self.transport)
            super().connection_lost(exc)

    return TimedProtocol


def _address(transport: asyncio.Transport) -> Address | None:
    peer = transport.get_extra_info("peername")
    return (str(peer[0]), int(peer[1])) if isinstance(peer, list | tuple) else None
