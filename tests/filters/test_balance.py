"""What is left is said in one way, over every filter and random queries.

A share lies in [0, 1] and never increases; the largest query is admitted when it is asked next, and
a little more is not; copies of the last query are counted exactly; what a refusal recommends is
admitted. The exception to the second law is a commit, which exchanges what is left for the capacity
of another filter.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from effort import tries
from filters.catalogue import CATALOGUE, NAMES
from residua import mechanisms as m
from residua.filters import balance as balances
from residua.filters.balance import Detail
from residua.filters.counting import MOST, MOST_DECIDED, count_copies, count_copies_before
from residua.filters.noise import scale_noise

TABLES = ("menu", "auto", "plan", "natural", "approximate_gdp_residue")
"""Filters that lay out tables for what they are asked first, or take long to compare."""
SIZES = st.integers(1, 400_000).map(lambda n: n / 1e6) | st.sampled_from([1e-7, 1 / 3])
FEW = st.sampled_from([0.05, 0.123457, 0.2])
QUERIES: tuple[Callable[[float], m.Mechanism], ...] = (
    lambda size: m.PureDp(eps=size),
    lambda size: m.Laplace(scale=1.0 / size),
    lambda size: m.Gaussian(sigma=1.0 / size),
)
SMALL = 12


def queries(name: str) -> st.SearchStrategy[list[Any]]:
    sizes = FEW if name in TABLES else SIZES
    made = st.builds(lambda make, size: make(size), st.sampled_from(QUERIES), sizes)
    most = 2 if name == "approximate_gdp_residue" else 5
    return st.lists(made | st.just(CATALOGUE[name].part), max_size=most)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=tries(7))
@given(data=st.data())
def test_laws_of_a_balance(name: str, data: st.DataObject) -> None:
    filter = CATALOGUE[name].make()
    before = filter.balance
    agrees(filter, before)
    assert before.share == 1.0 and before.more_like_last is None
    last = None
    for query in data.draw(queries(name)):
        decision = filter.spend(query)
        last = query if decision.admitted else last
        after = filter.balance
        assert decision.balance == after, "the decision has the balance after it"
        assert filter.balance_in(filter.state, last) == after
        assert after.share <= before.share, (before, after)
        assert (after.more_like_last is None) == (last is None)
        agrees(filter, after)
        before = after


def agrees(filter: rz.Filter, balance: rz.Balance) -> None:
    """All numbers of a balance against what the filter does."""
    assert 0.0 <= balance.share <= 1.0
    assert balance.guarantee == filter.guarantee
    details_agree(filter, balance)
    largest = balance.largest_eps
    if largest:
        assert filter.check(m.PureDp(largest)).admitted, balance
    if largest < filter.most_eps / 1.0002:
        assert not filter.check(m.PureDp(max(largest * 1.0001, 1e-3))).admitted, balance
    last = filter._session.last
    more = balance.more_like_last
    if more is not None and more <= SMALL:
        assert not balance.counting_ended and more == copies(filter, last)
    for make in QUERIES:
        refused = filter.check(make(9.0))
        if not refused.admitted and refused.largest is not None:
            assert filter.check(refused.largest).admitted, refused.reason
    assert balance.text == str(balance) and json.loads(json.dumps(balance.to_dict()))


def details_agree(filter: rz.Filter, balance: rz.Balance) -> None:
    counted = balances.non_reserve_details(balance.details)
    shares = [one.share for one in counted if one.live and one.capacity]
    for one in balance.details:
        assert 0.0 <= one.left <= one.capacity
        if one.capacity:
            exact = Fraction(repr(one.left)) / Fraction(repr(one.capacity))
            assert 0 <= exact - Fraction(repr(one.share)) <= exact / 10**5
        assert one.live or one.left == one.share == 0.0
    if shares:
        most = filter.kind in ("union", "auto", "plan", "target_residue")
        assert balance.share == (max(shares) if most else min(shares))


def copies(filter: rz.Filter, query: Any) -> int:
    state, n = filter.state, 0
    while (decision := filter.decide(state, query)).admitted and n <= SMALL:
        state, n = decision.state, n + 1
    return n


SAMPLED = (
    m.SubsampledGaussian(0.3, 0.1),
    m.SelfComposed(m.SubsampledGaussian(0.9, 0.1), 64),
    m.SelfComposed(m.SubsampledGaussian(1.0, 0.01), 5000),
    m.Composed((m.SubsampledGaussian(0.5, 0.1), m.Gaussian(sigma=1.5))),
)


SLOW = {("auto", SAMPLED[2]), ("target_residue with reserve", SAMPLED[2])}
"""A minute each: every step of the search lays out a cost that draws on the reserve."""


@pytest.mark.parametrize(
    ("name", "query"),
    [pair for pair in itertools.product(NAMES, SAMPLED) if pair not in SLOW],
    ids=str,
)
def test_what_refusals_of_sampled_queries_recommend_is_admitted(name: str, query: Any) -> None:
    """More noise, or fewer steps; nothing is recommended only where neither helps."""
    filter = CATALOGUE[name].make()
    assert filter.spend(CATALOGUE[name].part)
    refused = filter.check(query)
    if refused.admitted:
        return
    if refused.largest is not None:
        assert type(refused.largest) is type(query)
        assert refused.reason.endswith(f"; {refused.largest!r} would fit")
        assert filter.check(refused.largest).admitted, refused.reason
        return
    assert refused.reason.endswith("; nothing of this kind fits")
    steps = [query]
    if isinstance(query, m.SelfComposed):
        steps += [m.SelfComposed(query.mechanism, n) for n in (query.count // 2, 50, 2, 1)]
    for ratio in (1.0, 2.0, 16.0, 128.0, 2.0**12):
        for some in steps:
            assert not filter.check(scale_noise(some, ratio)).admitted, (ratio, some)


def test_fewer_steps_are_recommended_where_only_they_fit() -> None:
    """A ledger proves at most 1,000 steps under `gdp`, whatever the noise."""
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpFilter(0.2)])
    asked = m.SelfComposed(m.SubsampledGaussian(1.0, 0.01), 20_000)
    found: Any = union.check(asked).largest
    assert 200 <= found.count <= 1000 and found.mechanism.sigma < 200.0
    planned = rz.PlanFilter(1.0, 1e-6, (m.SelfComposed(m.SubsampledGaussian(2.0, 0.01), 1000),))
    as_planned = m.SelfComposed(m.SubsampledGaussian(2.0, 0.01), 20_000)
    refused = planned.check(as_planned)
    assert refused.largest == m.SelfComposed(m.SubsampledGaussian(2.0, 0.01), 1000)


@pytest.mark.parametrize("name", NAMES)
def test_a_spent_filter_has_no_more_of_its_part(name: str) -> None:
    entry = CATALOGUE[name]
    filter = entry.make()
    for n in range(entry.times, 0, -1):
        assert filter.spend(entry.part).admitted
        assert filter.balance.more_like_last == n - 1
    # Copies on a plan that was made for them, a Rényi filter with a remainder, or levels too few.
    assert filter.balance.share < (1.0 if name == "renyi_commit" else 0.5)


def test_what_a_target_residue_filter_sets_aside_is_among_its_details() -> None:
    filter = rz.TargetResidueFilter(1.0, 1e-6, reserve=0.1, slack=0.05)
    names = ("mu²", "eps by addition", *balances.RESERVES)
    whole = filter.balance
    assert tuple(one.unit for one in whole.details) == names
    assert [one.left for one in whole.details[2:]] == [1e-7, 5e-8]
    assert all(one.share == 1.0 for one in whole.details)
    assert filter.spend(m.ApproximateDp(0.01, 1e-8)).admitted
    _, addition, heavy, unbounded = filter.balance.details
    assert addition.left == 0.99 and unbounded.left == 4e-8 and unbounded.share == 0.8
    assert 0.5 < heavy.share <= 1.0
    assert filter.spend(m.SelfComposed(m.SubsampledGaussian(2.0, 0.05), 10)).admitted
    after = {one.unit: one for one in filter.balance.details}
    assert "eps by addition" not in after
    assert after["delta for heavy tails"].left < heavy.left
    assert filter.balance.share == after["mu²"].share, "what is set aside does not count"
    union = rz.UnionFilter([rz.PureFilter(1.0), filter.from_json(filter.to_json())])
    assert union.spend(m.PureDp(0.5)).balance.share == 0.5
    assert balances.detail_words(union.balance.details)[-1].startswith(
        "target_residue delta for unbounded losses 4.9"
    )


def test_words() -> None:
    filter = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpResidueFilter(0.2)])
    assert filter.balance.text == (
        "100 % left; largest query eps 1; guarantee (eps 1, delta 1.75463e-08)"
    )
    filter.spend(m.PureDp(0.1))
    assert filter.balance.text == (
        "90 % left; largest query eps 0.9; 9 more like the last admitted one;"
        " guarantee (eps 1, delta 1.75463e-08)"
    )
    stopped = filter.spend(m.Gaussian(sigma=40.0))
    assert stopped.balance.details[0] == Detail("pure", "eps", 0.0, 1.0, 0.0, live=False)
    assert stopped.reason.endswith("; 72 % left (gdp_residue mu² 0.0288504)")
    spent = rz.BasicFilter(1.0, 1e-6)
    spent.spend(m.ApproximateDp(0.1, 1e-6))
    assert spent.balance.text == (
        "0 % of delta left; largest query eps 0.9; 0 more like the last admitted one;"
        " guarantee (eps 1, delta 1e-06)"
    )
    gone = rz.PureFilter(1.0)
    gone.spend(m.PureDp(1.0))
    assert gone.balance.text == (
        "0 % left; no eps-DP query fits; 0 more like the last admitted one; guarantee eps 1"
    )
    many = rz.PureFilter(1.0)
    many.spend(m.PureDp(1e-8))
    assert many.balance.more_like_last == MOST and many.balance.counting_ended
    assert "; 1,000,000+ more like the last admitted one; " in many.balance.text
    assert balances.percent_words(0.009) == "< 1 %" and balances.percent(0.29) == 29


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (rz.identity(), "eps 0"),
        (rz.pure_dp(0.5), "eps 0.5"),
        (rz.gaussian(sigma=2.0), "mu 0.5"),
        (rz.approximate_dp(1.0, 1e-6), "(eps 1, delta 1e-06)"),
        (rz.approximate_dp(0.0, 1.0), "none below delta 1"),
        (rz.gaussian(mu=1.0) + rz.approximate_dp(0.0, 1e-3), None),
    ],
)
def test_guarantees_in_a_few_words(guarantee: rz.Pld, words: str | None) -> None:
    assert balances.guarantee_words(guarantee) == (words or repr(guarantee))


def test_the_last_query_of_a_session() -> None:
    """It is the last that was admitted; copies have it, and a stored state does not."""
    filter = rz.PureFilter(1.0)
    assert filter.check(m.PureDp(0.1)).balance.more_like_last == 9, "as if it were spent"
    filter.spend(m.PureDp(0.1))
    assert not filter.spend(m.PureDp(2.0)).admitted
    refused = filter.history[-1]
    assert refused.balance == filter.balance and filter.balance.more_like_last == 9
    assert filter.check(m.PureDp(2.0)).balance.more_like_last == 9
    for other in (copy.deepcopy(filter), pickle.loads(pickle.dumps(filter))):
        assert other.balance == filter.balance
    filter.resume(filter.state)
    assert filter.balance.more_like_last is None
    assert filter.balance.share == 0.9


def test_a_commit_counts_from_the_filter_that_goes_on() -> None:
    filter = rz.RenyiCommitFilter(1.0, 1e-3, 8.0)
    filter.spend(rz.gaussian(sigma=6.0))
    committed = filter.commit(filter.largest_gaussian())
    assert committed.admitted
    assert filter.balance.share == 1.0 and filter.balance.details[0].component == "gdp_residue"
    assert filter.balance.more_like_last == copies(filter, rz.gaussian(sigma=6.0))


def test_another_relation_is_kept() -> None:
    filter = rz.GdpFilter(1.0)
    filter.spend(m.Laplace(scale=10.0), relation="replace-one")
    assert filter.balance == filter.balance_in(
        filter.state, m.Laplace(scale=10.0), relation="replace-one"
    )


def test_bad_input() -> None:
    filter, other = rz.PureFilter(1.0), rz.PureFilter(2.0)
    with pytest.raises(rz.ArgumentError, match="state must be a state of"):
        filter.balance_in(other.state)
    with pytest.raises(rz.ArgumentTypeError, match="state must be a state of a filter"):
        filter.balance_in(None)
    with pytest.raises(rz.ArgumentTypeError, match="last must be a Pld or a mechanism, got 'x'"):
        filter.balance_in(filter.state, "x")
    with pytest.raises(rz.ArgumentError, match="relation must be"):
        filter.balance_in(filter.state, relation="x")


# --------------------------------------------------------------------------- counting


@pytest.mark.parametrize("filter", [rz.PureFilter(1.0), rz.GdpResidueFilter(1.0)])
@given(held=st.floats(0.01, 0.5), size=st.floats(0.05, 0.4))
def test_copies_before_something_held(filter: rz.Filter, held: float, size: float) -> None:
    query, hold = m.PureDp(size), m.PureDp(held)

    def follows(state: Any) -> bool:
        return filter.decide(state, hold).admitted

    state, n = filter.initial(), 0
    while (decision := filter.decide(state, query)).admitted and follows(decision.state):
        state, n = decision.state, n + 1
    found = count_copies_before(filter, filter.initial(), query, follows)
    assert found == (n, False)


def test_counting_ends() -> None:
    union = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpResidueFilter(0.2)])
    tiny = m.PureDp(1e-5)
    assert count_copies(union, union.initial(), tiny) == (MOST_DECIDED, True)
    assert count_copies_before(union, union.initial(), tiny, lambda _: True) == (MOST_DECIDED, True)
    assert count_copies(rz.PureFilter(1.0), rz.PureFilter(1.0).initial(), tiny) == (10**5, False)
