"""Processes that work for a verification: fresh interpreters, which run nothing of the caller's.

Not forked, for the caller may have threads. Nor spawned by `multiprocessing`, which would run the
caller's script again up to the verification, and spend again what that spends on its way.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from residua.errors import LedgerError

T = TypeVar("T")
R = TypeVar("R")

_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer);"
    " from residua.verify.workers import work; work()"
)


def spread(do: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    """What `do` makes of each item, in their order, worked out by so many processes."""
    size = max(1, len(items) // (8 * jobs))
    pieces = [items[start : start + size] for start in range(0, len(items), size)]
    workers: list[_Worker] = []
    free: SimpleQueue[_Worker] = SimpleQueue()

    def made(piece: Sequence[T]) -> list[R]:
        worker = free.get()
        try:
            return worker.ask(do, piece)
        finally:
            free.put(worker)

    threads = ThreadPoolExecutor(jobs)
    try:
        for _ in range(min(jobs, len(pieces))):
            workers.append(_Worker())
            free.put(workers[-1])
        for found in threads.map(made, pieces):
            yield from found
    finally:
        # First, so that nobody waits for what is under way where the caller lost interest.
        for worker in workers:
            worker.end()
        threads.shutdown(cancel_futures=True)


class _Worker:
    """A process that is asked one thing after another."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise LedgerError(
                f"jobs must be 1 here, for no process can be started ({error})"
            ) from None
        self._tell(sys.path)

    def ask(self, do: Callable[[T], R], piece: Sequence[T]) -> list[R]:
        self._tell((do, piece))
        assert self._process.stdout is not None
        try:
            found = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise self._gone() from None
        if isinstance(found, Exception):
            raise found
        made: list[R] = found
        return made

    def _tell(self, something: Any) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(something, self._process.stdin)
            self._process.stdin.flush()
        except OSError:
            raise self._gone() from None

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"a process that proved steps ended with {self._process.wait()} before it was done:"
            " verify again, with fewer jobs if memory was short"
        )

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def work() -> None:
    """What a worker does until it is ended."""
    # Whatever else is printed, by any library, is no answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    with suppress(KeyboardInterrupt, BrokenPipeError):
        while True:
            try:
                do, piece = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            try:
                found: Any = [do(each) for each in piece]
            except Exception as error:
                found = error
            pickle.dump(found, answers)
            answers.flush()
