"""The certified staircase against the exact residue, and its curve against mpmath."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import residua as rz
from residua.individual.cost_model import largest_eps, pricing_for
from residua.individual.pricing import CostTable, Units, default_levels
from residua.individual.residue_table import (
    cost_of_leaving,
    response_table,
    shared_table,
)

PROMISED = 1e-4


def query(eps: float, laplace: bool) -> rz.Pld:
    return rz.laplace(scale=1.0, sensitivity=eps) if laplace else rz.pure_dp(eps)


def exact_cost(w: float, eps: float) -> mpmath.mpf:
    """Of `R_eps` that leaves `w`: the curves of both sides meet at `x = 1`."""
    with mpmath.workdps(60 + int(w)):
        m, e = mpmath.sqrt(w), mpmath.mpf(eps)
        q = 1 / (1 + mpmath.exp(e))
        a = m / 2 - e / m
        h = mpmath.ncdf(a) - mpmath.exp(e) * mpmath.ncdf(a - m)
        return 8 * mpmath.erfinv(mpmath.tanh(e / 2) + 2 * q * h) ** 2 - mpmath.mpf(w)


@pytest.mark.parametrize("eps", [1e-3, 0.2, 1.0, 5.0, 14.0])
def test_curve_agrees_with_mpmath(eps: float) -> None:
    w = np.geomspace(1e-3, 1e2, 21) * eps * eps
    w = w[w < 1000.0]
    found = cost_of_leaving(w, eps, False)
    for one, cost in zip(w.tolist(), found.tolist(), strict=True):
        exact = exact_cost(one, eps)
        assert exact <= cost <= exact * (1 + 2e-8)


def check_points(
    table: CostTable, units: Units, asked: rz.Pld, count: int, seed: int, spread: float = 1e-6
) -> None:
    """At random budgets: never less than the exact cost, and at most 1e-4 of it more."""
    rng = np.random.default_rng(seed)
    least, most = int(table.budgets[0]), units.capacity
    near = least + (np.exp(rng.uniform(np.log(spread), 0.0, count)) * (most - least)).astype(
        np.int64
    )
    for left in [*near.tolist(), *rng.integers(least, most, count).tolist(), most]:
        after = int(table.charge(np.array([left]))[0])
        exact = rz.gdp_residue_cost(left * units.size, asked)
        charged = (left - after) * units.size
        assert exact is not None and 0 <= after <= left
        assert charged >= Fraction(float(exact.lo))
        assert charged <= Fraction(float(exact.lo)) * (1 + Fraction(PROMISED))
        # What is left really fits beside the query under what was there.
        assert rz.gdp_residue_cost(left * units.size, asked).hi <= charged * (1 + 1e-11)


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("eps", [0.01, 0.3, 0.75])
def test_loses_at_most_a_ten_thousandth(eps: float, laplace: bool, thorough: bool) -> None:
    units = Units.of(Fraction(1))
    table = response_table(eps, laplace, units)
    check_points(table, units, query(eps, laplace), 200 if thorough else 12, 5)


def test_larger_budgets_and_queries() -> None:
    units = Units.of(Fraction(36))
    table = response_table(4.0, False, units)
    check_points(table, units, query(4.0, False), 8, 6, spread=1e-5)


def test_steps_are_monotone_and_fine() -> None:
    units = Units.of(Fraction(1))
    table = response_table(0.2, True, units)
    assert (np.diff(table.budgets) > 0).all() and (np.diff(table.costs) <= 0).all()
    assert (table.costs <= table.budgets).all()
    steps = -np.diff(table.costs) / table.costs[1:]
    assert steps.max() <= PROMISED


def test_what_does_not_fit_is_refused() -> None:
    units = Units.of(Fraction(1, 4))
    table = response_table(0.3, False, units)
    nu = rz.gdp_parameter(rz.pure_dp(0.3))
    assert 0 <= table.budgets[0] * units.size - Fraction(nu) ** 2 < Fraction(1, 10**10)
    assert table.charge(np.array([table.budgets[0] - 1, 0])).tolist() == [-1, -1]
    assert table.charge(np.array([int(table.budgets[0])]))[0] >= 0
    assert response_table(0.8, False, units).budgets.size == 0


def test_any_query_has_a_table() -> None:
    """By halving; here a bounded range, which has no curve of its own."""
    units = Units.of(Fraction(1, 25))
    asked = rz.bounded_range(0.3)
    table = shared_table(asked, units)
    check_points(table, units, asked, 4, 7, spread=1e-3)


def test_levels_round_up_and_keep_the_steps() -> None:
    """A column of eps is charged as the staircase of the level above."""
    filter = rz.GdpResidueFilter(mu=1.0)
    levels = [0.05, 0.1, 0.4]
    pricing = pricing_for(filter, "eps", None, levels)
    units = pricing.units
    rng = np.random.default_rng(8)
    left = rng.integers(0, units.capacity, 4000)
    eps = rng.choice([0.0, 0.03, 0.05, 0.07, 0.1, 0.2, 0.4, 0.5], 4000)
    after = pricing.charge(left, eps)
    for level in levels:
        below = max((other for other in (0.0, *levels) if other < level), default=0.0)
        rows = (eps > below) & (eps <= level)
        shared = response_table(level, False, units).charge(left[rows])
        # Keys are rounded by 2^11 units: at a step the costlier one may be charged.
        assert ((after[rows] <= shared) | (after[rows] == -1)).all()
        assert np.mean(after[rows] == shared) > 0.99
    assert (after[eps > 0.4] == -1).all() and (after[eps == 0.0] == left[eps == 0.0]).all()


def test_levels_of_small_queries_lose_no_bits() -> None:
    """Right above the least budget, where steps are a few units apart."""
    filter = rz.GdpResidueFilter(mu=0.35)
    levels = default_levels(largest_eps(filter))
    for place in (0, 60, 400, 900):
        eps = float(levels[place])
        pricing = pricing_for(filter, "eps", None, [0.5 * eps, eps, 1.5 * eps])
        table = response_table(eps, False, pricing.units)
        least, most = int(table.budgets[0]), pricing.units.capacity
        near = least + np.unique(np.geomspace(1, most - least, 300).astype(np.int64))
        left = np.concatenate([[least - 1, least, most], near])
        after = pricing.charge(left, np.full(left.size, eps))
        shared = table.charge(left)
        assert (after <= shared).all()
        # The same, or the step before it for who has just passed one: within 1e-10 of a budget.
        earlier = table.charge(np.maximum(left - left // 10**10 - 1, 0))
        rows = left > least + least // 10**9 + 1
        assert (left - after <= np.maximum(left - earlier, 0) + left // 10**10 + 1)[rows].all()
        if place <= 60:
            assert np.array_equal(after, shared)


def test_unaffordable_levels() -> None:
    """Beyond what the mechanism itself allows: nobody takes part, and nothing is worked out."""
    for filter in (rz.GdpResidueFilter(mu=0.2), rz.GdpFilter(mu=0.2), rz.ZcdpFilter(rho=0.1)):
        pricing = pricing_for(
            filter, "sensitivity", rz.mechanisms.Laplace(scale=1e-9), [1e-12, 1.0]
        )
        left = np.full(3, pricing.units.capacity)
        after = pricing.charge(left, np.array([0.0, 1e-12, 0.5]))
        assert after[0] == left[0] and 0 < after[1] < left[1] and after[2] == -1
