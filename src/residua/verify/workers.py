"""Worker processes of a verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

from residua.errors import LedgerError
from residua.worker_process import WorkerLost, WorkerProcess

T = TypeVar("T")
R = TypeVar("R")


def spread(do: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    """The results of `do` on each item, in order, computed by so many processes."""
    size = max(1, len(items) // (8 * jobs))
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    workers: list[WorkerProcess] = []
    free: SimpleQueue[WorkerProcess] = SimpleQueue()

    def made(piece: Sequence[T]) -> list[R]:
        worker = free.get()
        try:
            return worker.ask(_each, do, piece)
        except WorkerLost as lost:
            raise LedgerError(
                f"a process that proved steps ended with {lost.status} before it was done:"
                " verify again, with fewer jobs if memory was short"
            ) from None
        finally:
            free.put(worker)

    threads = ThreadPoolExecutor(jobs)
    try:
        for _ in range(min(jobs, len(pieces))):
            workers.append(_start_worker())
            free.put(workers[-1])
        for found in threads.map(made, pieces):
            yield from found
    finally:
        # First, so that nobody waits for what is under way where the caller lost interest.
        for worker in workers:
            worker.end()
        threads.shutdown(cancel_futures=True)


def _start_worker() -> WorkerProcess:
    try:
        return WorkerProcess()
    except OSError as error:
        raise LedgerError(
            f"jobs must be 1 here, because no process can be started ({error})"
        ) from None


def _each(do: Callable[[T], R], items: Sequence[T]) -> list[R]:
    return [do(item) for item in items]
