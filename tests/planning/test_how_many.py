"""How many more fit: what requesting one by one says, without doing so."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from residua import mechanisms as m
from residua.filters import amounts

FILTERS = [
    rz.PureFilter(eps=1.0),
    rz.BasicFilter(eps=1.0, delta=1e-6),
    rz.RenyiFilter(alpha=8.0, rho=0.4),
    rz.RenyiCurveFilter({2.0: 0.05, 16.0: 0.5}),
    rz.ZcdpFilter(rho=0.05),
    rz.ApproximateZcdpFilter(eps=1.0, delta=1e-6),
    rz.ApproximateZcdpFilter(1.0, 1e-6, delta_conversion=5e-7, conversion="whitehouse"),
    rz.GdpFilter(mu=0.7),
    rz.RenyiCommitFilter(eps=1.0, delta=1e-6),
]
QUERIES = [
    rz.pure_dp(0.1),
    rz.pure_dp(0.03),
    rz.laplace(scale=3.0, sensitivity=0.7),
    rz.gaussian(sigma=7.0),
    rz.approximate_dp(0.04, 1e-7),
    rz.identity(),
    m.Laplace(scale=30.0),
    m.SubsampledGaussian(sigma=2.0, sampling_rate=0.1),
]


def one_by_one(filter: rz.Filter, queries: list[object], most: int) -> int:
    state, count = filter.state, 0
    while count < most:
        decision = filter.decide(state, queries[count % len(queries)])
        if not decision.admitted:
            break
        state, count = decision.state, count + 1
    return count


@given(st.sampled_from(FILTERS), st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4))
@settings(max_examples=60)
def test_agrees_with_requesting_one_by_one(filter: rz.Filter, queries: list[object]) -> None:
    most = 150
    assert rz.how_many(filter, queries, most=most) == one_by_one(filter, queries, most)


@given(
    left=st.fractions(0, 1, max_denominator=10**40),
    costs=st.lists(st.integers(1, 10**6).map(lambda n: n / 10**6), min_size=1, max_size=3),
)
@settings(max_examples=60)
def test_agrees_from_any_state(left: Fraction, costs: list[float]) -> None:
    filter = rz.PureFilter(eps=1.0)
    state = filter.state_from_json({"kind": "pure", "of": filter.fingerprint, "left": [str(left)]})
    filter.resume(state)
    queries = [rz.pure_dp(cost) for cost in costs]
    assert rz.how_many(filter, queries, most=300) == one_by_one(filter, queries, 300)


@pytest.mark.parametrize("mu", [0.3, 0.71, 2.0])
@pytest.mark.parametrize(
    "queries",
    [
        [rz.pure_dp(0.11)],
        [rz.laplace(scale=9.0), rz.pure_dp(0.07)],
        [rz.gaussian(sigma=20.0), rz.laplace(scale=12.0), rz.identity()],
        [m.Gdp(mu=0.05), m.Laplace(scale=11.0)],
        [rz.approximate_dp(0.1, 1e-9)],
    ],
)
def test_agrees_where_costs_fall_with_what_is_left(mu: float, queries: list[object]) -> None:
    filter = rz.GdpResidueFilter(mu)
    assert rz.how_many(filter, queries, most=400) == one_by_one(filter, queries, 400)


@pytest.mark.parametrize(
    "filter",
    [
        rz.PlanFilter(1.0, 1e-6, [rz.pure_dp(0.1)] * 12),
        rz.MenuFilter(1.0, 1e-6, [rz.pure_dp(0.1), rz.gaussian(sigma=20.0)]),
        rz.AutoFilter(1.0, 1e-6),
    ],
    ids=lambda filter: filter.kind,
)
def test_agrees_where_each_request_is_decided(filter: rz.Filter) -> None:
    for queries in ([rz.pure_dp(0.1)], [rz.gaussian(sigma=20.0), rz.pure_dp(0.1)]):
        assert rz.how_many(filter, queries) == one_by_one(filter, queries, 100)


def test_after_a_commit_the_other_filter_counts() -> None:
    filter = rz.RenyiCommitFilter(eps=1.0, delta=1e-6)
    filter.request(rz.pure_dp(0.05))
    filter.commit(filter.largest_gaussian())
    for query in (rz.gaussian(sigma=20.0), rz.pure_dp(0.05)):
        assert rz.how_many(filter, query) == one_by_one(filter, [query], 400) > 0


def test_agrees_where_amounts_are_rounded_on_the_way() -> None:
    """Denominators too long to keep: the closed form steps aside."""
    filter = rz.BasicFilter(eps=1.0, delta=0.5)
    long = [m.Laplace(scale=1e3 + 1e-13 * (2**k - 1)) for k in range(14)]
    parts = [amounts.written(query.scale) for query in long]
    assert not amounts.stay_exact([1 / part for part in parts])
    assert filter.skip(filter.state, long, 10)[0] == 0
    assert rz.how_many(filter, long, most=2000) == one_by_one(filter, long, 2000) < 2000


def test_decimals_are_exact() -> None:
    assert rz.how_many(rz.PureFilter(eps=1.0), rz.pure_dp(0.1)) == 10
    assert rz.how_many(rz.PureFilter(eps=0.3), [rz.pure_dp(0.1), rz.pure_dp(0.2)]) == 2
    assert rz.how_many(rz.ZcdpFilter(rho=0.5), rz.gaussian(sigma=1e6), most=10**13) == 10**12


def test_counts_single_queries_of_a_list() -> None:
    filter = rz.PureFilter(eps=1.1)
    assert rz.how_many(filter, [rz.pure_dp(0.3), rz.pure_dp(0.1)]) == 5


def test_counts_from_the_state_and_spends_nothing() -> None:
    filter = rz.PureFilter(eps=1.0)
    first = filter.state
    filter.request(rz.pure_dp(0.55))
    now = filter.state
    assert rz.how_many(filter, rz.pure_dp(0.1)) == 4
    assert rz.how_many(filter, rz.pure_dp(0.1), state=first) == 10
    assert filter.state == now and len(filter.history) == 1


def test_ends_at_most() -> None:
    assert rz.how_many(rz.PureFilter(eps=1.0), rz.identity(), most=7) == 7
    assert rz.how_many(rz.PureFilter(eps=1.0), [rz.pure_dp(0.1)] * 3, most=7) == 7
    assert rz.how_many(rz.PureFilter(eps=1.0), rz.pure_dp(0.1), most=0) == 0


def test_any_rule_is_asked_one_by_one() -> None:
    one = rz.pure_dp(0.1)
    rule = rz.UpdateFilter(5 * one, lambda B, L: (sum(B.terms.values()) - 1) * one)
    assert rz.how_many(rule, one) == one_by_one(rule, [one], 20) == 5


def test_relation_is_passed_on() -> None:
    filter, query = rz.RenyiFilter(alpha=4.0, rho=2.0), m.SubsampledGaussian(1.0, 0.1)
    assert rz.how_many(filter, query, relation="replace-one") < rz.how_many(filter, query)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rz.how_many("pure", rz.pure_dp(0.1)), "filter must be a filter, got 'pure'"),
        (lambda: rz.how_many(rz.PureFilter(1.0), []), "at least one query"),
        (lambda: rz.how_many(rz.PureFilter(1.0), [1.0]), r"query\[0\] must be a Pld or a mech"),
        (lambda: rz.how_many(rz.PureFilter(1.0), rz.pure_dp(0.1), most=-1), "most must be"),
        (
            lambda: rz.how_many(
                rz.PureFilter(1.0), rz.pure_dp(0.1), state=rz.PureFilter(2.0).state
            ),
            "state must be a state of",
        ),
    ],
)
def test_bad_arguments_are_named(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()
