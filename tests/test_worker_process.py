"""A process that computes: what it answers, how it ends, and what it does not have."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from residua.worker_process import WorkerLost, WorkerProcess


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.end()


def test_answers_and_errors_come_back(worker: WorkerProcess) -> None:
    assert worker.ask(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        worker.ask(divmod, 7, 0)
    assert worker.ask(os.getpid) == worker.pid


def test_what_cannot_be_pickled_leaves_it_usable(worker: WorkerProcess) -> None:
    with pytest.raises(Exception, match="pickle"):
        worker.ask(lambda: 1)
    with pytest.raises((RuntimeError, TypeError), match="pickle"):
        worker.ask(open, os.devnull)
    assert worker.ask(abs, -1) == 1


def test_it_tells_how_it_ended(worker: WorkerProcess) -> None:
    with pytest.raises(WorkerLost) as lost:
        worker.ask(os._exit, 3)
    assert lost.value.status == 3
    with pytest.raises(WorkerLost):
        worker.ask(abs, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ignores_what_tells_its_parent_to_stop(worker: WorkerProcess, number: int) -> None:
    assert worker.ask(abs, -1) == 1
    os.kill(worker.pid, number)
    assert worker.ask(abs, -2) == 2


def test_it_has_none_of_our_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDUA_STORE", "postgresql://user:secret@host/db")
    worker = WorkerProcess()
    try:
        assert worker.ask(os.getenv, "RESIDUA_STORE") is None
        assert worker.ask(os.getenv, "PATH") == os.environ["PATH"]
    finally:
        worker.end()


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="the system has no priorities")
def test_its_priority_is_lowered() -> None:
    worker = WorkerProcess(nice=5)
    try:
        before = os.getpriority(os.PRIO_PROCESS, 0)
        assert worker.ask(os.getpriority, os.PRIO_PROCESS, 0) == min(19, before + 5)
    finally:
        worker.end()


PARENT = """
import os, sys, time
from threading import Thread
from residua.worker_process import WorkerProcess
worker = WorkerProcess()
Thread(target=worker.ask, args=(time.sleep, 600), daemon=True).start()
print(worker.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_a_parent_that_is_killed_while_it_computes() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.5)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while _runs(pid):
        assert time.monotonic() < deadline, "it still computes"
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not os.path.isdir("/proc/self")
