"""Building one PLD and reading it once: eps for a delta of a millionth."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.parts import Mechanism, gaussian, laplace, pure_dp, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Section
from benchmarks.harness.speed import Work, all_of, goal, goals, times_table
from benchmarks.peers.participants import (
    AUTODP_RDP,
    GOOGLE_COARSE,
    GOOGLE_FINE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_PRV,
    OPENDP,
    US,
)
from benchmarks.peers.race import race

DELTA = 1e-6
RACERS = (US, GOOGLE_FINE, GOOGLE_COARSE, GOOGLE_RDP, MICROSOFT, OPACUS_PRV, AUTODP_RDP, OPENDP)


def kinds(share: float) -> dict[str, Mechanism]:
    """Each a little different from the last: no cache can answer."""
    return {
        "a Gaussian": gaussian(4.0 + share),
        "a Laplace": laplace(4.0 + share),
        "a randomized response": pure_dp(0.5 + 0.1 * share),
        "a subsampled Gaussian (q = 0.01)": subsampled(1.0 + 1e-3 * share, 0.01),
    }


def measure(run: Run) -> Section:
    rng = np.random.default_rng(7)
    shares = rng.uniform(size=1 + run.repeats).tolist()
    works = []
    for name in kinds(0.0):
        inputs: list[dict[str, Any]] = [
            {"parts": [[kinds(share)[name], 1]], "deltas": [DELTA]} for share in shares
        ]
        results = race(run.field, RACERS, "epsilons", inputs, limit=30.0)
        ends = run.field.ask(US, "epsilon_ends", **inputs[0]).value[0]
        works.append(Work(f"Build {name}, eps at {DELTA:g}", tuple(results), tuple(ends)))
    return Section(
        "build",
        "Building one PLD",
        "Built and read once, in both directions where they differ.",
        tuple(times_table(work, "eps") for work in works),
        goals(goal(works[-1], GOOGLE_FINE.label, 5.0)),
        all_of(works),
    )
