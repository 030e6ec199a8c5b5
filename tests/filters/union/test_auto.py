"""The automatic filter: it opens into a union at the first query and is that union from then on."""

from __future__ import annotations

import itertools
import json
import pickle
import random
import statistics
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from residua import mechanisms as m
from residua.filters.amounts import written
from residua.filters.query import loss_of
from residua.filters.union.auto import COMPONENTS, Open, components_for

QUERIES: list[m.Mechanism] = [
    m.PureDp(0.05), m.PureDp(0.2), m.Laplace(8.0), m.Gaussian(sigma=20.0), m.Gaussian(sigma=60.0),
    m.ApproximateDp(0.1, 3e-8), m.Zcdp(0.004), m.SubsampledGaussian(1.0, 0.01),
    m.SelfComposed(m.SubsampledGaussian(1.0, 0.01), 40), m.PureDp(0.0),
]  # fmt: skip
TARGETS = [(1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5), (0.1, 1e-9), (1.0, 1e-30), (2.0, 0.3)]


@pytest.mark.parametrize(("eps", "delta"), TARGETS)
def test_components_share_delta(eps: float, delta: float) -> None:
    for query in QUERIES:
        found = components_for(eps, delta, (loss_of(query),))
        assert all(each.kind in COMPONENTS and each.eps <= eps for each in found)  # type: ignore[attr-defined]
        deltas = [written(getattr(each, "delta", 0.0)) for each in found]
        assert 0 < sum(deltas, Fraction(0)) <= written(delta)


def test_components_do_not_depend_on_the_order_of_queries_in_a_loss() -> None:
    one, other = (m.SubsampledGaussian(sigma, 0.01).pld() for sigma in (1.0, 5.0))
    found = []
    for loss in (one + other, other + one):
        components_for.cache_clear()  # type: ignore[attr-defined]
        found.append(components_for(1.0, 1e-6, (loss,)))
    assert found[0] == found[1]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(QUERIES), min_size=1, max_size=12))
def test_it_decides_as_the_union_of_its_components(queries: list[m.Mechanism]) -> None:
    auto, union = rz.AutoFilter(1.0, 1e-6), None
    for query in queries:
        checked = auto.check(query)
        decision = auto.spend(query)
        assert checked.admitted == decision.admitted and checked.stops == decision.stops
        assert checked.admitted == auto.admits(decision._before, query)
        state = auto.state
        assert isinstance(state, Open)
        if union is None and state.filters:
            union = rz.UnionFilter(state.filters, 1.0)
        if union is None:
            assert state == auto.initial()
            continue
        twin = union.spend(query)
        assert twin.admitted == decision.admitted and twin.stops == decision.stops
        assert union.filters == state.filters and union.state.parts == state.parts  # type: ignore[attr-defined]
        assert union.remaining == auto.remaining


def test_a_query_without_loss_opens_nothing() -> None:
    auto = rz.AutoFilter(1.0, 1e-6)
    assert auto.spend(m.PureDp(0.0)).reason.startswith("admitted: PureDp(eps=0.0) costs nothing")
    assert not auto.spend(m.PureDp(5.0)).admitted
    assert auto.state == auto.initial()


def test_it_answers_before_the_first_query() -> None:
    auto = rz.AutoFilter(1.0, 1e-6)
    assert auto.capacity == auto.remaining == rz.pure_dp(1.0)
    assert auto.guarantee == rz.approximate_dp(1.0, 1e-6)
    assert auto.check(m.Gaussian(sigma=20.0)).admitted
    refusal = auto.check(m.PureDp(2.0))
    assert not refusal.admitted and refusal.largest == m.PureDp(1.0)
    assert auto.state == auto.initial()


@pytest.mark.parametrize("query", [m.PureDp(0.05), m.Gaussian(sigma=20.0), m.Zcdp(0.002)])
def test_how_many_is_what_requesting_one_by_one_gives(query: m.Mechanism) -> None:
    auto, count = rz.AutoFilter(1.0, 1e-6), 0
    expected = rz.how_many(auto, query)
    while auto.spend(query).admitted:
        count += 1
    assert count == expected > 5


def test_expected_queries_count_when_components_are_chosen() -> None:
    loses = m.ApproximateDp(0.1, 1e-7)
    plain, told = rz.AutoFilter(3.0, 1e-6), rz.AutoFilter(3.0, 1e-6, expect=[loses])
    for auto in (plain, told):
        assert auto.spend(m.PureDp(0.1)).admitted
    assert plain.state.filters != told.state.filters  # type: ignore[attr-defined]
    assert rz.how_many(told, loses) > rz.how_many(plain, loses)


def test_other_queries_fit_beside_a_plan_of_rare_large_losses() -> None:
    auto = rz.AutoFilter(1.0, 1e-6)
    assert auto.spend(m.SelfComposed(m.SubsampledGaussian(1.46, 0.0383), 11)).admitted
    assert "plan" in {each.kind for each in auto.state.filters}  # type: ignore[attr-defined]
    assert auto.spend(m.Gaussian(sigma=8.45)).admitted
    assert rz.how_many(auto, m.Laplace(41.8)) > 20


def test_states_survive_json_and_pickle_and_stay_short() -> None:
    draw = random.Random(3)
    for target in TARGETS[:3]:
        auto = rz.AutoFilter(*target)
        for _ in range(12):
            text = auto.state_to_json(auto.state)
            assert auto.state_from_json(text) == auto.state and len(text) < 4000
            auto.spend(draw.choice(QUERIES))
        again = pickle.loads(pickle.dumps(auto))
        assert again == auto and again.state == auto.state


def test_states_are_read_strictly() -> None:
    auto = rz.AutoFilter(1.0, 1e-6)
    auto.spend(m.PureDp(0.1))
    data = json.loads(auto.state_to_json(auto.state))
    raised = [{**data["filters"][0], "delta": 9.5e-7}, *data["filters"][1:]]
    wider = [{**data["filters"][0], "eps": 2.0}, *data["filters"][1:]]
    wrong = [
        data | {"filters": raised},
        data | {"filters": wider},
        data | {"filters": data["filters"][::-1]},
        data | {"filters": []},
        data | {"filters": [{"kind": "gdp", "mu": 0.1}] * 2},
        data | {"filters": None},
        data | {"parts": [None] * len(data["parts"])},
        data | {"parts": data["parts"][1:]},
        data | {"parts": []},
        data | {"of": "0" * 16},
        data | {"more": 1},
        {key: value for key, value in data.items() if key != "parts"},
        "[]",
    ]
    for given_ in wrong:
        with pytest.raises(rz.ResiduaError):
            auto.state_from_json(given_)


def test_what_auto_admits_is_within_its_promise() -> None:
    draw = random.Random(11)
    for _ in range(6):
        auto, spent = rz.AutoFilter(1.0, 1e-6), rz.identity()
        for _ in range(25):
            query = draw.choice([q for q in QUERIES if not isinstance(q, m.Zcdp)])
            if auto.spend(query).admitted:
                spent += query.pld()
        assert spent <= rz.approximate_dp(1.0, 1e-6)


def _bounded(draw: random.Random, eps: float) -> m.Mechanism:
    size = float(f"{eps * 10.0 ** draw.uniform(-2.0, 0.0):.4g}")
    return draw.choice(
        [
            m.PureDp(size),
            m.Laplace(1.0 / size),
            m.ExponentialMechanism(size),
            m.DiscreteLaplace(1.0 / size),
            m.Composed((m.PureDp(size / 2), m.Laplace(2.0 / size))),
        ]
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_first_refusal_never_comes_before_that_of_plain_addition(seed: int) -> None:
    draw = random.Random(f"addition and auto {seed}")
    eps = float(f"{10.0 ** draw.uniform(-1.5, 1.0):.3g}")
    auto, pure = rz.AutoFilter(eps, 10.0 ** draw.uniform(-10, -3)), rz.PureFilter(eps)
    for _ in range(50):
        query = _bounded(draw, eps)
        if not pure.spend(query).admitted:
            break
        assert auto.spend(query).admitted, query


CLOSED_FORMS: dict[str, Callable[[float], m.Mechanism]] = {
    "pure": m.PureDp,
    "laplace": lambda eps: m.Laplace(1.0 / eps),
    "gaussian": lambda eps: m.Gaussian(sigma=3.0 / eps),
    "response": lambda eps: m.RandomizedResponse(eps=eps),
    "exponential": m.ExponentialMechanism,
}


def _decision_times(eps: float, kind: str, share: float) -> list[float]:
    """Processor time of a first decision and of the following ones, none decided before.

    Each query is a share of the `eps` that addition would have left.
    """
    auto, left, taken = rz.AutoFilter(eps, 1e-6), eps, []
    for _ in range(9):
        size = float(f"{share * left:.12g}") * (1.0 + 1e-6 * next(_VARIED))
        query, relation = CLOSED_FORMS[kind](size), "replace-one" if kind == "response" else None
        before = time.process_time()
        assert auto.spend(query, relation=relation).admitted
        taken.append(time.process_time() - before)
        left -= size
    return taken


_VARIED = itertools.count()


@pytest.mark.parametrize("eps", [1e-3, 1e-2, 0.1, 1.0, 3.0, 8.0, 20.0])
@pytest.mark.parametrize("kind", CLOSED_FORMS)
def test_decisions_are_fast(eps: float, kind: str) -> None:
    """First decisions take at most 0.3 s of processor time, the next ones a millisecond or two.

    Larger queries take more, as their costs draw on the reserves. Each time is the least of
    several. Limits are for machines half as fast as ours that others use at the same time.
    """
    for share in (1 / 1000, 1 / 50, 1 / 10, 1 / 3):
        runs = [_decision_times(eps, kind, share) for _ in range(3)]
        assert min(run[0] for run in runs) < 0.3
        limit = 0.002 if share < 0.01 else 0.006
        assert statistics.median(map(min, *(run[1:] for run in runs))) < limit, share


@pytest.mark.parametrize(
    ("eps", "delta", "message"),
    [
        (float("nan"), 1e-6, "eps must be between 0.001 and 100, got nan"),
        (0.0, 1e-6, "eps must be between 0.001 and 100, got 0.0"),
        (1000.0, 1e-6, "eps must be between 0.001 and 100, got 1000.0"),
        (1.0, float("nan"), "delta must be at least 1e-30 and below 1, got nan"),
        (1.0, 0.0, "delta must be at least 1e-30 and below 1, got 0.0"),
        (1.0, 1.0, "delta must be at least 1e-30 and below 1, got 1.0"),
    ],
)
def test_an_error_states_the_whole_range_at_once(eps: float, delta: float, message: str) -> None:
    with pytest.raises(rz.ArgumentError) as error:
        rz.AutoFilter(eps, delta)
    assert str(error.value) == message
