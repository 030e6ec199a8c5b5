"""Plans: what is taken off must cover the query, and what is left at the start must fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.provable import MOST_PLANNED, unprovable, unprovable_filter
from residua.verify import verify_records
from residua.verify.descriptions.configurations import fingerprint
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_first, prove_step
from residua.verify.proofs.verdict import Proof
from verify.written_chains import described, plain, written_by

pytestmark = pytest.mark.needs("flint")

STEP = m.SubsampledGaussian(1.0, 0.01)
MIXED = rz.PlanFilter(
    3.0, 1e-6,
    [m.SelfComposed(STEP, 200), m.Gaussian(sigma=20.0), m.Laplace(20.0), m.Laplace(20.0)],
)  # fmt: skip
RUNS: list[tuple[rz.PlanFilter, list[m.Mechanism]]] = [
    (MIXED, [STEP, m.SelfComposed(STEP, 50), m.Gaussian(sigma=40.0), m.Laplace(20.0)]),
    (MIXED, [m.SelfComposed(m.SubsampledGaussian(1.1, 0.009), 9), m.Laplace(25.0)]),
    (MIXED, [m.PoissonSampled(m.Gaussian(sigma=1.0), 0.01), m.PureDp(0.01), m.PureDp(0.0)]),
    (MIXED, [m.Composed((STEP, m.Laplace(20.0), m.Gaussian(sigma=30.0)))]),
    (
        rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.1), m.PureDp(0.05)] * 4),
        [m.Laplace(20.0), m.PureDp(0.15), m.SelfComposed(m.PureDp(0.05), 2)],
    ),
    (rz.PlanFilter(1.0, 1e-6, [m.ApproximateDp(0.3, 1e-7)] * 2), [m.Gaussian(sigma=40.0)]),
    (
        rz.PlanFilter(1.0, 1e-6, [m.Gaussian(sigma=10.0)] * 3),
        [m.Gaussian(sigma=20.0), m.PureDp(0.03)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("filter", "queries"), RUNS)
def test_honest_runs_are_proven(filter: rz.PlanFilter, queries: list[m.Mechanism]) -> None:
    chain = written_by(filter, queries)
    report = verify_records({chain.name: chain.records}, chain.tables)
    assert report.ok, report.text.split("What this")[0]
    assert all(record.admitted for record in chain.records[1:])
    assert report.proven == len(queries) + 1


def _step(before: Any, after: Any, query: Any, filter: rz.PlanFilter = MIXED) -> Proof:
    asked = StepQuery(described(query), "add-remove", {}, {})
    return prove_step(filter.to_dict(), before, after, asked)


def _states(query: m.Mechanism, filter: rz.PlanFilter = MIXED) -> tuple[Any, Any]:
    decision = filter.decide(filter.initial(), query)
    assert decision.admitted
    return plain(filter, filter.initial()), plain(filter, decision.state)


def test_queries_that_pay_less_are_not_proven() -> None:
    for query in (STEP, m.Gaussian(sigma=40.0), m.Laplace(20.0), m.SelfComposed(STEP, 3)):
        before, after = _states(query)
        assert _step(before, after, query).verdict == "proven"
        assert _step(before, before, query).verdict == "refuted"
        cheaper = m.SelfComposed(query, 2)
        assert _step(before, after, cheaper).verdict != "proven"
    before, after = _states(m.Gaussian(sigma=40.0))
    assert (
        _step(before, {**after, "variance": "0.00188"}, m.Gaussian(sigma=40.0)).verdict != "proven"
    )


def test_one_part_of_a_query_does_not_pay_for_another() -> None:
    query = m.Composed((STEP, m.Laplace(20.0)))
    before, after = _states(query)
    for place in range(2):
        forged = json.loads(json.dumps(after))
        forged["left"][place] += 1
        assert _step(before, forged, query).verdict != "proven"


def test_more_is_never_left() -> None:
    before, after = _states(STEP)
    for forged in ({**before, "left": [201, 2]}, {**before, "variance": "1"}):
        assert _step(before, forged, STEP).verdict == "refuted"
        assert prove_first(MIXED.to_dict(), forged, {}).verdict == "refuted"
    for left in ([200], [200, 2, 0], [200, -1], ["200", 2], None):
        forged = {**after, "left": left}
        assert _step(before, forged, STEP).verdict == "refuted"
        assert prove_first(MIXED.to_dict(), forged, {}).verdict == "refuted"


def test_a_first_state_must_fit() -> None:
    filter = rz.PlanFilter(1.0, 1e-6, [m.SelfComposed(m.PureDp(0.05), 40)])
    state = plain(filter, filter.initial())
    assert state["left"] == [26]
    assert prove_first(filter.to_dict(), state, {}).verdict == "proven"
    assert prove_first(filter.to_dict(), {**state, "left": [27]}, {}).verdict == "refuted"


@pytest.mark.parametrize(
    "plan",
    [
        [],
        [{"kind": "pure_dp", "eps": 0.1}] * 2,
        [{"mechanism": {"kind": "pure_dp", "eps": 0.1}, "repeat": 1}],
        [{"mechanism": {"kind": "pure_dp", "eps": 0.1}, "repeat": 2.0}],
        [{"mechanism": {"kind": "pure_dp", "eps": 0.1}, "repeat": 2, "more": 1}],
        [{"mechanism": {"kind": "pure_dp", "eps": 0.1}}],
        [{"kind": "self_composed", "count": 2, "mechanism": {"kind": "pure_dp", "eps": 0.1}}],
    ],
)
def test_plans_that_are_not_as_written_are_refuted(plan: Any) -> None:
    config = {"kind": "plan", "eps": 1.0, "delta": 1e-6, "plan": plan}
    state = {"kind": "plan", "of": fingerprint(config), "left": [0], "variance": "0"}
    assert prove_first(config, state, {}).verdict == "refuted"


def test_what_can_be_proven_under_a_plan() -> None:
    config = MIXED.to_dict()

    def proven(query: m.Mechanism, relation: str = "add-remove") -> bool:
        return unprovable(query.to_dict(), config, relation) is None

    assert proven(STEP) and proven(m.SelfComposed(STEP, 1000)) and proven(m.Gaussian(sigma=0.1))
    assert proven(m.SubsampledGaussian(1.0, 0.005)) and proven(m.SelfComposed(m.Laplace(21.0), 3))
    assert proven(m.Composed((STEP, m.PureDp(0.3))))
    assert not proven(m.SubsampledGaussian(1.0, 0.02)) and not proven(STEP, "replace-one")
    assert not proven(m.SelfComposed(m.Laplace(19.0), 2))
    long = rz.PlanFilter(3.0, 1e-6, [m.SelfComposed(m.PureDp(0.003), MOST_PLANNED + 1)])
    assert "at most" in (unprovable_filter(long.to_dict()) or "")
    small = rz.PlanFilter(8.0, 1e-6, [m.SelfComposed(m.SubsampledGaussian(1.0, 1e-5), 1000)])
    assert "eps / total variation" in (unprovable_filter(small.to_dict()) or "")
