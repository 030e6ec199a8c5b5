"""A process that computes for this one: a fresh interpreter that answers one request at a time.

It is not forked, because the caller may have threads. It is not spawned by `multiprocessing`
either, which would run the caller's script again up to here, and repeat what that spends.
Functions, arguments and results are pickled and go through pipes. The process ends when its pipe or
its parent does; it ignores the signals that tell the parent to stop, so that what it computes can
be finished.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

_BEGIN = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer);"
    " from residua.worker_process import work; work()"
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Several processes share the cores already, and each thread of these libraries takes memory."""


class WorkerLost(Exception):
    """The process ended before it answered; `status` is its exit status, negative for a signal."""

    def __init__(self, status: int):
        super().__init__(f"the process ended with status {status}")
        self.status = status


class WorkerProcess:
    """A process that computes. Used by one thread at a time, except for `kill`."""

    def __init__(self, memory: int | None = None, nice: int = 0):
        """Start it. Raises `OSError` where no process can be started.

        Args:
            memory: megabytes that it may have, where the system can limit that.
            nice: by how much its priority is lowered.
        """
        self.asked = 0
        """How many requests it got."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**_without_settings(os.environ), **_ONE_THREAD},
        )
        self._send(sys.path)
        self._send((memory, nice))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def ask(self, do: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the process; return what it returns, or raise what it raises.

        Raises `WorkerLost` if the process ends first.
        """
        self.asked += 1
        self._send((do, arguments))
        assert self._process.stdout is not None
        try:
            raised, result = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            raise self._lost() from None
        if raised:
            raise result
        answer: T = result
        return answer

    def kill(self) -> None:
        """Stop the process at once; a caller that waits for its answer gets `WorkerLost`."""
        self._process.kill()

    def end(self) -> None:
        """Stop the process and close its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        # Pickled first: a value that cannot be pickled leaves the process usable.
        data = pickle.dumps(value)
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError:
            raise self._lost() from None

    def _lost(self) -> WorkerLost:
        self._process.kill()
        return WorkerLost(self._process.wait())


def _without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without settings of residua, which may hold passwords and tokens."""
    return {name: text for name, text in environment.items() if not name.startswith("RESIDUA_")}


def work() -> None:
    """Answer requests until the process ends: what a worker runs."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    # Nothing else that is printed, by any library, is an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        _limit(*pickle.load(sys.stdin.buffer))
        while True:
            do, arguments = pickle.load(sys.stdin.buffer)
            answers.write(_answer(do, arguments))
            answers.flush()


def _answer(do: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((False, do(*arguments)))
    except MemoryError:
        return pickle.dumps((True, MemoryError()))
    except Exception as error:
        with suppress(Exception):
            data = pickle.dumps((True, error))
            pickle.loads(data)
            return data
        return pickle.dumps((True, RuntimeError(repr(error))))


def _limit(memory: int | None, nice: int) -> None:
    with suppress(AttributeError, OSError):
        os.nice(nice)
    if memory is not None:
        with suppress(ImportError, AttributeError, OSError, ValueError):
            import resource

            size = memory * 1024 * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _watch(parent: int) -> None:
    """End with the parent, even one that was killed while this process computes."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
