"""Budgets of subjects in memory: updates a second on one core, beside two ends of the scale.

The limit is the plain subtraction of two columns; the other end is a loop over filter objects.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import residua as rz
from benchmarks.harness.rows import Row, Target
from residua.individual.cost_model import pricing_for

SIZE = 1 << 20
LOOP = 300


def median_time(work: Callable[[Any], object], fresh: Callable[[int], Any], repeats: int) -> float:
    """Median milliseconds of the processor, not of the clock: other work does not count."""
    work(fresh(0))
    times = []
    for repeat in range(1, repeats + 1):
        argument = fresh(repeat)
        start = time.process_time()
        work(argument)
        times.append(1000.0 * (time.process_time() - start))
    return median(times)


def at_least(millions: float) -> Target:
    return Target(SIZE / millions / 1000.0, "ms", at_least=False)


def row(work: str, milliseconds: float, target: Target | None = None, size: int = SIZE) -> Row:
    rate = size / milliseconds / 1000.0
    shown = f"{rate:.1f}" if rate >= 0.1 else f"{rate:.4f}"
    return Row(work=work, ours_ms=milliseconds, target=target, note=f"{shown} million a second")


def kernel(repeats: int, column: str | None, mechanism: Any, loss: Any) -> float:
    """The charge alone, on budgets between nothing and the capacity."""
    pricing = pricing_for(rz.GdpResidueFilter(mu=1.0), column, mechanism)
    rng = np.random.default_rng(1)
    left = rng.integers(0, pricing.units.capacity, SIZE)
    losses = None if loss is None else loss(rng)
    return median_time(lambda _: pricing.charge(left, losses), lambda i: i, repeats)


def spends(
    repeats: int, people: Any, columns: Callable[[int], dict[str, Any]], **more: Any
) -> float:
    """Whole spends in memory: checks, fingerprint, look-up, charge, active set."""
    import pyarrow as pa

    state = rz.individual.create("memory:", filter=rz.GdpResidueFilter(mu=1.0))
    state.enroll(pa.table({"subject": np.arange(SIZE)}))

    def fresh(number: int) -> tuple[str, Any]:
        return f"q-{number}", pa.table({"subject": people(number), **columns(number)})

    return median_time(
        lambda given: state.spend(given[1], spend_id=given[0], **more), fresh, repeats
    )


def run(repeats: int) -> list[Row]:
    import pyarrow as pa

    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        return _rows(repeats)
    finally:
        pa.set_cpu_count(threads)


def _rows(repeats: int) -> list[Row]:
    rng = np.random.default_rng(2)
    aligned, mixed = np.arange(SIZE), rng.permutation(SIZE)
    small = rng.uniform(0.0, 0.1, SIZE)
    floats = rng.uniform(0.0, 1.0, SIZE)
    few = rng.choice([0.01, 0.02, 0.05, 0.1], SIZE)
    rows = [
        row(
            "limit: one column of floats minus another",
            median_time(lambda _: np.subtract(floats, small), lambda i: i, repeats),
        ),
        row(
            "charge Gaussian nu",
            kernel(repeats, "nu", None, lambda rng: rng.uniform(0.0, 0.1, SIZE)),
            at_least(20.0),
        ),
        row(
            "charge one randomized response",
            kernel(repeats, None, rz.pure_dp(0.1), None),
            at_least(5.0),
        ),
        row(
            "charge one Laplace query",
            kernel(repeats, None, rz.laplace(scale=10.0), None),
            at_least(5.0),
        ),
        row(
            "charge per-subject eps, 1,024 levels",
            kernel(repeats, "eps", None, lambda rng: rng.uniform(0.0, 0.3, SIZE)),
            at_least(0.5),
        ),
        row(
            "spend Gaussian nu, keys aligned",
            spends(repeats, lambda _: aligned, lambda _: {"nu": small}),
            at_least(20.0),
        ),
        row(
            "spend Gaussian nu, keys looked up",
            spends(repeats, lambda _: mixed, lambda _: {"nu": small}),
        ),
        row(
            "spend one Laplace query, keys aligned",
            spends(repeats, lambda _: aligned, lambda _: {}, mechanism=rz.laplace(scale=10.0)),
            at_least(5.0),
        ),
        row(
            "spend per-subject eps, keys aligned",
            spends(repeats, lambda _: aligned, lambda _: {"eps": few}),
            at_least(0.5),
        ),
    ]
    filters = [rz.GdpResidueFilter(mu=1.0) for _ in range(LOOP)]

    def loop(queries: list[rz.Pld]) -> None:
        for one, asked in zip(filters, queries, strict=True):
            one.request(asked)

    rows.append(
        row(
            "loop over GdpResidueFilter objects, Gaussian",
            median_time(
                loop,
                lambda i: [
                    rz.gaussian(mu=float(nu)) for nu in 0.01 + 1e-6 * np.arange(LOOP) + 1e-9 * i
                ],
                repeats,
            ),
            size=LOOP,
        )
    )
    rows.append(
        row(
            "loop over GdpResidueFilter objects, pure",
            median_time(
                loop,
                lambda i: [
                    rz.pure_dp(float(eps)) for eps in 0.01 + 1e-6 * np.arange(LOOP) + 1e-9 * i
                ],
                repeats,
            ),
            size=LOOP,
        )
    )
    return rows
