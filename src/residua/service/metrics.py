"""Metrics for Prometheus. Names of budgets and principals are not labels: they are not public.

Each application has its own registry, so that several can live in one process.
"""

from __future__ import annotations

from typing import TypeVar

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


M = TypeVar("M", Counter, Gauge)


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def made(kind: type[M], name: str, text: str, *labels: str) -> M:
            return kind(f"residua_{name}", text, labels, registry=self.registry)

        self._requests = made(
            Counter, "requests", "Requests answered.", "route", "method", "status"
        )
        self._seconds = Histogram(
            "residua_request_seconds",
            "Time to answer.",
            ("route",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
            registry=self.registry,
        )
        self._decisions = made(Counter, "decisions", "Decisions of the ledger.", "verb", "outcome")
        self.in_flight = made(Gauge, "requests_in_flight", "Requests being answered.")
        self.workers = made(Gauge, "workers", "Processes that compute.")
        self._computations = made(
            Counter, "computations", "Requests that a worker computed for.", "outcome"
        )
        self.read_only = made(
            Gauge, "ledger_read_only", "Whether the ledger is read-only: behind its anchor."
        )
        self.verified = made(
            Gauge,
            "ledger_verified",
            "1 if the last verification found nothing wrong, 0 if it did, -1 before the first.",
        )
        self.verified.set(-1)

    def count_answer(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_decision(self, verb: str, admitted: bool, replayed: bool = False) -> None:
        """Count a decision."""
        outcome = "replayed" if replayed else "admitted" if admitted else "refused"
        self._decisions.labels(verb, outcome).inc()

    def count_computation(self, outcome: str) -> None:
        """Count a request that a worker computed for: `done`, or the name of the problem."""
        self._computations.labels(outcome).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
