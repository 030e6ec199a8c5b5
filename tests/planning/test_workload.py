"""Workloads: what they mean, and their files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

import residua as rz
from residua import mechanisms as m
from residua.planning.suite import draw_workload
from residua.planning.workload import Run, exceeds, optimum

WEEK = {
    "name": "week",
    "repeat": True,
    "queries": [
        {"kind": "laplace", "scale": 10.0, "sensitivity": 1.0},
        {"mechanism": {"kind": "gaussian", "sigma": 20.0, "sensitivity": 1.0}, "repeat": 3},
    ],
    "expected": [{"kind": "pure_dp", "eps": 0.1}],
}


def test_file_says_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "week.json"
    path.write_text(json.dumps(WEEK))
    week = rz.Workload.from_file(path)
    assert week.queries == (Run(m.Laplace(10.0)), Run(m.Gaussian(sigma=20.0), 3))
    assert week.expected == (Run(m.PureDp(0.1)),) and week.repeat
    assert week.to_dict() == WEEK
    assert rz.Workload.from_json(json.dumps(week.to_dict())) == week


def test_name_of_the_file_stands_in(tmp_path: Path) -> None:
    path = tmp_path / "monday.json"
    path.write_text('{"queries": [{"kind": "pure_dp", "eps": 0.1, "steps": 3}]}')
    monday = rz.Workload.from_file(path)
    assert (monday.name, monday.repeat, monday.longest) == ("monday", False, 1)


def test_order_of_the_queries() -> None:
    week = rz.Workload.from_json(WEEK)
    asked = [query for query, times in week.runs(10) for _ in range(times)]
    a, b = m.Laplace(10.0), m.Gaussian(sigma=20.0)
    assert asked == list(itertools.islice(itertools.cycle([a, b, b, b]), 10))
    once = rz.Workload("once", (a, (b, 3)))
    assert list(once.runs(100)) == [Run(a), Run(b, 3)]
    assert once.longest == 4 and week.longest is None


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 11])
def test_composition_of_a_prefix(count: int) -> None:
    week = rz.Workload.from_json(WEEK)
    total = rz.identity()
    for query, times in week.runs(count):
        total += times * query.pld()
    assert week.composed(count) == total


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[]", "workload must be a JSON object"),
        ("{", "workload must be valid JSON"),
        ('{"name": "x"}', "workload needs the field 'queries'"),
        ('{"queries": []}', "queries must be non-empty"),
        ('{"queries": {}}', "queries must be a list of queries"),
        ('{"queries": [1]}', "mechanism must be a JSON object, got 1"),
        ('{"queries": [{"kind": "laplace"}]}', "laplace needs the field 'scale'"),
        ('{"queries": [{"mechanism": {"kind": "pure_dp", "eps": 1}, "repeat": 0}]}', "between 1"),
        ('{"queries": [{"mechanism": {"kind": "pure_dp", "eps": 1}, "times": 2}]}', "'times'"),
        ('{"queries": [{"kind": "pure_dp", "eps": 1}], "repeat": 1}', "repeat must be true or"),
        ('{"queries": [{"kind": "pure_dp", "eps": 1}], "name": ""}', "name must be text"),
        ('{"queries": [{"kind": "pure_dp", "eps": 1}], "sort": 1}', "unknown field 'sort'"),
    ],
)
def test_bad_files_are_refused_by_name(given: str, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        rz.Workload.from_json(given)


def test_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(rz.ArgumentError, match="workload must be a readable file"):
        rz.Workload.from_file(tmp_path / "none.json")


# -- the optimum ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["pure", "laplace", "mixed"])
@pytest.mark.parametrize("shape", ["bursts", "drifting"])
@pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-6), (3.0, 1e-6)])
def test_optimum_is_the_last_that_fits(family: str, shape: str, eps: float, delta: float) -> None:
    """Looked for one by one: the curve itself at both ends, as intervals."""
    workload = draw_workload(eps, delta, 11, family=family, shape=shape)
    found = optimum(eps, delta, workload)
    for count in (found, found + 1):
        total = workload.composed(count)
        within = all(float(pld.delta_bounds(eps).hi) <= delta for pld in (total, total.reverse()))
        assert within == (count == found)
        assert exceeds(total, eps, delta) != within


def test_optimum_looks_at_both_ends() -> None:
    """Asymmetric: it gives everything away with probability 0.1, but one way only."""
    loss = rz.from_pair([0.9, 0.1], [1.0, 0.0])
    assert not loss.is_symmetric
    forth = min(n for n in range(1, 60) if (n * loss).delta(0.5) > 0.2)
    back = min(n for n in range(1, 60) if (n * loss.reverse()).delta(0.5) > 0.2)
    assert forth != back
    for one in (loss, loss.reverse()):
        workload = rz.Workload("asymmetric", (one,), repeat=True)
        assert optimum(0.5, 0.2, workload) == min(forth, back) - 1


def test_optimum_ends_with_the_workload_or_at_most() -> None:
    small = rz.pure_dp(0.001)
    assert optimum(1.0, 1e-6, rz.Workload("few", ((small, 7),))) == 7
    assert optimum(1.0, 1e-6, rz.Workload("many", (small,), repeat=True), most=9) == 9
    assert optimum(1.0, 1e-6, rz.Workload("large", (rz.pure_dp(2.0),), repeat=True)) == 0
