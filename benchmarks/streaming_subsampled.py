"""Sixty different subsampled Gaussians: each built, composed and read, in both directions.

Both sides report the worse direction. Counted as tighter are the reads where our upper bound is
at most the peer's number; where it is not, the peer may be below the truth.
"""

from __future__ import annotations

import operator

import numpy as np

import residuum as rz
from benchmarks.queries import GRIDS, SubsampledGaussian, peer_name
from benchmarks.rows import Row, times_faster
from benchmarks.timing import side_by_side

STEPS = 60
EPS = 1.0
SPEEDUPS = (10.0, 50.0)
SLACK = 1e-6
"""Relative: a read counts as tighter if it is at most this much above the peer's number."""

Stream = tuple[SubsampledGaussian, ...]


def fresh(repeat: int) -> Stream:
    rng = np.random.default_rng([8, repeat])
    rates, sigmas = rng.uniform(0.005, 0.02, STEPS), rng.uniform(0.8, 1.5, STEPS)
    return tuple(map(SubsampledGaussian, sigmas.tolist(), rates.tolist()))


def ours(queries: Stream) -> tuple[rz.Pld, list[float]]:
    remove = add = rz.identity()
    deltas = []
    for query in queries:
        one, other = query.ours()
        remove, add = remove + one, add + other
        deltas.append(max(remove.delta(EPS), add.delta(EPS)))
    return remove, deltas


def theirs(queries: Stream, grid: float) -> list[float]:
    total = None
    deltas = []
    for query in queries:
        built = query.theirs(grid)
        total = built if total is None else total.compose(built)
        deltas.append(float(total.get_delta_for_epsilon(EPS)))
    return deltas


def run(repeats: int) -> list[Row]:
    found = []
    for place, (grid, speedup) in enumerate(zip(GRIDS, SPEEDUPS, strict=True)):
        outcome = side_by_side(
            ours,
            lambda queries, grid=grid: theirs(queries, grid),
            lambda repeat, offset=1000 * place: fresh(offset + repeat),
            max(1, repeats - 2 * place),
        )
        total, deltas = outcome.ours
        bounds = total.delta_bounds(EPS)
        allowed = [value * (1.0 + SLACK) for value in outcome.theirs]
        tighter = sum(map(operator.le, deltas, allowed))
        found.append(
            Row(
                work=f"{STEPS} different subsampled Gaussians, delta({EPS:g}) after each",
                ours_ms=outcome.ours_ms,
                peer=peer_name(grid),
                peer_ms=outcome.peer_ms,
                target=times_faster(speedup),
                proven=(float(bounds.lo), float(bounds.hi)),
                peer_value=outcome.theirs[-1],
                tighter=f"{tighter} of {len(deltas)} reads",
            )
        )
    return found
