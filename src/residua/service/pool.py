"""Processes that compute what may take long, shared fairly between principals.

A decision, a plan or a curve may take seconds, and in this process everyone else would wait for the
interpreter meanwhile. So it is computed by one of a few worker processes, started when they are
first needed and ended when they have been idle for a while. No principal has more than half of
them. A request waits for one in a bounded queue, and has it for a bounded time and memory; whatever
ends a worker costs the one request that it computes for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, NoReturn, TypeVar

from starlette.requests import Request

from residua.ledger.operations.early_decisions import Compute
from residua.service.limits import FairSemaphore, overloaded, shutting_down
from residua.service.problems import Problem
from residua.worker_process import WorkerLost, WorkerProcess

T = TypeVar("T")

QUEUE = 256
"""Requests that wait for a worker; a quarter of them may be of one principal."""
NICE = 10
"""The niceness of workers: cheap requests must not wait for the processor."""
IDLE = 60.0
"""Seconds after which a worker without work is ended."""


class NotHere(Exception):
    """Something may take long, and must be computed by a worker."""


def not_here(_do: Callable[..., T], *_arguments: Any) -> NoReturn:
    """For whom nothing may be computed that may take long."""
    raise NotHere


class Pool:
    """The workers. Asked from the event loop."""

    def __init__(self, workers: int, within: float, memory: int):
        """Nothing is started yet.

        Args:
            workers: how many processes there may be.
            within: the seconds that a request may wait for one, and then have it.
            memory: the megabytes that each may have.
        """
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="residua-compute")
        self._permits = FairSemaphore(workers, max(1, workers // 2), QUEUE, max(1, QUEUE // 4))
        self._within, self.memory = within, memory
        self._lock = Lock()
        self._idle: list[tuple[float, WorkerProcess]] = []
        self._busy: set[_Slot] = set()

    async def run(self, principal: str, work: Callable[[Compute], T]) -> T:
        """Call `work` in a thread, with a function that computes in a worker.

        Raises the problem that says why nothing came of it; cancelled, it ends the computation.
        """
        try:
            async with asyncio.timeout(self._within):
                await self._permits.acquire(principal)
        except TimeoutError:
            raise overloaded(f"no worker was free for {self._within:g} seconds") from None
        slot = _Slot(self)
        with self._lock:
            self._busy.add(slot)
        try:
            future = self._threads.submit(slot.run, work)
        except RuntimeError:
            self._permits.release(principal)
            raise shutting_down() from None
        loop = asyncio.get_running_loop()
        late = f"this takes longer than {self._within:g} seconds to compute; nothing was spent"
        timer = loop.call_later(self._within, slot.stop, Problem("deadline-exceeded", late))

        def free() -> None:
            timer.cancel()
            self._permits.release(principal)
            loop.call_later(IDLE, self._end_idle, IDLE)

        def finished(_: Future[T]) -> None:
            # Not before the thread is done: cancelled, it may still be committing.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(free)

        future.add_done_callback(finished)
        done = asyncio.wrap_future(future)
        try:
            await asyncio.wait({done})
        except asyncio.CancelledError:
            slot.stop(left())
            done.add_done_callback(lambda one: one.exception())  # Nobody else asks for it.
            raise
        return done.result()

    def take(self) -> WorkerProcess:
        """A process: one that is idle, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()[1]
        return WorkerProcess(self.memory, NICE)

    def give_back(self, slot: _Slot, worker: WorkerProcess | None) -> None:
        """A slot is done, and its process, if it has one, can be used again."""
        with self._lock:
            self._busy.discard(slot)
            # In time it is replaced, with all that it keeps in caches.
            if worker is not None and worker.asked < 1000:
                self._idle.append((time.monotonic(), worker))
                worker = None
        if worker is not None:
            worker.end()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes that there are."""
        with self._lock:
            busy = [slot.worker for slot in self._busy if slot.worker is not None]
            return [worker.pid for worker in (*busy, *(one for _, one in self._idle))]

    def _end_idle(self, seconds: float) -> None:
        """End the processes that have been idle for so long."""
        limit = time.monotonic() - seconds
        with self._lock:
            ended = [worker for since, worker in self._idle if since <= limit]
            self._idle = [(since, worker) for since, worker in self._idle if since > limit]
        for worker in ended:
            worker.end()

    def close(self) -> None:
        """Stop what is computed, wait for what is being committed, and end every process."""
        with self._lock:
            busy = list(self._busy)
        for slot in busy:
            slot.stop(shutting_down())
        self._threads.shutdown(wait=True)
        self._end_idle(0.0)


class _Slot:
    """A worker for one request: started when it is first asked, and ended where it must be."""

    def __init__(self, pool: Pool):
        self._pool = pool
        self._lock = Lock()
        self.worker: WorkerProcess | None = None
        self._asking = False
        self._stopped: Problem | None = None

    def run(self, work: Callable[[Compute], T]) -> T:
        """Do the work, in a thread."""
        try:
            return work(self._compute)
        finally:
            self._pool.give_back(self, self.worker)

    def stop(self, why: Problem) -> None:
        """Compute no more; what is being committed is not affected."""
        with self._lock:
            self._stopped = self._stopped or why
            if self._asking and self.worker is not None:
                self.worker.kill()

    def _compute(self, do: Callable[..., T], *arguments: Any) -> T:
        worker = self._begin()
        try:
            return worker.ask(do, *arguments)
        except WorkerLost as lost:
            self._discard()
            raise self._stopped or lost_problem(lost) from None
        except MemoryError:
            self._discard()
            needs = f"this needs more than {self._pool.memory} MB of memory to compute"
            raise Problem("out-of-memory", f"{needs}; nothing was spent") from None
        finally:
            self._asking = False

    def _begin(self) -> WorkerProcess:
        """The process, started if need be; what stops the slot from here on kills it."""
        if self.worker is None and self._stopped is None:
            try:
                self.worker = self._pool.take()
            except (OSError, WorkerLost) as error:
                raise worker_lost(f"no worker can be started ({error})") from None
        with self._lock:
            if self._stopped is not None:
                raise self._stopped
            assert self.worker is not None
            self._asking = True
            return self.worker

    def _discard(self) -> None:
        with self._lock:
            worker, self.worker, self._asking = self.worker, None, False
        if worker is not None:
            worker.end()


async def while_connected(request: Request, work: asyncio.Future[T]) -> T:
    """The result of work, which is cancelled if the client leaves before that."""
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        both: set[asyncio.Future[Any]] = {work, gone}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise left()
        return work.result()
    finally:
        gone.cancel()
        work.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def left() -> Problem:
    """For the log alone: there is nobody to answer."""
    return Problem("client-left", "the client left before the answer")


def worker_lost(why: str) -> Problem:
    """The problem of a request whose worker is gone."""
    return Problem("worker-lost", f"{why}; nothing was spent, retry in 1 s")


def lost_problem(lost: WorkerLost) -> Problem:
    """The same, by how the process ended."""
    how = f"by signal {-lost.status}" if lost.status < 0 else f"with status {lost.status}"
    return worker_lost(f"the process that computed this was ended {how}")
