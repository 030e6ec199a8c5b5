"""Plans: what is on them is taken off exactly, and what is not costs the least that is proven."""

from __future__ import annotations

import json
import random
import time
from fractions import Fraction

import pytest

import residua as rz
from residua import mechanisms as m

STEP = m.SubsampledGaussian(1.0, 0.01)
NOISIER = m.SubsampledGaussian(1.2, 0.008)


def test_a_plan_is_kept_to_the_last_query() -> None:
    query = rz.pure_dp(0.05)
    filter = rz.PlanFilter(1.0, 1e-6, [query] * 40)
    assert filter.kept == 26 and filter.guarantee == 26 * query
    for _ in range(26):
        assert filter.spend(query).admitted
    assert not filter.spend(query).admitted


def test_repeated_queries_are_written_once() -> None:
    one = rz.PlanFilter(3.0, 1e-6, [m.SelfComposed(STEP, 3), m.PureDp(0.1), m.PureDp(0.1)])
    other = rz.PlanFilter(
        3.0, 1e-6, [STEP, m.SelfComposed(m.SelfComposed(STEP, 2), 1), 2 * rz.pure_dp(0.1)]
    )
    assert one == other and one.plan == (m.SelfComposed(STEP, 3), m.SelfComposed(m.PureDp(0.1), 2))
    plan = json.loads(one.to_json())["plan"]
    assert plan == [
        {"mechanism": STEP.to_dict(), "repeat": 3},
        {"mechanism": {"kind": "pure_dp", "eps": 0.1}, "repeat": 2},
    ]
    assert rz.Filter.from_json(one.to_json()) == one
    long = '{"kind":"plan","eps":3.0,"delta":1e-06,"plan":[{"kind":"self_composed","count":2,'
    long += '"mechanism":{"kind":"pure_dp","eps":0.1}},{"mechanism":{"kind":"pure_dp","eps":0.1}}]}'
    assert rz.Filter.from_json(long).plan == (m.SelfComposed(m.PureDp(0.1), 3),)  # type: ignore[attr-defined]


@pytest.mark.parametrize("entry", ['{"mechanism":{"kind":"pure_dp","eps":0.1},"repeat":%s}'])
@pytest.mark.parametrize("repeat", ["0", "-1", "1.5", '"2"', "null", "true"])
def test_bad_repeats_are_errors(entry: str, repeat: str) -> None:
    with pytest.raises(rz.ResiduaError, match="repeat"):
        rz.Filter.from_json(
            '{"kind":"plan","eps":1.0,"delta":1e-06,"plan":[%s]}' % (entry % repeat)
        )


def test_blocks_of_any_size_are_on_the_plan() -> None:
    filter = rz.PlanFilter(3.0, 1e-6, [m.SelfComposed(STEP, 3000)])
    assert 2000 < filter.kept < 2100
    draw, left = random.Random(1), filter.kept
    while left:
        block = min(left, draw.randrange(1, 300))
        assert filter.spend(m.SelfComposed(STEP, block) if block > 1 else STEP).admitted
        left -= block
        assert filter.state.left == (left,)  # type: ignore[attr-defined]
    assert not filter.spend(STEP).admitted


def test_gaussians_are_charged_by_their_variance() -> None:
    filter = rz.PlanFilter(8.0, 1e-5, [m.Gaussian(sigma=1.0)])
    for _ in range(4):
        assert filter.spend(m.Gaussian(sigma=2.0)).admitted
    assert filter.state.variance == 0 and not filter.spend(m.Gaussian(sigma=1e6)).admitted  # type: ignore[attr-defined]
    assert filter.spent == rz.gaussian(sigma=1.0) and filter.remaining == rz.identity()


def test_compositions_are_taken_apart() -> None:
    both = m.Composed((m.Laplace(20.0), m.Gaussian(sigma=40.0)))
    filter = rz.PlanFilter(1.0, 1e-6, [both] * 3)
    assert filter.kept == 3
    for query in (m.Laplace(20.0), m.Gaussian(sigma=40.0), m.SelfComposed(both, 2)):
        assert filter.spend(query).admitted
    state = filter.state
    assert state.left == (0,) and state.variance == 0  # type: ignore[attr-defined]


def test_decisions_on_the_plan_are_fast() -> None:
    filter = rz.PlanFilter(3.0, 1e-6, [m.SelfComposed(STEP, 1500), m.Gaussian(sigma=10.0)])
    queries = [STEP, m.SelfComposed(STEP, 2), m.Gaussian(sigma=200.0)]
    for query in queries:
        filter.spend(query)
    start = time.perf_counter()
    for _ in range(100):
        for query in queries:
            assert filter.spend(query).admitted
    assert (time.perf_counter() - start) / 300 < 1e-3


def test_what_is_dominated_takes_as_many_of_what_dominates_it() -> None:
    filter = rz.PlanFilter(3.0, 1e-6, [m.SelfComposed(STEP, 100), m.SelfComposed(m.PureDp(0.1), 5)])
    assert filter.spend(m.SelfComposed(NOISIER, 7)).cost == 7 * STEP.pld()
    assert filter.spend(m.Composed((NOISIER, m.PureDp(0.09)))).cost == STEP.pld() + rz.pure_dp(0.1)
    assert filter.spend(m.Laplace(10.0)).cost == rz.pure_dp(0.1)
    assert not filter.spend(m.SubsampledGaussian(0.9, 0.01)).admitted


def test_what_is_not_on_the_plan_takes_the_smallest_part() -> None:
    filter = rz.PlanFilter(1.0, 1e-6, [rz.pure_dp(0.1), rz.pure_dp(0.05)] * 4)
    covered = filter.spend(rz.laplace(20.0))
    assert covered.cost == rz.pure_dp(0.05)
    larger = filter.spend(rz.pure_dp(0.15))
    assert larger.admitted
    assert larger.remaining + rz.pure_dp(0.15) <= covered.remaining
    assert not filter.spend(rz.gaussian(sigma=20.0)).admitted
    assert filter.state_from_json(filter.state_to_json(filter.state)) == filter.state


def test_a_bounded_query_takes_its_residue_of_planned_gaussians() -> None:
    filter = rz.PlanFilter(1.0, 1e-6, [m.Gaussian(sigma=10.0)] * 4)
    before = filter.state.variance  # type: ignore[attr-defined]
    residue = rz.GdpResidueFilter(0.2)
    assert residue.spend(m.PureDp(0.05)).admitted and filter.spend(m.PureDp(0.05)).admitted
    assert before == Fraction(1, 25)
    assert filter.state.variance == residue.state.left[0]  # type: ignore[attr-defined]


def test_gaussian_noise_may_take_a_planned_point() -> None:
    filter = rz.PlanFilter(1.0, 1e-6, [m.ApproximateDp(0.3, 1e-7), m.ApproximateDp(0.2, 1e-7)])
    assert filter.spend(m.Gaussian(sigma=40.0)).cost == rz.approximate_dp(0.2, 1e-7)


def test_every_step_leaves_a_composition_below_the_budget() -> None:
    draw = random.Random(5)
    plan = [m.PureDp(0.1), m.Laplace(20.0), m.Gaussian(sigma=20.0), m.PureDp(0.05)]
    asked = [*plan, m.PureDp(0.07), m.Laplace(30.0), m.Gaussian(sigma=50.0), m.Gaussian(sigma=9.0),
             m.Composed((m.PureDp(0.05), m.Gaussian(sigma=60.0)))]  # fmt: skip
    for _ in range(4):
        filter = rz.PlanFilter(1.0, 1e-6, [draw.choice(plan) for _ in range(8)])
        spent = rz.identity()
        for _ in range(15):
            query = draw.choice(asked)
            if filter.spend(query).admitted:
                spent += query.pld()
        assert spent <= filter.guarantee <= rz.approximate_dp(1.0, 1e-6)


@pytest.mark.parametrize(
    "queries",
    [[STEP], [STEP, m.Gaussian(sigma=100.0)], [m.SelfComposed(STEP, 7), NOISIER], [m.PureDp(0.01)]],
)
def test_how_many_is_what_requesting_one_by_one_gives(queries: list[m.Mechanism]) -> None:
    filter = rz.PlanFilter(3.0, 1e-6, [m.SelfComposed(STEP, 150), m.Gaussian(sigma=20.0)])
    expected, count = rz.how_many(filter, queries), 0
    while filter.spend(queries[count % len(queries)]).admitted:
        count += 1
    assert count == expected > 0


def test_states_are_read_strictly() -> None:
    filter = rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.1), m.Gaussian(sigma=20.0)])
    data = json.loads(filter.state_to_json(filter.initial()))
    assert data["left"] == [1] and data["variance"] == "0.0025"
    wrong = [
        data | {"left": [2]},
        data | {"left": [-1]},
        data | {"left": [1, 0]},
        data | {"left": ["1"]},
        data | {"variance": "0.0026"},
        data | {"variance": 0.0025},
        data | {"variance": None},
        data | {"more": 0},
        {key: value for key, value in data.items() if key != "variance"},
    ]
    for given in wrong:
        with pytest.raises(rz.ResiduaError):
            filter.state_from_json(given)
