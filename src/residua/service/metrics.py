"""Numbers for Prometheus. Names of budgets and principals are no labels: they are not for everyone.

Each application has a registry of its own, so that several can live in one process. What is counted
with every request is counted here, in plain numbers by one thread, that of the event loop; the
client library's own counters, made for many threads, take a lock each time. They read out the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]

disable_created_metrics()  # type: ignore[no-untyped-call,unused-ignore]
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_BOUNDS = [*map(str, SECONDS), "+Inf"]


class Counts(Collector):
    """A counter with labels."""

    def __init__(self, name: str, help: str, labels: tuple[str, ...]):
        self._name, self._help, self._labels = name, help, labels
        self._found: dict[tuple[str, ...], int] = {}

    def add(self, *values: str) -> None:
        """One more under these labels."""
        self._found[values] = self._found.get(values, 0) + 1

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(self._name, self._help, labels=self._labels)
        # Another thread may be reading this.
        for values, count in list(self._found.items()):
            family.add_metric(values, count)
        yield family


class Times(Collector):
    """A histogram of seconds with a label."""

    def __init__(self, name: str, help: str, label: str):
        self._name, self._help, self._label = name, help, label
        self._found: dict[str, tuple[list[int], list[float]]] = {}

    def add(self, value: str, seconds: float) -> None:
        """Something took so long."""
        found = self._found.get(value)
        if found is None:
            found = self._found[value] = [0] * len(_BOUNDS), [0.0]
        counts, total = found
        counts[bisect_left(SECONDS, seconds)] += 1
        total[0] += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(self._name, self._help, labels=[self._label])
        for value, (counts, total) in list(self._found.items()):
            below, buckets = 0, []
            for bound, count in zip(_BOUNDS, counts, strict=True):
                below += count
                buckets.append((bound, below))
            family.add_metric([value], buckets, total[0])
        yield family


class Metrics:
    """What one application counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counts(
            "residua_requests", "Requests answered.", ("route", "method", "status")
        )
        self._seconds = Times("residua_request_seconds", "Time to answer.", "route")
        self._decisions = Counts(
            "residua_decisions", "Decisions of the ledger.", ("verb", "outcome")
        )
        for each in (self._requests, self._seconds, self._decisions):
            self.registry.register(each)
        self.in_flight = 0
        """Requests being answered. Changed in one thread, that of the event loop."""
        Gauge(
            "residua_requests_in_flight", "Requests being answered.", registry=self.registry
        ).set_function(lambda: self.in_flight)
        self.read_only = Gauge(
            "residua_ledger_read_only",
            "Whether the ledger is read-only: behind its anchor.",
            registry=self.registry,
        )
        self.verified = Gauge(
            "residua_ledger_verified",
            "1 if the last verification found nothing wrong, 0 if it did, -1 before the first.",
            registry=self.registry,
        )
        self.verified.set(-1)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.add(route, method, str(status))
        self._seconds.add(route, seconds)

    def decided(self, verb: str, admitted: bool, replayed: bool = False) -> None:
        """Count a decision."""
        outcome = "replayed" if replayed else "admitted" if admitted else "refused"
        self._decisions.add(verb, outcome)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
