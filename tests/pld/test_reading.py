"""One read in scalars against the same read as an array, and streams against fresh reads."""

from __future__ import annotations

import numpy as np

import residuum as rz
from residuum.pld import reading
from residuum.pld.contour import Contour

QUERIES = [
    rz.gaussian(sigma=20.0),
    rz.laplace(scale=12.0),
    rz.pure_dp(0.07),
    rz.bounded_range(0.2),
    rz.approximate_dp(0.05, 0.0),
    rz.from_pair([0.3, 0.5, 0.2], [0.25, 0.5, 0.25]),
]


def streams(count: int) -> list[tuple[rz.Pld, rz.Pld]]:
    """Compositions that grew with a read after each query, and the same made at once."""
    rng = np.random.default_rng(70)
    found = []
    for _ in range(count):
        stream, queries = rz.gaussian(sigma=float(rng.uniform(1.0, 9.0))), []
        for place in rng.integers(len(QUERIES), size=30).tolist():
            queries.append(QUERIES[place])
            stream = stream + queries[-1]
            stream.delta(1.0)
        found.append((stream, rz.Pld(stream.gaussian, dict(stream.terms))))
    return found


def test_scalars_as_arrays() -> None:
    read = 0
    for stream, _ in streams(4):
        for made in stream._evaluator.contours:
            if not (isinstance(made, Contour) and reading.is_plain(made)):
                continue
            for t in (0.0, 0.3, 1.0, 1.7, 4.0, 40.0):
                lo, hi = reading.at(made, t)
                (low,), (high,) = made.curve(np.array([t]), 0.0)
                # Both are proven, and sums in another order differ by less than is charged.
                most = 0.25 * (high - low) + 1e-300
                assert abs(lo - low) <= most and abs(hi - high) <= most
                read += 1
    assert read >= 12


def test_streams_as_fresh_reads() -> None:
    for stream, fresh in streams(3):
        for eps in (0.0, 0.5, 1.0, 2.0, 3.5):
            one, array = stream.delta_bounds(eps), fresh.delta_bounds(np.array([eps]))
            assert one.lo <= array.hi[0] and array.lo[0] <= one.hi
            assert one.hi - one.lo <= 1e-6 * one.hi
