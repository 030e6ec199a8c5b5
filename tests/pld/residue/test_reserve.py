"""The cost of queries with heavy tails under a reserve, against evaluation at many points."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from residua.pld.residue.reserve import outcomes_above, reserve_cost, rung
from residua.pld.residue.slack import largest_mu

QUERIES = {
    "subsampled": rz.subsampled_gaussian(2.0, 0.05),
    "steps": 20 * rz.subsampled_gaussian(1.5, 0.005),
    "laplaces": 8 * rz.laplace(20.0),
    "response": rz.pure_dp(0.03),
    "different": rz.laplace(30.0) + rz.subsampled_gaussian(3.0, 0.02),
    "atoms": rz.from_pair([0.25, 0.25, 0.5], [0.26, 0.27, 0.47]),
}
BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))


def _budget(eps: float, delta: float) -> tuple[Fraction, Fraction, float, float]:
    v = rung(Fraction(largest_mu(eps, 0.9 * delta)) ** 2)
    kappa = 16.0 / (eps + 0.8)
    lift = kappa * (kappa + 1.0) * float(v) / 2.0
    reserve = rung(Fraction(0.07 * delta * math.exp(kappa * eps - lift)))
    return v, reserve, 7e-6 * delta, kappa + 1.0


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize(("eps", "delta"), BUDGETS)
def test_the_inequality_holds_at_many_points(name, eps, delta):
    v, reserve, slack, order = _budget(eps, delta)
    found = reserve_cost(v, reserve, slack, order, QUERIES[name])
    assert found is not None
    assert 0 < found.cost < v
    assert 0 < found.drawn <= reserve
    kappa = order - 1.0
    lift = kappa * (kappa + 1.0) * float(v) / 2.0
    # The curve of the composition itself, which another evaluator reads.
    left = rz.gaussian(mu=math.sqrt(float(v - found.cost)))
    t = np.linspace(-0.5 * eps, 2.0 * eps, 400)
    right = np.asarray(rz.gaussian(mu=math.sqrt(float(v))).delta_bounds(t).hi)
    right = right + float(found.drawn) * np.exp(lift - kappa * t) + slack
    for side in (QUERIES[name], QUERIES[name].reverse()):
        assert np.all(np.asarray((side + left).delta_bounds(t).lo) <= right)


@pytest.mark.parametrize("name", QUERIES)
def test_hardly_less_would_do(name):
    """The cost is close to what the points themselves ask for."""
    v, reserve, slack, order = _budget(1.0, 1e-6)
    query = QUERIES[name]
    found = reserve_cost(v, reserve, slack, order, query)
    assert found is not None
    kappa = order - 1.0
    lift = kappa * (kappa + 1.0) * float(v) / 2.0
    left = rz.gaussian(mu=math.sqrt(float(v - found.cost * Fraction(97, 100))))
    t = np.linspace(0.0, 2.0, 400)
    budget = np.asarray(rz.gaussian(mu=math.sqrt(float(v))).delta_bounds(t).hi)
    budget = budget + 0.97 * float(found.drawn) * np.exp(lift - kappa * t) + slack
    sides = (query, query.reverse())
    assert any(np.any(np.asarray((s + left).delta_bounds(t).lo) > budget) for s in sides)


@pytest.mark.parametrize("name", QUERIES)
def test_the_outcomes_dominate_the_query(name):
    query = QUERIES[name]
    t = np.linspace(0.0, 3.0, 100)
    sides = outcomes_above(query, 1e-14)
    assert sides is not None
    losses = (query,) if query.is_symmetric else (query, query.reverse())
    for outcomes, side in zip(sides, losses, strict=True):
        for variance in (0.0, 0.01, 1.0):
            whole = side + rz.gaussian(mu=math.sqrt(variance)) if variance else side
            lower = np.asarray(whole.delta_bounds(t).lo)
            assert np.all(lower <= outcomes.heights(variance, t) * (1.0 + 1e-12))


def test_a_query_that_may_lose_too_much_has_no_cost():
    v, reserve, slack, order = _budget(1.0, 1e-6)
    assert reserve_cost(v, reserve, slack, order, rz.pure_dp(3.0)) is None
    assert reserve_cost(v, reserve, slack, order, rz.subsampled_gaussian(0.3, 0.5)) is None
    assert reserve_cost(v, reserve, slack, order, rz.approximate_dp(0.01, 1e-5)) is None


@settings(max_examples=50)
@given(st.fractions(Fraction(1, 10**30), Fraction(10**6)))
def test_rungs_are_close_below(amount):
    low = rung(amount)
    assert low <= amount < low * Fraction(106, 100)
    assert rung(low) == low
