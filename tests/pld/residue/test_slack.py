"""Gaussian with slack: proven costs against the general order and the definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import residua as rz
from residua.bounds import Floats, Verdict
from residua.pld.order.compare import dominated
from residua.pld.residue.contact_equation import bisected
from residua.pld.residue.excess import FiniteExcess, Transform
from residua.pld.residue.slack import _budgets, _level, slack_cost, tents_above

BLOCK = 10 * rz.subsampled_gaussian(1.0, 0.01)

CASES = [
    (rz.approximate_dp(0.1, 1e-7), 1.0, 1e-6),
    (rz.pure_dp(0.3), 1.0, 1e-4),
    (rz.from_pair([0.2, 0.5, 0.3 - 1e-5, 1e-5], [0.1, 0.7, 0.2, 0.0]), 1.5, 1e-4),
    (rz.from_pair([0.2, 0.5, 0.3, 0.0], [0.1, 0.7, 0.2 - 1e-5, 1e-5]), 1.5, 1e-4),
    (rz.subsampled_gaussian(1.0, 0.01), 0.6, 1e-7),
    (rz.subsampled_gaussian(1.0, 0.01, direction="add"), 0.6, 1e-7),
    (BLOCK, 0.6, 1e-8),
    (rz.laplace(scale=4.0) + rz.approximate_dp(0.05, 1e-9), 1.0, 1e-6),
]


def leftover(mu: float, cost: float) -> rz.Pld:
    return rz.gaussian(mu=math.sqrt(mu * mu - cost))


@pytest.mark.parametrize(("query", "mu", "eta"), CASES, ids=lambda value: repr(value)[:40])
def test_costs_are_proven_and_next_to_what_is_refuted(query: rz.Pld, mu: float, eta: float) -> None:
    cost = slack_cost(mu * mu, query, eta)
    assert cost is not None
    assert 0.0 <= cost.lo <= cost.hi
    budget = rz.gaussian(mu=mu) + rz.approximate_dp(0.0, eta)
    # The general order needs some room on the one side, and the tents are not exact on the other.
    assert dominated(query + leftover(mu, float(cost.hi) * 1.01), budget).verdict is Verdict.YES
    assert dominated(query + leftover(mu, float(cost.hi) * 0.98), budget).verdict is Verdict.NO


def test_slack_helps_and_is_monotone() -> None:
    exact = rz.gdp_residue_cost(0.36, rz.pure_dp(0.2))
    assert exact is not None
    before = float(exact.hi)
    for eta in (0.0, 1e-9, 1e-6, 1e-3):
        cost = slack_cost(0.36, rz.pure_dp(0.2), eta)
        assert cost is not None
        assert float(cost.hi) <= before * (1.0 + 2e-5)
        before = float(cost.hi)
    amplified = slack_cost(0.36, rz.subsampled_gaussian(1.0, 0.01), 1e-8)
    assert amplified is not None
    assert float(amplified.hi) < 1e-3
    assert rz.gdp_residue_cost(0.36, rz.subsampled_gaussian(1.0, 0.01)) is None


def test_mass_at_infinity_beyond_the_slack_does_not_fit() -> None:
    assert slack_cost(1.0, rz.approximate_dp(0.1, 1e-5), 1e-6) is None
    assert slack_cost(1.0, rz.approximate_dp(0.0, 1.0), 0.5) is None
    assert slack_cost(0.01, rz.pure_dp(3.0), 1e-6) is None
    with pytest.raises(ValueError, match="eta must be"):
        slack_cost(1.0, rz.pure_dp(0.1), math.nan)


def test_where_curves_are_close_to_one() -> None:
    """`1 - h` of what is left with the query stays above `(1-η)(1 - h)` of the budget."""
    query = rz.from_pair([0.2, 0.5, 0.3, 0.0], [0.1, 0.7, 0.2 - 1e-5, 1e-5])
    cost = slack_cost(2.25, query, 2e-5)
    assert cost is not None
    both = query + leftover(1.5, float(cost.hi))
    # As x → 0, 1 - h(x) = x (1 - h_rev(1/x)): compare the reversed curves.
    x = np.exp(np.linspace(0.0, 30.0, 61))
    mine = 1.0 - both.reverse().hockey_stick_bounds(x).lo
    theirs = 1.0 - rz.gaussian(mu=1.5).hockey_stick_bounds(x).hi
    assert np.all(mine >= (1.0 - 2e-5) * theirs * (1.0 - 1e-13))


def test_gaussians_split_off() -> None:
    alone = slack_cost(1.0, rz.pure_dp(0.2), 1e-6)
    both = slack_cost(1.0, rz.pure_dp(0.2) + rz.gaussian(mu=0.5), 1e-6)
    assert alone is not None
    assert both is not None
    assert float(both.hi) == pytest.approx(float(alone.hi) + 0.25, rel=1e-14)
    assert slack_cost(Fraction(1, 9), rz.gaussian(mu=0.5), 0.1) is None


def test_a_query_that_takes_all_there_is() -> None:
    """Next to the end nothing is left to be found: all is taken where the query fits, proven."""
    budget, found = rz.gaussian(mu=1.0) + rz.approximate_dp(0.0, 1e-5), []
    for scale in (1.03, 1.0357, 1.0358, 1.05, 1.2):
        cost = slack_cost(1.0, rz.laplace(scale), 1e-5)
        fits = rz.laplace(scale) <= budget
        found.append(None if cost is None else float(cost.hi))
        assert (cost is not None) <= fits
    assert found[0] is None and found[2] == 1.0 and 0.5 < found[4] < 0.99
    assert [c for c in found if c is not None] == sorted((c for c in found if c), reverse=True)


class Counted(FiniteExcess):
    """Counts the places that are worked out."""

    @property
    def places(self) -> list[int]:
        return self.__dict__.setdefault("_counts", [])

    def transform(self, m2: float, l: Floats) -> Transform:
        self.places.append(l.size)
        return super().transform(m2, l)


@pytest.mark.parametrize("rate", [1e-2, 1e-4, 1e-6])
def test_tiny_costs_are_not_searched_for_far_beyond_the_slack(rate: float) -> None:
    """`1/c` is huge, but the slope of the slack reaches the largest loss after `1/m²` of it."""
    eta = 1e-8 * rate
    tents = tents_above(rz.subsampled_gaussian(1.0, rate), _level(eta), 0.05)
    assert tents is not None
    given = tents.excess
    counted = Counted(given.weights, given.losses, 0.0, 0.0)
    found = bisected(counted, 0.2, _budgets(tents, eta)[0], 0.99)
    cost = slack_cost(0.2, rz.subsampled_gaussian(1.0, rate), eta)
    assert cost is not None
    assert found.c == pytest.approx(float(cost.hi), rel=0.05)
    assert sum(counted.places) < 8_000
