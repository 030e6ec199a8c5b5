"""A zCDP filter asked again and again: ours against OpenDP's privacy filter.

OpenDP answers through the filter, so the time its measurement takes without one is subtracted.
Ours decides with exact amounts and a state that does not grow; the ratio grows with the history.
"""

from __future__ import annotations

import time

import opendp.prelude as dp

import residuum as rz
from benchmarks.rows import Row, times_faster
from benchmarks.timing import median_time

HISTORIES = ((100, None), (1000, 10.0))
SIGMA = 10.0
RHO = 1000.0


def run(repeats: int) -> list[Row]:
    dp.enable_features("contrib")
    return [_row(count, target, repeats) for count, target in HISTORIES]


def _row(count: int, target: float | None, repeats: int) -> Row:
    ours_ms = median_time(_ours, lambda _: count, repeats)
    return Row(
        work=f"{count} requests to a zCDP filter",
        ours_ms=ours_ms,
        peer="OpenDP privacy filter",
        peer_ms=_theirs(count),
        target=None if target is None else times_faster(target),
    )


def _ours(count: int) -> None:
    office = rz.ZcdpFilter(rho=RHO)
    query = rz.mechanisms.Gaussian(sigma=SIGMA)
    for _ in range(count):
        assert office.request(query).admitted


def _theirs(count: int) -> float:
    """Milliseconds for all requests, less what the measurements take by themselves."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    odometer = dp.c.make_fully_adaptive_composition(*space, dp.zero_concentrated_divergence())
    queryable = dp.c.make_privacy_filter(odometer, 1.0, RHO)(0.0)
    measurement = space >> dp.m.then_gaussian(SIGMA)

    def spent(ask: object) -> float:
        start = time.perf_counter()
        for _ in range(count):
            ask()  # type: ignore[operator]
        return 1000.0 * (time.perf_counter() - start)

    return spent(lambda: queryable(measurement)) - spent(lambda: measurement(0.0))
