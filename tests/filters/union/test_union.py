"""Unions of filters: what they admit, what they stop, and what they do not accept."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from filters.catalogue import spend_one
from residua import mechanisms as m
from residua.filters.union.union import Parts
from residua.sizes import MOST_COMPONENTS


def make() -> rz.UnionFilter:
    sums = [rz.PureFilter(1.0), rz.BasicFilter(1.0, 1e-7), rz.ZcdpFilter(0.02)]
    return rz.UnionFilter([*sums[:2], rz.GdpResidueFilter(0.2), sums[2]])


def twins(union: rz.UnionFilter) -> list[rz.Filter]:
    """The components by themselves, with sessions of their own."""
    return [rz.Filter.from_json(each.to_json()) for each in union.filters]


QUERIES: list[m.Mechanism] = [
    m.PureDp(0.05), m.PureDp(0.2), m.PureDp(0.7), m.Laplace(8.0), m.Gaussian(sigma=20.0),
    m.Gaussian(sigma=60.0), m.ApproximateDp(0.1, 3e-8), m.Zcdp(0.004), m.Gaussian(sigma=0.5),
]  # fmt: skip
SEQUENCES = st.lists(st.sampled_from(QUERIES), min_size=1, max_size=25)


# -- the rule -----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(SEQUENCES)
def test_the_rule_as_the_theorem_states_it(queries: Sequence[m.Mechanism]) -> None:
    """Against its components, each by itself, stopped at the first query that it does not admit."""
    union = make()
    alone = dict(enumerate(twins(union)))
    for query in queries:
        admitting = {i for i, each in alone.items() if _admits(each, query)}
        before = union.state
        names = {union.names[i] for i in alone.keys() - admitting}
        decision = union.spend(query)
        assert decision.admitted == bool(admitting)
        if not admitting:
            assert union.state == before == decision.state and decision.stops == ()
            continue
        assert set(decision.stops) == names
        alone = {i: each for i, each in alone.items() if i in admitting}
        for each in alone.values():
            assert each.spend(query).admitted
        state = union.state
        assert isinstance(state, Parts) and state.live == tuple(alone)
        assert [state.parts[i] for i in alone] == [each.state for each in alone.values()]


def _admits(filter: rz.Filter, query: m.Mechanism) -> bool:
    """A step that has no proof under a component counts as refused there."""
    from residua.provable import unprovable

    if unprovable(query.to_dict(), filter.to_dict(), "add-remove") is not None:
        return False
    return filter.check(query).admitted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.02, 0.05, 0.1, 0.2, 0.3, 0.421]), min_size=1, max_size=40))
def test_pure_is_a_free_component(sizes: Sequence[float]) -> None:
    """While the pure component is live the union admits whatever pure alone admits."""
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.RenyiFilter(20.0, 0.3)])
    pure = rz.PureFilter(1.0)
    for eps in sizes:
        state = union.state
        assert isinstance(state, Parts)
        if state.parts[0] is None:
            break
        admitted = union.spend(m.PureDp(eps)).admitted
        if pure.spend(m.PureDp(eps)).admitted:
            assert admitted


def test_a_stopped_pure_component_can_cost_queries_later() -> None:
    """`31 × R_.02, R_.421, 12 × R_.0316` at (1, 1e-6): the union admits 32, pure alone 43."""
    queries = [m.PureDp(0.02)] * 31 + [m.PureDp(0.421)] + [m.PureDp(0.0316)] * 12
    renyi = rz.RenyiCommitFilter(1.0, 1e-6)
    union, pure = rz.UnionFilter([rz.PureFilter(1.0), renyi]), rz.PureFilter(1.0)
    assert sum(pure.spend(query).admitted for query in queries) == 43
    checked = []
    for query in queries:
        checked.append(union.check(query).stops)
        assert union.spend(query).stops == checked[-1]
    assert sum(decision.admitted for decision in union.history) == 32
    assert checked[31] == ("pure",)
    assert "and stops pure" in union.history[31].reason


@pytest.mark.parametrize("seed", range(5))
def test_a_stopped_component_never_comes_back(seed: int) -> None:
    draw, union, stopped = random.Random(seed), make(), set[int]()
    for _ in range(40):
        union.spend(draw.choice(QUERIES))
        state = union.state
        assert isinstance(state, Parts)
        assert not stopped & set(state.live) and state.live
        stopped = set(range(len(union.filters))) - set(state.live)
    assert stopped


def test_states_and_filters_survive_json_and_pickle() -> None:
    draw, union = random.Random(3), make()
    read = rz.UnionFilter.from_json(union.to_json())
    assert read == union and read.to_json() == union.to_json()
    for _ in range(15):
        query = draw.choice(QUERIES)
        text = union.state_to_json(union.state)
        assert union.state_from_json(text) == union.state
        assert (
            read.decide(read.state_from_json(text), query).admitted == union.spend(query).admitted
        )
    again = pickle.loads(pickle.dumps(union))
    assert again == union and again.state == union.state


def test_components_that_live_in_memory_can_be_copied() -> None:
    quarters = rz.UpdateFilter(4 * rz.pure_dp(0.25), spend_one)
    union = rz.UnionFilter([quarters, rz.PureFilter(0.1)], eps=1.0)
    assert union.spend(rz.pure_dp(0.25)).stops == ("pure",)
    again = pickle.loads(pickle.dumps(union))
    assert again.remaining == union.remaining == rz.pure_dp(0.25)
    with pytest.raises(rz.ArgumentError, match="cannot be stored"):
        union.to_json()


def test_the_session_of_a_component_is_not_the_unions() -> None:
    pure = rz.PureFilter(1.0)
    union = rz.UnionFilter([pure])
    assert pure.spend(rz.pure_dp(1.0)).admitted
    assert union.spend(rz.pure_dp(1.0)).admitted
    assert not union.spend(rz.pure_dp(0.1)).admitted
    assert pickle.loads(pickle.dumps(union)) == union


@pytest.mark.parametrize("queries", [[m.PureDp(0.01)], [m.PureDp(0.02), m.Gaussian(sigma=80.0)]])
def test_how_many_is_what_requesting_one_by_one_gives(queries: list[m.Mechanism]) -> None:
    for filters in (
        [rz.PureFilter(1.0), rz.ZcdpFilter(0.02)],
        [rz.PureFilter(0.3), rz.GdpResidueFilter(0.3)],
    ):
        union = rz.UnionFilter(filters, eps=1.0)
        expected = rz.how_many(union, queries)
        assert union.can_skip == (filters[1].kind == "zcdp")
        count = 0
        while union.spend(queries[count % len(queries)]).admitted:
            count += 1
        assert count == expected > 0


# -- the promise --------------------------------------------------------------------------------


def test_the_deltas_add_up() -> None:
    union = make()
    gaussian, zcdp = rz.GdpResidueFilter(0.2).guarantee, rz.ZcdpFilter(0.02).guarantee
    assert union.deltas[:2] == (0.0, 1e-7)
    assert union.deltas[2] == gaussian.delta(1.0)
    assert union.deltas[3] == zcdp.delta(1.0)
    assert Fraction(union.delta) >= sum(map(Fraction, union.deltas))
    assert union.delta == pytest.approx(sum(union.deltas))
    assert union.guarantee == rz.approximate_dp(1.0, union.delta)


def test_a_guarantee_that_is_not_symmetric_counts_in_its_worse_direction() -> None:
    budget = rz.from_pair([0.5, 0.5, 0.0], [0.5, 0.25, 0.25])
    for one in (budget, budget.reverse()):
        union = rz.UnionFilter([rz.UpdateFilter(one, spend_one)], eps=0.5)
        worse = max(one.delta(0.5), one.reverse().delta(0.5))
        assert union.delta == worse > min(one.delta(0.5), one.reverse().delta(0.5))


def test_the_eps_is_the_largest_that_is_stated() -> None:
    assert rz.UnionFilter([rz.PureFilter(0.5), rz.BasicFilter(0.75, 1e-6)]).eps == 0.75
    assert rz.UnionFilter([rz.PureFilter(0.5)], eps=2).eps == 2.0
    assert rz.UnionFilter([rz.GdpFilter(0.1)], eps=1.0).delta == rz.gaussian(mu=0.1).delta(1.0)


def test_unions_inside_unions_are_flattened() -> None:
    inner = rz.UnionFilter([rz.PureFilter(0.5), rz.GdpFilter(0.1)], eps=1.0)
    outer = rz.UnionFilter([inner, rz.BasicFilter(1.0, 1e-6)])
    assert [each.kind for each in outer.filters] == ["pure", "gdp", "basic"]
    nested = f'{{"filters":[{inner.to_json()},{{"eps":1.0,"kind":"pure"}}],"kind":"union"}}'
    assert [each.kind for each in rz.UnionFilter.from_json(nested).filters] == [  # type: ignore[attr-defined]
        "pure",
        "gdp",
        "pure",
    ]


def test_components_of_one_kind_are_numbered() -> None:
    orders = [rz.RenyiFilter(alpha, 0.1) for alpha in (4.0, 16.0)]
    union = rz.UnionFilter([*orders, rz.PureFilter(1.0)])
    assert union.names == ("renyi 1", "renyi 2", "pure")


# -- refusals -----------------------------------------------------------------------------------


def test_a_refusal_names_the_binding_component_and_what_fits() -> None:
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpResidueFilter(0.2)])
    assert union.spend(m.PureDp(0.1)).admitted
    refusal = union.spend(m.PureDp(2.0))
    assert refusal.reason == (
        "refused: PureDp(eps=2.0) needs eps 2 under pure, the binding component (gdp_residue"
        " refuses it too); 90 % left (pure eps 0.9); PureDp(eps=0.9) would fit"
    )
    assert refusal.largest == m.PureDp(0.9)
    assert union.spend(m.Gaussian(sigma=30.0)).stops == ("pure",)
    refusal = union.spend(m.PureDp(0.9))
    assert refusal.largest is not None and union.check(refusal.largest).admitted


def test_a_refusal_of_the_only_live_component_reads_like_its_own() -> None:
    alone = rz.GdpResidueFilter(0.2)
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.RenyiFilter(2.0, 1e-4), alone])
    for filter in (union, alone):
        assert filter.spend(m.Gaussian(sigma=30.0)).admitted
    assert union.spend(m.PureDp(0.5)).reason == (
        alone.spend(m.PureDp(0.5))
        .reason.replace("; 97 %", " under gdp_residue (pure and renyi are stopped); 97 %")
        .replace("(mu² 0.0388888)", "(gdp_residue mu² 0.0388888)")
    )


def test_the_binding_component_is_one_that_would_take_such_a_query() -> None:
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.RenyiFilter(20.0, 0.2)], eps=2.0)
    assert union.spend(m.PureDp(0.1)).admitted
    assert union.check(m.Gaussian(sigma=0.5)).reason.startswith(
        "would be refused: Gaussian(sigma=0.5) needs rho 40 under renyi, the binding component with"
        " 66 % left (pure refuses it too); 90 % left (pure eps 0.9); Gaussian(sigma="
    )
    assert union.check(m.ApproximateDp(0.5, 1e-3)).reason == (
        "would be refused: ApproximateDp(eps=0.5, delta=0.001) is refused by pure (it has unbounded"
        " losses, which no eps covers) and renyi (it has infinite Rényi divergence of order 20);"
        " 90 % left (pure eps 0.9); nothing of this kind fits"
    )


def test_what_has_no_proof_under_a_component_stops_it() -> None:
    union = rz.UnionFilter([rz.GdpResidueFilter(0.3), rz.ZcdpFilter(0.1)], eps=2.0)
    decision = union.spend(m.Zcdp(0.01))
    assert decision.admitted and decision.stops == ("gdp_residue",)


def test_a_query_that_no_ledger_takes_is_decided_in_memory() -> None:
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpFilter(0.2)])
    assert union.spend(m.PureDp(1e-12)).stops == ()


# -- bad input ----------------------------------------------------------------------------------


class Unknown(rz.PureFilter):
    """A filter that does not say what it guarantees."""

    @property
    def guarantee(self) -> rz.Pld:
        return None


def _spent() -> rz.Filter:
    filter = rz.PureFilter(1.0)
    filter.spend(rz.pure_dp(0.1))
    return filter


@pytest.mark.parametrize(
    ("filters", "eps", "message"),
    [
        ([], None, "must contain between 1 and 16 filters, got none"),
        ([rz.PureFilter(1.0)] * (MOST_COMPONENTS + 1), None, "between 1 and 16 filters, got 17"),
        ([rz.PureFilter(2.0)], 1.0, "that of every component, got 1.0, and pure has 2.0"),
        (
            [rz.GdpFilter(1.0), rz.ZcdpFilter(0.5)],
            None,
            "given: no component states one, got gdp and zcdp",
        ),
        ([rz.BasicFilter(1.0, 0.6), rz.BasicFilter(1.0, 0.6)], None, "add up to less than 1"),
        (
            [rz.GdpFilter(9.0), rz.GdpFilter(9.0)],
            0.1,
            r"add up to less than 1 at eps 0.1, got 1.99\d* in total \(gdp 0.99\d*, gdp 0.99\d*\)",
        ),
        (
            [rz.GdpFilter(4.0), rz.ZcdpFilter(8.0)],
            0.1,
            r"less than 1 at eps 0.1, got 1.\d* in total",
        ),
        ([Unknown(1.0)], None, "filters must have a known guarantee, got pure with None"),
        ([rz.PureFilter(1.0)], math.nan, "eps must be .* got nan"),
        ([rz.PureFilter(1.0)], math.inf, "eps must be .* got inf"),
        ([rz.PureFilter(1.0)], -1.0, "eps must be .* got -1.0"),
    ],
)
def test_bad_values_are_errors(filters: list[rz.Filter], eps: float | None, message: str) -> None:
    with pytest.raises(rz.ArgumentError, match=message):
        rz.UnionFilter(filters, eps)


def test_a_component_in_the_middle_of_its_life_is_an_error() -> None:
    with pytest.raises(rz.ArgumentError, match="unspent: pure has admitted queries; make a new"):
        rz.UnionFilter([_spent(), rz.GdpFilter(0.2)])
    union = rz.UnionFilter([rz.PureFilter(1.0)])
    union.spend(rz.pure_dp(0.1))
    with pytest.raises(rz.ArgumentError, match="unspent: union has admitted queries"):
        rz.UnionFilter([union])


@pytest.mark.parametrize(
    "filters", [None, rz.PureFilter(1.0), "pure", b"pure", 3, {"kind": "pure"}, np.array(0.5)]
)
def test_what_is_not_a_list_of_filters_is_an_error(filters: object) -> None:
    with pytest.raises(rz.ArgumentTypeError, match="filters must be a list of filters"):
        rz.UnionFilter(filters)


@pytest.mark.parametrize("item", [None, "pure", 0.5, rz.pure_dp(1.0)])
def test_what_is_not_a_filter_is_an_error(item: object) -> None:
    with pytest.raises(rz.ArgumentTypeError, match="filters must contain only filters, got"):
        rz.UnionFilter([rz.PureFilter(1.0), item])


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ("[]", "parts must be a list of 2 states"),
        ("null", "parts must be a list of 2 states"),
        ("[null,null]", "must have a live component"),
        ('[null,{"kind":"pure","left":["1"],"of":"x"}]', "kind must be 'gdp', got 'pure'"),
        ('[null,{"kind":"gdp","left":["1"],"of":"x"}]', "got one of another filter"),
        ("[null,3]", "must be"),
    ],
)
def test_states_that_are_not_the_unions_are_errors(parts: str, error: str) -> None:
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpFilter(0.2)])
    text = f'{{"kind":"union","of":"{union.fingerprint}","parts":{parts}}}'
    with pytest.raises((rz.ArgumentError, rz.ArgumentTypeError), match=error):
        union.state_from_json(text)
