"""Verification in the background, in another process: one at a time, and the last result."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from typing import Any

from residua.ledger.api.ledger import Ledger
from residua.service import logs
from residua.service.metrics import Metrics
from residua.service.pool import NICE
from residua.worker_process import WorkerProcess

_NOTHING: dict[str, Any] = dict.fromkeys(
    ("finished", "ok", "proven", "refuted", "undecided", "said")
)


class Verifier:
    """Runs `ledger.verify` on request, and at an interval if one is set.

    Records that this process has proven are not proven again if the chain still has their hash.
    """

    def __init__(self, ledger: Ledger, metrics: Metrics, every: float):
        self._ledger, self._metrics, self._every = ledger, metrics, every
        self._lock = Lock()
        self._closing = Event()
        self._thread: Thread | None = None
        self._process: WorkerProcess | None = None
        self._found = dict(_NOTHING)
        self._proven: tuple[dict[str, tuple[int, str]] | None, int] = None, 0
        """The heads up to which all is proven, and how many steps that took."""
        if every > 0:
            Thread(target=self._again, name="residua-verify-timer", daemon=True).start()

    def start(self) -> None:
        """Start a verification, unless one is running."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = Thread(target=self._verify, name="residua-verify", daemon=True)
            self._thread.start()

    def last_result(self) -> dict[str, Any]:
        """The result of the last verification, and whether one is running."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            return {"running": running, **self._found}

    def close(self) -> None:
        """Start no more verifications, and end the one that is running."""
        self._closing.set()
        with self._lock:
            thread, process = self._thread, self._process
        if process is not None:
            process.kill()
        if thread is not None:
            thread.join()

    def _again(self) -> None:
        while not self._closing.wait(self._every):
            self.start()

    def _verify(self) -> None:
        found: dict[str, Any] = {}
        try:
            since, before = self._proven
            report, heads = self._ask(since)
            proven = before + report["proven"]
            found = {**report, "proven": proven}
            if report["ok"]:
                self._proven = heads, proven
        except Exception as error:
            if self._closing.is_set():
                return
            # This thread has no caller to raise to: only the log and the next reader.
            logs.log.error("verification failed", exc_info=error)
            found = {"ok": False, "said": f"verification failed: {type(error).__name__}"}
        found["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
        self._metrics.verified.set(1 if found["ok"] else 0)
        with self._lock:
            self._found = {**_NOTHING, **found}

    def _ask(self, since: Any) -> tuple[dict[str, Any], dict[str, tuple[int, str]]]:
        process = WorkerProcess(nice=NICE)
        with self._lock:
            self._process = process
        try:
            if self._closing.is_set():
                process.kill()

            def compute(do: Callable[..., Any], *arguments: Any) -> Any:
                return process.ask(_summary, do, arguments)

            found: tuple[dict[str, Any], dict[str, tuple[int, str]]]
            found = self._ledger.with_compute(compute).verify(since=since)
            return found
        finally:
            with self._lock:
                self._process = None
            process.end()


def _summary(verify: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """A summary of a report, and its heads: the whole report may be large."""
    report = verify(*arguments)
    told = {name: getattr(report, name) for name in ("ok", "proven", "refuted", "undecided")}
    return {**told, "said": report.text[:10_000]}, dict(report.heads)
