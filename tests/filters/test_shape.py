"""What every filter promises, over the catalogue."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import residua as rz
from filters.catalogue import ADDITIVE, CATALOGUE, HOPELESS, NAMES, Entry
from residua import mechanisms
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.amounts import Left, State
from residua.filters.codec import KINDS, filter_class
from residua.filters.noise import scale_noise


@pytest.fixture(params=NAMES)
def entry(request: pytest.FixtureRequest) -> Entry:
    return CATALOGUE[request.param]


def test_every_kind_is_in_the_catalogue():
    made = [entry.make() for entry in CATALOGUE.values()]
    assert set(KINDS) <= {filter.kind for filter in made}
    for filter in made:
        if filter.kind in KINDS:
            assert type(filter) is filter_class(filter.kind)


def test_decisions_are_pure(entry):
    filter = entry.make()
    start = filter.initial()
    first, second = filter.decide(start, entry.part), filter.decide(start, entry.part)
    assert first.admitted and first.state == second.state != start
    assert first.cost == second.cost
    assert filter.state == start == filter.initial()
    assert filter.check(entry.part).admitted
    assert filter.state == start
    assert filter.history == ()
    assert entry.make() == filter
    assert hash(entry.make()) == hash(filter) if entry.json else True


def test_parts_fill_the_budget_exactly(entry):
    filter = entry.make()
    for k in range(entry.times):
        decision = filter.request(entry.part)
        assert decision.admitted, (k, decision.reason)
        assert decision.reason.startswith("admitted")
    before = filter.state
    refusal = filter.request(entry.part)
    assert not refusal.admitted and not refusal
    assert filter.state == before == refusal.state
    assert len(filter.history) == entry.times + 1
    assert [bool(decision) for decision in filter.history] == [True] * entry.times + [False]
    assert filter.request(rz.identity()).admitted
    assert filter.request(0 * entry.part if isinstance(entry.part, rz.Pld) else rz.identity())
    assert filter.state == before


@pytest.mark.parametrize("spent", [0, 1, 3])
def test_asking_for_exactly_what_is_left_passes(entry, spent):
    filter = entry.make()
    for _ in range(spent):
        assert filter.request(entry.part)
    if entry.whole is None:
        return
    decision = filter.check(entry.whole(filter.remaining))
    assert decision.admitted, decision.reason
    if entry.left:
        assert filter.request(entry.whole(filter.remaining))
        assert not filter.request(entry.part).admitted


@pytest.mark.parametrize("spent", [0, 2])
def test_a_refusal_spends_nothing_and_ends_nothing(entry, spent):
    """Trap 8."""
    filter = entry.make()
    for _ in range(spent):
        assert filter.request(entry.part)
    before, left = filter.state, filter.remaining
    for _ in range(3):
        refusal = filter.request(HOPELESS)
        assert not refusal.admitted
        assert refusal.largest is None
        assert refusal.reason.startswith("refused")
        assert filter.state == before
        assert filter.remaining == left
    for _ in range(entry.times - spent):
        assert filter.request(entry.part).admitted


def test_what_is_left_and_what_was_spent_make_the_capacity(entry):
    filter = entry.make()
    assert filter.remaining == filter.capacity
    assert filter.request(entry.part).admitted
    assert filter.state != filter.initial()
    assert filter.history[0].remaining == filter.remaining
    if filter.kind in ("update", "renyi_commit", "menu", "auto", "target_residue", "union"):
        with pytest.raises(rz.ArgumentError, match="remaining"):
            _ = filter.spent
    else:
        spent = filter.spent
        again = entry.make()
        assert again.request(entry.part)
        assert again.spent == spent == filter.spent_in(filter.state)


@pytest.mark.parametrize("times", [1, None])
def test_the_guarantee_lies_above_what_was_admitted(entry, times):
    """Read as floats, decimals are half a unit in the last place away: hence the factor."""
    filter = entry.make()
    released = (times or entry.times) * entry.part
    for eps in (-1.0, 0.0, 0.1, 0.5, 0.9, 1.5):
        assert released.delta_bounds(eps).lo <= filter.guarantee.delta(eps) * (1 + 1e-12) + 1e-15


SIZES = [
    rz.pure_dp(0.37),
    rz.gaussian(mu=3.7),
    rz.gaussian(sigma=0.3),
    rz.laplace(scale=0.2),
    rz.bounded_range(3.0),
    rz.approximate_dp(2.7, 1e-5),
    rz.gaussian(mu=0.001) + 3 * rz.pure_dp(0.5),
    mechanisms.Laplace(123.0),
    mechanisms.SelfComposed(mechanisms.Gaussian(sigma=2.0), 100),
    mechanisms.Composed((mechanisms.PureDp(0.5), mechanisms.Laplace(1.0))),
    mechanisms.Zcdp(4.0),
]
SLOW = {(name, SIZES[-1]) for name in ("pure", "basic", "gdp", "gdp_residue")}
SLOW |= {("gdp", SIZES[6]), ("gdp_residue", SIZES[6]), ("gdp_residue", SIZES[9])}
"""The PLDs of a black box, and residues of some compositions, take seconds each."""


@pytest.mark.parametrize(
    ("name", "query"), [pair for pair in itertools.product(ADDITIVE, SIZES) if pair not in SLOW]
)
def test_the_largest_fits_and_a_little_less_noise_does_not(name, query):
    filter = CATALOGUE[name].make()
    assert filter.request(CATALOGUE[name].part)
    decision = filter.check(query)
    largest = decision.largest
    if largest is None:
        assert decision.cost is None or "approximate" in repr(query) or "pure" in name
        assert "nothing of this kind fits" in decision.reason
        return
    assert type(largest) is type(query)
    assert filter.check(largest).admitted
    less = scale_noise(largest, 1 / (1 + 1.01e-5))
    assert less is not None
    assert not filter.check(less).admitted
    if not decision.admitted:
        assert repr(largest) in decision.reason


@pytest.mark.parametrize("hair", [1e-9, 1e-13, 3e-16])
def test_too_large_by_a_hair(hair):
    filter = rz.PureFilter(1.0)
    decision = filter.request(rz.pure_dp(1.0 + hair))
    assert not decision.admitted
    assert decision.largest == rz.pure_dp(1.0)
    assert decision.reason.endswith("pure_dp(1.0) would fit")
    assert filter.request(decision.largest).admitted
    gaussians = rz.ZcdpFilter(0.5)
    refused = gaussians.request(rz.gaussian(mu=1.0 + hair))
    assert not refused.admitted
    assert gaussians.request(refused.largest).admitted
    assert refused.largest == rz.gaussian(mu=1.0)


# ------------------------------------------------------------------------- bad input


def test_what_is_not_a_query_is_an_error(entry):
    filter = entry.make()
    others = [entry.make(), filter.check(entry.part), filter.state, rz.Pld, [entry.part]]
    for wrong in [None, 0.5, math.nan, "pure_dp(0.1)", {"kind": "pure_dp", "eps": 0.1}, *others]:
        for ask in (filter.request, filter.check):
            with pytest.raises(rz.ArgumentTypeError, match="query must be"):
                ask(wrong)
    for wrong in ["bogus", "ADD-REMOVE", ""]:
        with pytest.raises(rz.ArgumentError, match="relation must be"):
            filter.request(entry.part, relation=wrong)
    with pytest.raises(rz.ArgumentTypeError, match="relation must be"):
        filter.request(entry.part, relation=3)
    with pytest.raises(rz.ArgumentError, match="relation must be"):
        filter.request(mechanisms.PureDp(0.01, "replace-one"), relation="add-remove")
    assert filter.state == filter.initial()
    assert filter.history == ()


def test_states_of_others_are_errors(entry):
    filter = entry.make()
    assert filter.request(entry.part)
    before = filter.state
    foreign = [other.make().initial() for other in CATALOGUE.values()]
    foreign = [state for state in foreign if state.of != before.of]
    crafted = [State(before.of), Left("", (Fraction(0),))]
    for left in [(), (math.nan,), (0.4,), ("0.1",), None, [Fraction(0)], (Fraction(0),) * 5]:
        crafted.append(Left(before.of, left))
    crafted.append(Left(before.of, (Fraction(-1, 10**30),) * len(entry.left)))
    if entry.left:
        whole = filter.initial().left
        crafted.append(Left(before.of, tuple(amount + Fraction(1, 10**30) for amount in whole)))
        crafted.append(Left(before.of, tuple(float(amount) for amount in whole)))
        crafted.append(Left(before.of, tuple(int(amount) for amount in whole)))
    for state in [*foreign, *crafted, None, {}, "x", before.of]:
        for use in (filter.resume, lambda s: filter.decide(s, entry.part), filter.state_to_json):
            with pytest.raises(rz.ResiduaError, match="state"):
                use(state)
    assert filter.state == before


CONFIGURATIONS = [
    (rz.PureFilter, (1.0,)),
    (rz.BasicFilter, (1.0, 1e-3)),
    (rz.RenyiFilter, (8.0, 1.0)),
    (rz.ZcdpFilter, (0.5,)),
    (rz.ApproximateZcdpFilter, (1.0, 1e-3, 5e-4)),
]


@pytest.mark.parametrize("wrong", [math.nan, -1.0, -1e-300, math.inf, -math.inf, 1e7, 10**400])
@pytest.mark.parametrize(("cls", "good"), CONFIGURATIONS)
def test_capacities_out_of_range(cls, good, wrong):
    cls(*good)
    for place in range(len(good)):
        if cls is rz.RenyiFilter and place == 0 and wrong == 1e7:
            continue
        with pytest.raises(rz.ArgumentError, match="must be"):
            cls(*good[:place], wrong, *good[place + 1 :])


@pytest.mark.parametrize("wrong", [None, "1", True, 1j, [1.0], rz.pure_dp(1.0)])
@pytest.mark.parametrize(("cls", "good"), CONFIGURATIONS)
def test_capacities_of_wrong_types(cls, good, wrong):
    for place in range(len(good)):
        if cls is rz.ApproximateZcdpFilter and place == 2 and wrong is None:
            continue
        with pytest.raises(rz.ArgumentTypeError, match="must be"):
            cls(*good[:place], wrong, *good[place + 1 :])


def test_parameters_of_their_own():
    for delta in (1.0, 1.5):
        with pytest.raises(rz.ArgumentError, match="delta"):
            rz.BasicFilter(1.0, delta)
        with pytest.raises(rz.ArgumentError, match="delta"):
            rz.ApproximateZcdpFilter(1.0, delta)
    for alpha in (1.0, 0.5, 0.0, 1 + 1e-12, 2e9):
        with pytest.raises(rz.ArgumentError, match="alpha"):
            rz.RenyiFilter(alpha, 1.0)
        with pytest.raises(rz.ArgumentError, match="alpha"):
            rz.RenyiCurveFilter({alpha: 1.0})
    for aside in (0.0, 2e-3, -1e-3):
        with pytest.raises(rz.ArgumentError, match="delta_conversion"):
            rz.ApproximateZcdpFilter(1.0, 1e-3, aside)
    with pytest.raises(rz.ArgumentError, match="conversion"):
        rz.ApproximateZcdpFilter(1.0, 1e-3, conversion="tight")
    for curve in ({}, [], [(2.0, 0.1), (2, 0.2)], {2.0: -1.0}, {2.0: math.nan}):
        with pytest.raises(rz.ArgumentError):
            rz.RenyiCurveFilter(curve)
    for curve in (None, 2.0, "curve", [2.0], [(2.0,)], [(2.0, 0.1, 3)], [2.0, 0.1], {2.0: "x"}):
        with pytest.raises(rz.ArgumentTypeError):
            rz.RenyiCurveFilter(curve)
    for budget, rule in [(1.0, max), (None, max), (rz.pure_dp(1.0), None)]:
        with pytest.raises(rz.ArgumentTypeError):
            rz.UpdateFilter(budget, rule)


def test_numbers_of_other_types_mean_the_same():
    import numpy as np

    class Sly(float):
        """A float that claims to be less than everything."""

        def __le__(self, other):
            return True

        def __repr__(self):
            return "0.0"

    for one in (1, np.float64(1.0), np.int64(1), np.float32(1.0), Fraction(1), Sly(1.0)):
        filter = rz.PureFilter(one)
        assert filter == rz.PureFilter(1.0)
        assert filter.fingerprint == rz.PureFilter(1.0).fingerprint
        assert type(filter.eps) is float
        assert not filter.check(rz.pure_dp(1.0000001)).admitted
        assert not filter.check(rz.pure_dp(Sly(2.0))).admitted
        assert not filter.check(mechanisms.PureDp(Sly(2.0))).admitted
    assert rz.PureFilter(-0.0).to_json() == rz.PureFilter(0.0).to_json()
    assert rz.PureFilter(0.0).request(rz.identity()).admitted
    assert not rz.PureFilter(0.0).request(rz.pure_dp(1e-200)).admitted


# ------------------------------------------------------------------ copies and threads


def test_copies_keep_their_state_and_part_ways(entry):
    filter = entry.make()
    assert filter.request(entry.part)
    for made in (copy.copy(filter), copy.deepcopy(filter), pickle.loads(pickle.dumps(filter))):
        assert made == filter
        assert made.remaining == filter.remaining
        if entry.json:
            assert made.state == filter.state
        assert made.request(entry.part)
        assert made.remaining != filter.remaining
    fresh = pickle.loads(pickle.dumps(entry.make()))
    assert fresh.remaining == fresh.capacity


def test_threads_never_overspend(entry):
    filter = entry.make()

    def ask(_: int) -> rz.Decision:
        _ = filter.remaining, filter.history
        return filter.request(entry.part)

    with ThreadPoolExecutor(8) as pool:
        decisions = list(pool.map(ask, range(4 * entry.times)))
    assert sum(decision.admitted for decision in decisions) == entry.times
    assert len(filter.history) == len(decisions)
    assert filter.state == filter.history[-1].state
    if isinstance(filter, Additive):
        costs = [decision._price for decision in decisions if decision.admitted]
        whole, left = filter.initial().left, filter.state.left  # type: ignore[attr-defined]
        for each, most, rest in zip(zip(*costs, strict=True), whole, left, strict=True):
            assert sum(each) == most - rest


@pytest.mark.parametrize("name", ADDITIVE)
def test_threads_with_queries_of_many_sizes(name):
    filter = CATALOGUE[name].make()
    parts = [rz.approximate_dp(0.001 * k, 1e-7) for k in range(1, 40)]
    if "delta" not in {field.name for field in dataclasses.fields(filter)}:
        parts = [rz.pure_dp(0.01 * k) for k in range(1, 40)]
    with ThreadPoolExecutor(8) as pool:
        decisions = list(pool.map(filter.request, 4 * parts))
    costs = [decision._price for decision in decisions if decision.admitted]
    assert len(costs) > 0
    whole, left = filter.initial().left, filter.state.left  # type: ignore[attr-defined]
    for each, most, rest in zip(zip(*costs, strict=True), whole, left, strict=True):
        assert sum(each) == most - rest >= 0


def test_overriding_spend_is_enough():
    class Closed(rz.PureFilter):
        def spend(self, query, *, relation=None):
            raise rz.ArgumentError("closed")

    with pytest.raises(rz.ArgumentError, match="closed"):
        Closed(1.0).request(rz.PureDp(0.1))
    filter = rz.PureFilter(1.0)
    assert filter.request(rz.PureDp(0.5)).admitted and filter.spend(rz.PureDp(0.5)).admitted
    assert not filter.request(rz.PureDp(0.5)).admitted


def test_in_memory_filters_have_names_of_their_own():
    filters = [CATALOGUE["update"].make() for _ in range(3)]
    assert len({filter.fingerprint for filter in filters}) == 3
    with pytest.raises(rz.ArgumentError, match="another filter"):
        filters[0].resume(filters[1].state)


@pytest.mark.parametrize("name", ["plan", "menu", "auto"])
def test_refusals_of_a_target_say_what_the_query_needs_of_it(name):
    filter = CATALOGUE[name].make()
    for query in (rz.laplace(scale=0.3), mechanisms.SubsampledGaussian(0.5, 0.5)):
        loss = query if isinstance(query, rz.Pld) else query.pld()
        eps = max(one.epsilon(1e-6) for one in (loss, loss.reverse()))
        assert (
            f"by itself it needs eps {amounts.shown(eps, up=True)} at delta 1e-06"
            in filter.request(query).reason
        )
    assert "no eps covers it at delta 1e-06" in filter.request(HOPELESS).reason


def test_refusals_of_a_gaussian_with_slack_say_which_gaussian_is_needed():
    filter = rz.ApproximateGdpResidueFilter(0.5, 1e-6)
    query = rz.laplace(scale=0.3)
    assert (
        f"(mu {amounts.shown(rz.gdp_parameter(query), up=True)}); 100 % left (mu² 0.25 and delta"
        in filter.request(query).reason
    )
    assert "nothing of this kind fits" in filter.request(HOPELESS).reason


SUBSAMPLED = [
    mechanisms.SubsampledGaussian(0.3, 0.01),
    rz.subsampled_gaussian(0.2, 1e-3),
    mechanisms.Composed((mechanisms.SubsampledGaussian(0.5, 0.1), mechanisms.Gaussian(sigma=1.5))),
]


@pytest.mark.parametrize("query", SUBSAMPLED, ids=repr)
@pytest.mark.parametrize(
    "filter",
    [rz.ApproximateGdpResidueFilter(0.5, 1e-6), rz.ApproximateGdpResidueFilter.within(1.0, 1e-6)],
    ids=repr,
)
def test_refusals_with_slack_name_the_least_noise_that_fits(filter, query):
    decision = filter.check(query)
    assert not decision.admitted
    fit = decision.largest
    assert decision.reason.endswith(f"{fit!r} would fit")
    assert "needs mu" in decision.reason
    assert filter.check(fit).admitted
    assert not filter.check(scale_noise(fit, 1.0 / 1.002)).admitted


def test_with_slack_nothing_is_named_where_nothing_fits():
    filter = rz.ApproximateGdpResidueFilter(0.5, 1e-6)
    decision = filter.check(mechanisms.SubsampledGaussian(1.0, 0.1).pld() + HOPELESS)
    assert not decision.admitted
    assert decision.largest is None
    assert "nothing of this kind fits" in decision.reason


def test_refusals_of_a_rule_say_which_condition_failed_and_by_how_much():
    budget = rz.gaussian(mu=1.0)
    keeps = rz.UpdateFilter(budget, lambda B, L: rz.gaussian(mu=0.6))
    large = keeps.check(rz.gaussian(mu=1.5))
    assert "exceeds the budget that is left: at eps" in large.reason
    more = keeps.check(rz.gaussian(mu=0.9))
    assert "gaussian(mu=0.6), which this rule leaves, is more than the query allows" in more.reason
    for decision in (large, more):
        assert "more of delta; gaussian(mu=1.0) left;" in decision.reason
        assert decision.reason.endswith(f"{decision.largest!r} would fit")
        assert keeps.check(decision.largest).admitted
        assert rz.gdp_parameter(decision.largest) == pytest.approx(0.8, rel=1e-5)
