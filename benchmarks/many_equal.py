"""A thousand equal queries, composed and read: Gaussians, and subsampled Gaussians."""

from __future__ import annotations

import numpy as np

from benchmarks.parts import Parts, gaussian, subsampled
from benchmarks.peers.participants import (
    AUTODP_RDP,
    GOOGLE_COARSE,
    GOOGLE_FINE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_GDP,
    OPACUS_PRV,
    OPACUS_RDP,
    OPENDP,
    US,
)
from benchmarks.peers.race import race
from benchmarks.run import Run
from benchmarks.section import Plot, Section
from benchmarks.speed import Work, all_of, fastest_at_least_as_tight, goal, goals, times_table

COUNT = 1000
DELTA = 1e-6
RACERS = (
    US,
    GOOGLE_FINE,
    GOOGLE_COARSE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_PRV,
    OPACUS_RDP,
    OPACUS_GDP,
    AUTODP_RDP,
    OPENDP,
)


def gaussians(share: float) -> Parts:
    return [[gaussian(38.0 + 4.0 * share), COUNT]]


def sampled(share: float) -> Parts:
    return [[subsampled(0.95 + 0.1 * share, 0.01), COUNT]]


def measure(run: Run) -> Section:
    rng = np.random.default_rng(9)
    works = []
    for name, made in (("Gaussians", gaussians), ("subsampled Gaussians (q = 0.01)", sampled)):
        shares = rng.uniform(size=1 + run.repeats).tolist()
        inputs = [{"parts": made(share), "deltas": [DELTA]} for share in shares]
        results = race(run.field, RACERS, "epsilons", inputs, limit=60.0)
        ends = run.field.ask(US, "epsilon_ends", **inputs[0]).value[0]
        title = f"{COUNT:,} equal {name}, eps at {DELTA:g}"
        works.append(Work(title, tuple(results), tuple(ends)))
    rival = fastest_at_least_as_tight(works[1])
    return Section(
        "many_equal",
        "A thousand equal queries",
        "Building is part of the work. The rival of the target is the fastest peer whose answer "
        "holds and is within a thousandth of the proven interval.",
        tuple(times_table(work, "eps") for work in works),
        goals(
            goal(works[0], GOOGLE_FINE.label, 50.0),
            None if rival is None else goal(works[1], rival, 5.0),
        ),
        all_of(works),
        (
            Plot(
                "many-equal",
                f"{COUNT:,} equal subsampled Gaussians, built and read",
                "",
                "processor seconds",
                tuple(works[1].times),
                {"time": tuple(works[1].times.values())},
                bars=True,
            ),
        ),
    )
