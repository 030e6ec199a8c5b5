"""Recommendations: what is promised of the filter and the noise is so."""

import pytest

import residua as rz
from residua import mechanisms as m
from residua.planning.comparison import count_admitted
from residua.planning.workload import Workload

QUICK = ["basic", "gdp_residue", "renyi", "plan"]


def test_the_filter_that_admits_most() -> None:
    found = rz.recommend(1.0, 1e-6, rz.gaussian(sigma=20.0), filters=QUICK)
    (row,) = found.comparison.rows
    assert found.filter.kind == "gdp_residue" and found.noise == 1.0
    assert max(row.admitted) == rz.how_many(found.filter, rz.gaussian(sigma=20.0)) == row.optimum
    assert f"admits {row.optimum} of the {row.optimum}" in found.reason


def test_of_equals_the_one_that_rests_on_less() -> None:
    found = rz.recommend(1.0, 1e-6, rz.pure_dp(0.25), filters=QUICK)
    (row,) = found.comparison.rows
    counts = dict(zip(found.comparison.filters, row.admitted, strict=True))
    assert counts["basic"] == counts["plan"] and found.filter.kind == "basic"


def test_noise_for_all_of_it() -> None:
    """52 do not fit as they are; with the noise that is found they do, with less they do not."""
    query = rz.laplace(scale=10.0)
    found = rz.recommend(1.0, 1e-6, query, n=52, filters=QUICK)
    ((turned, times),) = found.queries
    assert times == 52 and found.noise > 1.0 and "known in advance" in found.reason
    for _ in range(52):
        assert found.filter.request(turned).admitted
    total = 52 * turned
    assert max(total.delta(1.0), total.reverse().delta(1.0)) <= 1e-6
    less = 52 * rz.laplace(scale=10.0 * found.noise * 0.999)
    assert less.delta_bounds(1.0).lo > 1e-6


def test_noise_for_a_filter_that_is_no_plan() -> None:
    found = rz.recommend(1.0, 1e-6, rz.laplace(scale=10.0), n=30, filters=["basic", "gdp_residue"])
    ((turned, _),) = found.queries
    assert found.filter.kind in found.reason and found.filter.kind != "plan"
    assert rz.how_many(found.filter, turned) >= 30
    less = rz.laplace(scale=10.0 * found.noise * 0.999)
    assert rz.how_many(found.filter, less) < 30


def test_several_kinds_turn_together() -> None:
    queries = [rz.laplace(scale=10.0), rz.mechanisms.Gaussian(sigma=15.0)]
    found = rz.recommend(1.0, 1e-6, queries, n=4, filters=["basic", "plan"])
    kinds = list(dict.fromkeys(run.query for run in found.queries))
    assert len(found.queries) == 8 and len(kinds) == 2
    workload = rz.Workload("turned", found.queries)
    assert count_admitted(found.filter, workload, 100) == 8


def test_what_fits_keeps_its_noise() -> None:
    found = rz.recommend(1.0, 1e-6, rz.gaussian(sigma=20.0), n=10, filters=QUICK)
    assert found.noise == 1.0 and "All of it fits" in found.reason
    assert found.to_dict()["filter"]["kind"] == found.filter.kind
    assert found.comparison.table() in str(found) and "<table>" in found._repr_html_()
    assert "<polyline" in found._repr_html_()


def test_what_cannot_be() -> None:
    with pytest.raises(rz.ArgumentError, match="workload must be a single one"):
        rz.recommend(1.0, 1e-6, "suite")
    with pytest.raises(rz.ArgumentError, match="workload must have noise that can be scaled"):
        fixed = rz.from_pair([0.6, 0.4], [0.4, 0.6])
        rz.recommend(0.6, 1e-6, fixed, n=9, filters=["basic"])
    with pytest.raises(rz.ArgumentError, match="n must be positive"):
        rz.recommend(1.0, 1e-6, rz.pure_dp(0.1), n=0)


def test_a_plan_under_another_relation_has_no_description() -> None:
    query = m.SubsampledGaussian(2.0, 0.2)
    found = rz.recommend(1.0, 1e-3, query, n=4, filters=["plan"], relation="replace-one")
    assert found.noise > 1.0
    assert found.to_dict()["filter"] is None
    told = Workload("workload", found.queries)
    assert count_admitted(found.filter, told, 10, "replace-one") == 4
