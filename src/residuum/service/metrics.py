"""Numbers for Prometheus. Names of budgets and principals are no labels: they are not for everyone.

Each application has a registry of its own, so that several can live in one process.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

disable_created_metrics()  # type: ignore[no-untyped-call,unused-ignore]
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """What one application counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "residuum_requests",
            "Requests answered.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "residuum_request_seconds",
            "Time to answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.decisions = Counter(
            "residuum_decisions",
            "Decisions of the ledger.",
            ("verb", "outcome"),
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "residuum_requests_in_flight", "Requests being answered.", registry=self.registry
        )
        self.read_only = Gauge(
            "residuum_ledger_read_only",
            "Whether the ledger is read-only: behind its anchor.",
            registry=self.registry,
        )
        self.verified = Gauge(
            "residuum_ledger_verified",
            "1 if the last verification found nothing wrong, 0 if it did, -1 before the first.",
            registry=self.registry,
        )
        self.verified.set(-1)
        self._requests: dict[tuple[str, str, int], Counter] = {}
        self._seconds: dict[str, Histogram] = {}
        self._decisions: dict[tuple[str, str], Counter] = {}

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        # Looking a label up costs more than counting.
        counter = self._requests.get((route, method, status))
        if counter is None:
            counter = self.requests.labels(route, method, str(status))
            self._requests[route, method, status] = counter
        counter.inc()
        histogram = self._seconds.get(route)
        if histogram is None:
            histogram = self._seconds[route] = self.seconds.labels(route)
        histogram.observe(seconds)

    def decided(self, verb: str, admitted: bool, replayed: bool = False) -> None:
        """Count a decision."""
        outcome = "replayed" if replayed else "admitted" if admitted else "refused"
        counter = self._decisions.get((verb, outcome))
        if counter is None:
            counter = self._decisions[verb, outcome] = self.decisions.labels(verb, outcome)
        counter.inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
