"""Counting that ends early: fast, and a proven lower bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.filters import counting
from residua.planning import count_more

TINY = m.SubsampledGaussian(sigma=2.0, sampling_rate=0.0005)


def auto_after(first: Any) -> rz.AutoFilter:
    filter = rz.AutoFilter(1.0, 1e-6)
    assert filter.spend(first)
    return filter


@pytest.mark.parametrize(
    ("make", "query", "least"),
    [
        (lambda: auto_after(TINY), TINY, 100_000),
        (lambda: auto_after(m.Gaussian(sigma=20.0)), TINY, 100_000),
        (lambda: rz.ApproximateGdpResidueFilter.within(1.0, 1e-6), TINY, 50_000),
        (lambda: rz.TargetResidueFilter(1.0, 1e-6, 0.25, 0.03), TINY, 1),
        (lambda: auto_after(m.PureDp(0.1)), m.Laplace(5000.0), 50_000),
    ],
    ids=[
        "auto after tiny",
        "auto after gaussian",
        "gdp residue",
        "target residue",
        "auto, laplace",
    ],
)
def test_tiny_queries_are_counted_within_seconds(
    make: Callable[[], rz.Filter], query: Any, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    filter = make()
    monkeypatch.setattr(counting, "PATIENCE", 1.0)
    start = time.thread_time()
    copies, ended = count_more(filter, query)
    assert ended and copies >= least
    assert time.thread_time() - start < 20.0, "5 s on a machine that is not busy"


@pytest.mark.parametrize("times", [3, 20])
def test_a_lower_bound_is_at_most_what_requesting_one_by_one_gives(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    union = rz.UnionFilter(
        [rz.RenyiCommitFilter(1.0, 1e-7, 20.0), rz.TargetResidueFilter(1.0, 1e-6, 0.1, 0.05)]
    )
    for query in (m.SubsampledGaussian(3.0, 0.05), m.Laplace(80.0)):
        exact = counting.admitted(union, None, (query,), 500)[0]
        assert count_more(union, query, most=500) == (exact, exact == 500)
        assert rz.how_many(union, query, most=500) == exact
        for name in ("MOST_SHOWN", "MOST_RESIDUES"):
            monkeypatch.setattr(counting, name, times)
        for shown in (False, True):
            copies, ended = counting.count_decided(
                union, union.initial(), (query,), 500, shown=shown
            )
            assert ended and times <= copies <= exact
        monkeypatch.undo()


def test_a_count_that_did_not_end_is_exact() -> None:
    filter = rz.PureFilter(1.0)
    assert count_more(filter, m.PureDp(0.25)) == (4, False)
    assert count_more(filter, m.PureDp(0.25), most=3) == (3, True)
    with pytest.raises(rz.ArgumentError, match="most must be"):
        count_more(filter, m.PureDp(0.25), most=-1)
