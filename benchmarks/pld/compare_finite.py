"""The order between two finite PLDs of ten thousand atoms, and what building one costs."""

from __future__ import annotations

import numpy as np

import residua as rz
from benchmarks.harness.rows import Row, milliseconds_below
from benchmarks.harness.timing import median_time
from benchmarks.pld import finite

CASES = {
    "crossing": (finite.crossing, "INCOMPARABLE"),
    "ordered": (finite.ordered, "LESS"),
    "touching": (finite.touching, "LESS"),
}


def run(repeats: int) -> list[Row]:
    rows = [
        Row(
            work=f"from_pair of {finite.ATOMS:,} atoms",
            ours_ms=median_time(
                lambda vectors: rz.from_pair(*vectors),
                lambda repeat: finite.vectors(np.random.default_rng([6, repeat]), 1.0),
                3 * repeats,
            ),
        )
    ]
    for name, (fresh, expected) in CASES.items():
        verdict = rz.compare(*fresh(0)).verdict
        rows.append(
            Row(
                work=f"compare two finite PLDs of {finite.ATOMS:,} atoms, {name}",
                ours_ms=median_time(lambda pair: rz.compare(*pair), fresh, 3 * repeats),
                # Touching curves are decided in exact rationals, beyond what the target asks.
                target=None if name == "touching" else milliseconds_below(5.0),
                note=f"{verdict}" if verdict == expected else f"{verdict}, expected {expected}",
            )
        )
    return rows
