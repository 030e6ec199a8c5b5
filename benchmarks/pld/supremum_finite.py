"""The supremum of two finite PLDs of ten thousand atoms."""

from __future__ import annotations

import residua as rz
from benchmarks.harness.rows import Row, milliseconds_below
from benchmarks.harness.timing import median_time
from benchmarks.pld import finite


def run(repeats: int) -> list[Row]:
    return [
        Row(
            work=f"supremum of two finite PLDs of {finite.ATOMS:,} atoms, {name}",
            ours_ms=median_time(lambda pair: rz.supremum(pair), fresh, 3 * repeats),
            target=milliseconds_below(50.0),
        )
        for name, fresh in {"crossing": finite.crossing, "ordered": finite.ordered}.items()
    ]
