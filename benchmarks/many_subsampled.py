"""A thousand equal subsampled Gaussians, built and read, in both directions."""

from __future__ import annotations

import numpy as np

import residuum as rz
from benchmarks.queries import GRIDS, SubsampledGaussian, peer_name
from benchmarks.rows import Row, times_faster
from benchmarks.timing import side_by_side

COUNT = 1000
EPS = 2.0
RATE = 0.01


def fresh(repeat: int) -> SubsampledGaussian:
    rng = np.random.default_rng([9, repeat])
    return SubsampledGaussian(float(rng.uniform(0.95, 1.05)), RATE)


def ours(query: SubsampledGaussian) -> rz.Pld:
    remove, add = query.ours()
    total, back = COUNT * remove, COUNT * add
    total.delta(EPS)
    back.delta(EPS)
    return total


def run(repeats: int) -> list[Row]:
    rows = []
    for place, grid in enumerate(GRIDS):

        def theirs(query: SubsampledGaussian, grid: float = grid) -> float:
            return float(query.theirs(grid).self_compose(COUNT).get_delta_for_epsilon(EPS))

        outcome = side_by_side(
            ours, theirs, lambda repeat, place=place: fresh(100 * place + repeat), 2 * repeats
        )
        bounds = outcome.ours.delta_bounds(EPS)
        level = float(bounds.hi)
        width = outcome.ours.epsilon_bounds(level)
        rows.append(
            Row(
                work=f"{COUNT} * subsampled Gaussian (q {RATE:g}), built, delta({EPS:g})",
                ours_ms=outcome.ours_ms,
                peer=peer_name(grid),
                peer_ms=outcome.peer_ms,
                target=times_faster(5.0),
                proven=(float(bounds.lo), level),
                peer_value=outcome.theirs,
                note=f"eps at that delta known within {float(width.hi - width.lo):.1e}",
            )
        )
    return rows
