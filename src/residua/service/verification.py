"""Verification in the background: one at a time, and what the last one found."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event, Lock, Thread
from typing import Any

from residua.ledger.api.ledger import Ledger
from residua.service import logs
from residua.service.metrics import Metrics

_NOTHING: dict[str, Any] = dict.fromkeys(
    ("finished", "ok", "proven", "refuted", "undecided", "said")
)


class Verifier:
    """Runs `ledger.verify` when told, and every so often if it is to.

    What this process has proven once is not proven again, as long as its hash is still there.
    """

    def __init__(self, ledger: Ledger, metrics: Metrics, every: float):
        self._ledger, self._metrics, self._every = ledger, metrics, every
        self._lock = Lock()
        self._closing = Event()
        self._thread: Thread | None = None
        self._found = dict(_NOTHING)
        self._proven: tuple[dict[str, tuple[int, str]] | None, int] = None, 0
        """The heads up to which all is proven, and how many steps that took."""
        if every > 0:
            Thread(target=self._again, name="residua-verify-timer", daemon=True).start()

    def start(self) -> None:
        """Begin, unless one is under way."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = Thread(target=self._verify, name="residua-verify", daemon=True)
            self._thread.start()

    def said(self) -> dict[str, Any]:
        """What the last one found, and whether one is running."""
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            return {"running": running, **self._found}

    def close(self) -> None:
        """Start no more."""
        self._closing.set()

    def _again(self) -> None:
        while not self._closing.wait(self._every):
            self.start()

    def _verify(self) -> None:
        found: dict[str, Any] = {}
        try:
            since, before = self._proven
            report = self._ledger.verify(since=since)
            counts = {"refuted": report.refuted, "undecided": report.undecided}
            proven = before + report.proven
            found = {"ok": report.ok, "proven": proven, **counts, "said": report.text[:10_000]}
            if report.ok:
                self._proven = dict(report.heads), proven
        except Exception as error:
            # A thread of its own: there is nobody to raise to but the log and the next reader.
            logs.log.error("verification failed", exc_info=error)
            found = {"ok": False, "said": f"verification failed: {type(error).__name__}"}
        found["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
        self._metrics.verified.set(1 if found["ok"] else 0)
        with self._lock:
            self._found = {**_NOTHING, **found}
