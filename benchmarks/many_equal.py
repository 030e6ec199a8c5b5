"""A thousand equal Gaussians and one read; building the single Gaussian is not counted."""

from __future__ import annotations

import numpy as np

from benchmarks.queries import GRIDS, Gaussian, peer_name
from benchmarks.rows import Row, times_faster
from benchmarks.timing import side_by_side

COUNT = 1000
EPS = 4.0
BATCH = 10
"""Gaussians a repeat: one alone is too quick for the clock."""


def run(repeats: int) -> list[Row]:
    rows = []
    for place, grid in enumerate(GRIDS):

        def fresh(repeat: int, place: int = place, grid: float = grid):
            rng = np.random.default_rng([3, place, repeat])
            queries = [Gaussian(sigma) for sigma in rng.uniform(35.0, 45.0, BATCH).tolist()]
            return [(query.ours(), query.theirs(grid)) for query in queries]

        def ours(built):
            for single, _ in built:
                total = COUNT * single
                total.delta(EPS)
            return total

        def theirs(built):
            for _, single in built:
                delta = single.self_compose(COUNT).get_delta_for_epsilon(EPS)
            return float(delta)

        outcome = side_by_side(ours, theirs, fresh, 3 * repeats)
        bounds = outcome.ours.delta_bounds(EPS)
        rows.append(
            Row(
                work=f"{COUNT} * gaussian, delta({EPS:g})",
                ours_ms=outcome.ours_ms / BATCH,
                peer=peer_name(grid),
                peer_ms=outcome.peer_ms / BATCH,
                target=times_faster(50.0),
                proven=(float(bounds.lo), float(bounds.hi)),
                peer_value=outcome.theirs,
            )
        )
    return rows
