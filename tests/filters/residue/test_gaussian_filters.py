"""The GDP filters, with and without slack: residue conditions checked by the order and by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import residua as rz
from residua import mechanisms
from residua.errors import ArgumentError
from residua.filters.costs import gaussian_variance

QUERIES = {
    "response": rz.pure_dp(0.2),
    "laplace": rz.laplace(scale=5.0),
    "gaussian": rz.gaussian(sigma=8.0),
    "range": rz.bounded_range(0.3),
    "pair": rz.from_pair([0.5, 0.3, 0.2], [0.4, 0.32, 0.28]),
    "mixed": rz.gaussian(sigma=8.0) + rz.pure_dp(0.1),
}


@settings(max_examples=12)
@given(st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=6), st.booleans())
def test_what_is_left_and_the_query_fit_what_was_left(names, residue):
    """The residue condition at each step, by the certified order (its own chords and tangents)."""
    office = rz.GdpResidueFilter(mu=1.0) if residue else rz.GdpFilter(mu=1.0)
    for name in names:
        before = office.remaining
        decision = office.request(QUERIES[name])
        if not decision.admitted:
            assert office.remaining == before
            continue
        # Reported values are rounded down by a hair; compare a hair below.
        left = rz.gaussian(mu=0.9999999 * float(gaussian_variance(office.remaining)) ** 0.5)
        assert left + QUERIES[name] <= before


def test_the_residue_never_takes_more_than_the_parameter():
    for query in QUERIES.values():
        whole, part = rz.GdpFilter(mu=1.0), rz.GdpResidueFilter(mu=1.0)
        assert part.request(query).cost <= whole.request(query).cost


@st.composite
def tiny_masses(draw, least=-298.0):
    """Two to four outcomes, all but one with masses down to `2^-1000`, the least there is."""
    count = draw(st.integers(1, 3))
    exponents = st.floats(least, -1.0)
    p = [10.0 ** draw(exponents) / 4.0 for _ in range(count)]
    alike = draw(st.booleans())
    q = [a * draw(st.floats(0.01, 2.5)) if alike else 10.0 ** draw(exponents) / 4.0 for a in p]
    return rz.from_pair([*p, 1.0 - sum(p)], [*q, 1.0 - sum(q)])


def costs_no_more(query, mu):
    """What the GDP filter admits the residue filter admits, for as much or less."""
    whole, part = rz.GdpFilter(mu=mu).check(query), rz.GdpResidueFilter(mu=mu).check(query)
    if whole.admitted:
        assert part.admitted
        assert part._price[0] <= whole._price[0]


@settings(max_examples=150)
@given(tiny_masses(), st.sampled_from([0.3, 1.0, 6.0]))
def test_tiny_masses_cost_no_more_than_the_parameter(query, mu):
    costs_no_more(query, mu)


@settings(max_examples=60)
@given(tiny_masses(least=-40.0), st.sampled_from([0.3, 1.0, 6.0]))
def test_masses_next_to_the_rounding_of_losses_cost_no_more_than_the_parameter(query, mu):
    costs_no_more(query, mu)


@pytest.mark.parametrize("mass", [1e-18, 1e-24, 4e-29, 1e-40, 1e-120, 1e-290])
def test_a_tiny_mass_takes_little_of_the_budget(mass):
    """`nu = Φ⁻¹(3t) - Φ⁻¹(t)`, to 30 digits; it used to take all of `mu²`."""
    query = rz.from_pair([mass, 1.0 - mass], [3.0 * mass, 1.0 - 3.0 * mass])
    with mp.workdps(330):
        p, q = mpf(mass), mpf(3.0 * mass)
        nu = mp.sqrt(2) * (mp.erfinv(2 * q - 1) - mp.erfinv(2 * p - 1))
        square = float(nu**2)
    cost = rz.GdpResidueFilter(mu=1.0).check(query).cost
    assert 0.5 * square < cost <= square * (1.0 + 1e-9)
    assert rz.gdp_residue(1.0, query) >= math.sqrt(1.0 - square) * (1.0 - 1e-9)


@pytest.mark.parametrize("share", [0.9, 1.0 - 1e-7, 1.0 - 1e-15])
@pytest.mark.parametrize(
    "query",
    [
        rz.from_pair([1e-12, 1.0 - 1e-12], [3e-12, 1.0 - 3e-12]),
        rz.from_pair([1e-45, 1.0 - 1e-45], [3e-45, 1.0 - 3e-45]),
        *QUERIES.values(),
    ],
    ids=str,
)
def test_next_to_the_end_of_the_budget_it_costs_no_more_than_the_parameter(query, share):
    costs_no_more(query, rz.gdp_parameter(query) / share)


@pytest.mark.parametrize(
    ("mu", "query", "left"),
    [
        (0.5, rz.pure_dp(0.1), 0.489831931927245),
        (1.0, rz.pure_dp(0.5), 0.859990456825928),
        (2.0, rz.pure_dp(0.5), 1.936456714092985),
        (2.0, rz.pure_dp(1.0), 1.729140825371549),
        (1.0, rz.laplace(scale=2.0), 0.881113541676889),
    ],
)
def test_reference_residues(mu, query, left):
    office = rz.GdpResidueFilter(mu=mu)
    office.request(query)
    reached = float(gaussian_variance(office.remaining)) ** 0.5
    assert left * (1 - 1e-9) <= reached <= left * (1 + 1e-14)


def test_ten_thousand_tiny_queries_neither_drift_nor_stall():
    office = rz.GdpResidueFilter(mu=1.0)
    tiny = rz.pure_dp(1e-4)
    costs = []
    for _ in range(2000):
        decision = office.request(tiny)
        assert decision.admitted
        costs.append(Fraction(decision.cost))
    spent = 1 - office.state.left[0]  # type: ignore[attr-defined]
    assert abs(spent - sum(costs)) <= Fraction(1, 10**12) * spent
    # Each takes about eps², a little more as the budget shrinks, never less.
    assert all(a <= b * (1 + Fraction(1, 10**6)) for a, b in itertools.pairwise(costs))
    assert Fraction(999, 1000) * 2000 * Fraction(1, 10**8) <= spent


def test_slack_within_a_target():
    for eps, delta in ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5)):
        office = rz.ApproximateGdpResidueFilter.within(eps, delta)
        assert office.guarantee <= rz.approximate_dp(eps, delta)
        assert office.guarantee.delta(eps) >= 0.999 * delta


def test_slack_takes_mass_that_splits_off_as_it_is_written():
    office = rz.ApproximateGdpResidueFilter(1.0, 1e-5)
    cost, slack = office.request(rz.approximate_dp(0.2, 1e-6)).cost
    assert slack == 1e-6
    assert cost == rz.GdpResidueFilter(mu=1.0).request(rz.pure_dp(0.2)).cost


def test_mass_that_does_not_split_off_is_covered_by_slack():
    """`P` has mass at infinity and `Q` is whole: `R_{0,d}` is no factor (THEORY's third trap)."""
    query = rz.from_pair([0.499, 0.5, 0.001], [0.5, 0.5, 0.0])
    office = rz.ApproximateGdpResidueFilter(1.0, 0.01)
    decision = office.request(query)
    assert decision.admitted
    cost, slack = decision.cost
    assert slack >= 0.001
    left = rz.gaussian(mu=(1.0 - cost) ** 0.5 * 0.9999999)
    budget = rz.gaussian(mu=1.0) + rz.approximate_dp(0.0, slack)
    for x in (1e-3, 0.1, 0.5, 1.0, 2.0, 10.0, 1e3):
        assert (left + query).hockey_stick(x) <= budget.hockey_stick_bounds(x).hi


def test_a_sampled_gaussian_costs_far_less_with_slack():
    query = rz.subsampled_gaussian(1.0, 0.01)
    office = rz.ApproximateGdpResidueFilter.within(3.0, 1e-6, expect=query)
    decision = office.request(query)
    assert decision.admitted
    cost, slack = decision.cost
    assert cost < 1e-3 and slack < 1e-8
    left = rz.gaussian(mu=(float(office.state.left[0])) ** 0.5)  # type: ignore[attr-defined]
    budget = rz.gaussian(mu=office.mu) + rz.approximate_dp(0.0, slack)
    for x in (1e-2, 0.3, 0.9, 1.0, 1.1, 3.0, 20.0, 1e3):
        bounds = (left + query).hockey_stick_bounds(x)
        assert bounds.lo <= budget.hockey_stick_bounds(x).hi
    assert rz.GdpResidueFilter(mu=0.64).request(query).admitted is False


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 1e7])
def test_bad_mu(bad):
    for make in (rz.GdpFilter, rz.GdpResidueFilter):
        with pytest.raises(ArgumentError, match="mu"):
            make(mu=bad)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, float("nan")])
def test_bad_delta(bad):
    with pytest.raises(ArgumentError, match="delta"):
        rz.ApproximateGdpResidueFilter(1.0, bad)


def test_tiny_excesses_warn_of_nothing():
    """Rounding left excesses at 0 or below it, whose logarithms numpy warned of."""
    alphas = (0.0, 0.25584070511983426, 0.4253211254151379, 0.4391488829663547, 0.9559270050283342)
    betas = (1.0, 0.5011109960353777, 0.2947073343426306, 0.28761617135043066, 0.022601552691454963)
    query = mechanisms.FromTradeoff((*alphas, 1.0), (*betas, 0.0))
    sampled = mechanisms.PoissonSampled(query, 0.5)
    assert rz.ApproximateGdpResidueFilter(7.022698956610505, 0.0).check(sampled).admitted
