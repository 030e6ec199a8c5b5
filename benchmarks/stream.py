"""The streaming work: build the next query, compose it, read delta, and so on to the end."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

import residuum as rz
from benchmarks.queries import GRIDS, Query, peer_name
from benchmarks.rows import Row, times_faster
from benchmarks.timing import side_by_side

Stream = tuple[Query, ...]


def ours(queries: Iterable[Query], eps: float) -> tuple[rz.Pld, list[float]]:
    total = rz.identity()
    deltas = []
    for query in queries:
        total = total + query.ours()
        deltas.append(total.delta(eps))
    return total, deltas


def theirs(queries: Iterable[Query], eps: float, grid: float) -> list[float]:
    total = None
    deltas = []
    for query in queries:
        built = query.theirs(grid)
        total = built if total is None else total.compose(built)
        deltas.append(float(total.get_delta_for_epsilon(eps)))
    return deltas


def rows(
    name: str,
    fresh: Callable[[int], Stream],
    eps: float,
    speedups: tuple[float, float],
    repeats: int,
) -> list[Row]:
    """One row for each grid of the peer, with the speed-up wanted there."""
    found = []
    for place, (grid, speedup) in enumerate(zip(GRIDS, speedups, strict=True)):

        def stream(repeat: int, offset: int = 1000 * place) -> Stream:
            return fresh(offset + repeat)

        outcome = side_by_side(
            lambda queries: ours(queries, eps),
            lambda queries, grid=grid: theirs(queries, eps, grid),
            stream,
            repeats,
        )
        total, our_deltas = outcome.ours
        bounds = total.delta_bounds(eps)
        tighter = sum(map(operator.le, our_deltas, outcome.theirs))
        found.append(
            Row(
                work=f"{len(fresh(0))} {name}, delta({eps:g}) after each",
                ours_ms=outcome.ours_ms,
                peer=peer_name(grid),
                peer_ms=outcome.peer_ms,
                target=times_faster(speedup),
                proven=(float(bounds.lo), float(bounds.hi)),
                peer_value=outcome.theirs[-1],
                tighter=f"{tighter} of {len(our_deltas)} reads",
            )
        )
    return found
