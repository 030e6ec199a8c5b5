"""The traps a filter can fall into; each test fails if the trap is sprung."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from mpmath import mp, mpf

import oracles
import residua as rz
from filters.catalogue import ADDITIVE, CATALOGUE
from oracles import Finite
from residua import mechanisms
from residua.filters.amounts import Left
from residua.filters.target import renyi_budget

SURE = rz.from_pair([1.0, 0.0], [0.5, 0.5])
"""Loss ln 2 for sure, but `Q` has half its mass where `P` has none."""


# 1, 2. One direction does not decide.


@pytest.mark.parametrize("loss", [SURE, SURE.reverse()], ids=["forth", "back"])
def test_trap_1_mass_at_either_infinity_is_charged(loss):
    assert not rz.PureFilter(600.0).request(loss).admitted
    assert not rz.RenyiFilter(2.0, 1e6).request(loss).admitted
    assert not rz.RenyiCurveFilter({2.0: 1e6}).request(loss).admitted
    assert not rz.ZcdpFilter(1e6).request(loss).admitted
    assert not rz.BasicFilter(1.0, 0.49).request(loss).admitted
    basic = rz.BasicFilter(1.0, 0.5)
    assert basic.request(loss).admitted
    assert basic.remaining.delta == 0.0
    assert loss <= rz.approximate_dp(1.0, 0.5)
    assert not loss <= rz.approximate_dp(1.0, 0.49)
    budget = rz.UpdateFilter(rz.approximate_dp(1.0, 0.01), lambda B, L: rz.identity())
    assert not budget.request(loss).admitted


def test_trap_2_the_worse_direction_is_charged():
    p, q = [0.5, 0.499, 0.001], [0.5, 0.25, 0.25]
    law = Finite.of(p, q)
    loss = rz.from_pair(p, q)
    forth, back = law.largest_loss(), law.reverse().largest_loss()
    assert back > 5 * forth
    for each in (loss, loss.reverse()):
        assert rz.PureFilter(10.0).request(each).cost >= back
        assert rz.BasicFilter(10.0, 0.1).request(each).cost.eps >= back
        for alpha in (1.5, 4.0, 20.0):
            worse = max(mp.log(side.moment(alpha)) / (alpha - 1) for side in (law, law.reverse()))
            assert rz.RenyiFilter(alpha, 50.0).request(each).cost >= worse
            assert rz.ZcdpFilter(50.0).request(each).cost >= worse / alpha


def test_trap_2_mechanisms_cost_the_same_in_either_direction():
    mechanism = mechanisms.SubsampledGaussian(0.8, 0.2)
    for name in ("renyi", "zcdp", "approximate_zcdp"):
        filter = CATALOGUE[name].make()
        costs = [filter.check(query).cost for query in (mechanism, *mechanism.plds().values())]
        assert len(set(map(repr, costs))) == 1


# 3. `R_{0,d}` splits off symmetric losses only.


@pytest.mark.parametrize("loss", [SURE, SURE.reverse(), SURE + rz.gaussian(mu=0.01)])
@pytest.mark.parametrize("conversion", ["best", "whitehouse"])
def test_trap_3_nothing_is_split_off_what_does_not_split(loss, conversion):
    filter = rz.ApproximateZcdpFilter(600.0, 0.99, 0.01, conversion)
    decision = filter.request(loss)
    assert not decision.admitted
    assert decision.cost is None
    assert "infinity" in decision.reason
    assert filter.request(rz.approximate_dp(0.5, 0.5)).admitted  # symmetric, and it splits


def test_trap_3_degenerate_losses():
    """Trap 7's pair: all finite losses on one side, the rest at infinity."""
    for loss in (rz.from_atoms([-math.log(2)], [0.5], 0.5), rz.from_atoms([0.0], [2 / 3], 1 / 3)):
        for each in (loss, loss.reverse()):
            assert not rz.PureFilter(600.0).request(each).admitted
            assert not rz.ZcdpFilter(1e6).request(each).admitted
            assert not rz.BasicFilter(600.0, 0.3).request(each).admitted
            decision = rz.BasicFilter(1.0, 0.6).request(each)
            assert decision.admitted
            assert each <= rz.approximate_dp(decision.cost.eps, decision.cost.delta)


# 4. Some order is not enough.

EPS, DELTA = 1.0, 1e-3
ORDERS = (9.0, 40.0)
FIRST = 0.04


def _fitted(alpha: float, rho: Fraction, t: float) -> rz.Pld:
    """The symmetric query on three points with most `delta(t)` and `D_α <= rho`."""
    s, best = mpf(alpha) - 1, (mpf(0), None)
    for k in range(1, 400):
        z = mpf(t) + mpf(k) / 1000
        rise = mp.exp(s * z) - 1 - mp.exp(-z) + mp.exp(-(s + 1) * z)
        p = mp.expm1(s * oracles.real(rho)) / rise * (1 - mpf("1e-9"))
        best = max(best, (p * (1 - mp.exp(t - z)), (p, z)))
    p, z = best[1]
    high, low = float(p), float(p * mp.exp(-z))
    return rz.from_pair([high, 1 - high - low, low], [low, 1 - high - low, high])


def test_trap_4_admitting_while_some_order_has_budget_is_not_free():
    """Each order alone keeps (1, 1e-3); choosing one after the first answer gives 1.29 delta."""
    rhos = {a: renyi_budget(Fraction(a), Fraction(1), Fraction("0.001")) for a in ORDERS}
    filters = {a: rz.RenyiFilter(a, float(rho)) for a, rho in rhos.items()}
    first = rz.pure_dp(FIRST)
    for filter in filters.values():
        assert filter.request(first).admitted
    left = {a: filter.state.left[0] for a, filter in filters.items()}  # type: ignore[attr-defined]
    # What is left of x = e^eps after an answer with loss ±FIRST, and the query for each order.
    answers = {z: EPS - z for z in (FIRST, -FIRST)}
    weights = {FIRST: 1 / (1 + mp.exp(-FIRST)), -FIRST: 1 / (1 + mp.exp(FIRST))}
    options = {z: {a: _fitted(a, left[a], t) for a in ORDERS} for z, t in answers.items()}
    curve = rz.RenyiCurveFilter({a: float(rho) for a, rho in rhos.items()})
    assert curve.request(first).admitted
    real: dict[object, mpf] = {a: mpf(0) for a in (*ORDERS, "either", "every")}
    refused = 0
    for z, t in answers.items():
        gains = {a: options[z][a].delta_bounds(t).lo for a in ORDERS}
        for a in ORDERS:
            assert filters[a].check(options[z][a]).admitted  # so does the rule under attack
            real[a] += weights[z] * gains[a]
        real["either"] += weights[z] * max(gains.values())
        chosen = max(gains, key=lambda a: gains[a])
        refused += not curve.check(options[z][chosen]).admitted
        admitted = [a for a in ORDERS if curve.check(options[z][a]).admitted]
        real["every"] += weights[z] * max((gains[a] for a in admitted), default=0)
    assert all(real[a] <= DELTA for a in ORDERS)
    assert real["either"] > 1.29 * DELTA
    assert refused
    assert real["every"] <= DELTA
    assert curve.guarantee.delta(EPS) <= DELTA


# 8. A refusal ends nothing: test_shape.py, for every filter. It must also tell nothing.


@pytest.mark.parametrize("name", ADDITIVE)
def test_trap_8_refusals_leave_no_trace_in_later_decisions(name):
    quiet, loud = CATALOGUE[name].make(), CATALOGUE[name].make()
    for k in range(CATALOGUE[name].times + 2):
        loud.request(rz.pure_dp(100.0 + k))
        a, b = quiet.request(CATALOGUE[name].part), loud.request(CATALOGUE[name].part)
        assert (a.admitted, a.state, a.cost) == (b.admitted, b.state, b.cost)
        assert a.reason == b.reason


# 9. NaN never grants, and several budgets at once are not free.


@pytest.mark.parametrize("name", ADDITIVE)
def test_trap_9_nan_never_grants(name):
    filter = CATALOGUE[name].make()
    width = len(filter.initial().left)  # type: ignore[attr-defined]
    for left in (math.nan, math.inf, mpf("nan")):
        with pytest.raises(rz.ResiduaError):
            filter.decide(Left(filter.fingerprint, (left,) * width), CATALOGUE[name].part)
    for build in (rz.pure_dp, lambda v: rz.gaussian(mu=v), lambda v: rz.approximate_dp(0.1, v)):
        with pytest.raises(rz.ArgumentError):
            filter.request(build(math.nan))
    for build in (mechanisms.PureDp, mechanisms.Zcdp, mechanisms.Gdp):
        with pytest.raises(rz.ArgumentError):
            filter.request(build(math.nan))
    with pytest.raises(rz.ArgumentError):
        filter.request(mechanisms.Gaussian(sigma=math.nan))
    assert filter.remaining == filter.capacity


def test_trap_9_admitting_what_any_budget_admits_is_not_free():
    """Twelve `R_0.05`, then `G_0.1714` or `R_0.405`, whichever serves: 1.75 delta."""
    delta = 1e-6
    spent = 12 * rz.pure_dp(0.05)
    budgets = [rz.gaussian(mu=0.1714), rz.pure_dp(0.405)]
    alone = [(spent + budget).delta_bounds(EPS).hi for budget in budgets]
    assert max(alone) <= delta
    weights = oracles.approximate_dp(0.05).power(12)
    real = mp.fsum(
        p * max(budget.delta_bounds(float(EPS - mp.log(p / q))).lo for budget in budgets)
        for p, q in weights.real().pairs
    )
    assert 1.7 * delta < real < 1.8 * delta
    both = rz.UpdateFilter(rz.approximate_dp(EPS, delta), lambda B, L: budgets[0] | budgets[1])
    decision = both.request(spent)
    assert not decision.admitted
    assert "more than the query allows" in decision.reason


def test_one_budget_keeps_one_relation():
    """Mechanisms under different neighbouring relations do not add up to a guarantee."""
    replaced = mechanisms.SampledWithoutReplacement(mechanisms.Laplace(1.0), 1000, 10)
    sampled = mechanisms.SubsampledGaussian(1.0, 0.01)
    office = rz.RenyiFilter(8.0, 0.01)
    with pytest.raises(rz.ArgumentError, match="relation must be named"):
        office.request(replaced)
    assert office.request(replaced, relation="replace-one")
    before = office.state
    with pytest.raises(rz.ArgumentError, match="relation must be replace-one"):
        office.request(sampled)
    assert office.state == before
    assert office.request(sampled, relation="replace-one")
    assert office.request(rz.gaussian(sigma=100.0))
