"""Building one subsampled Gaussian; and what a finite PLD of it costs, for those who need one."""

from __future__ import annotations

import numpy as np

import residuum as rz
from benchmarks.queries import SubsampledGaussian, peer_name
from benchmarks.rows import Row, milliseconds_below
from benchmarks.timing import side_by_side

RATE = 0.01
SIGMA = 1.0
GRID = 1e-4
EPS = 1.0
BATCH = 20
"""Mechanisms a repeat on our side: one alone is too quick for the clock."""


def fresh(repeat: int) -> list[SubsampledGaussian]:
    """Close to sigma = 1, but different each time: a cache must not help."""
    rng = np.random.default_rng([7, repeat])
    return [SubsampledGaussian(SIGMA + x, RATE) for x in rng.uniform(0.0, 1e-3, BATCH).tolist()]


def run(repeats: int) -> list[Row]:
    def ours(queries: list[SubsampledGaussian]) -> rz.Pld:
        for query in queries:
            remove, add = query.ours()
            remove.delta(EPS)
            add.delta(EPS)
        return remove

    def theirs(queries: list[SubsampledGaussian]) -> float:
        return float(queries[-1].theirs(GRID).get_delta_for_epsilon(EPS))

    outcome = side_by_side(ours, theirs, fresh, repeats)
    bounds = outcome.ours.delta_bounds(EPS)
    return [
        Row(
            work=f"build a subsampled Gaussian (q {RATE:g}), delta({EPS:g}), no grid",
            ours_ms=outcome.ours_ms / BATCH,
            target=milliseconds_below(30.0),
            note=f"{peer_name(GRID)}: {outcome.peer_ms:.0f} ms",
            proven=(float(bounds.lo), float(bounds.hi)),
            peer_value=outcome.theirs,
        )
    ]
