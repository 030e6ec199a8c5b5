"""Every fast path of the filters beside a slow exact one."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import mixture_oracles
import oracles
import residua as rz
import strategies
from mixture_oracles import Blend
from oracles import Finite, Law
from residua import mechanisms
from residua.filters import amounts
from residua.filters.additive.zcdp import _whitehouse, zcdp_cost
from residua.filters.costs import renyi_cost
from residua.filters.potential.renyi_commit import log_constant, potential_cost
from residua.filters.target import best_order, renyi_budget, zcdp_budget
from residua.pld.residue.gdp_parameter import zcdp_parameter, zcdp_parameter_bounds

TIGHT = 1e-5


def laplace_law(eps: float) -> Law:
    return Law(laplaces=((Fraction(eps), 1),))


# ------------------------------------------------------------------- zCDP parameters


def quotient(law: Any, alpha: mpf) -> mpf:
    return max(side.renyi(alpha) for side in (law, law.reverse())) / alpha


def supremum(law: object) -> mpf:
    """The largest `D_α / α`: a scan over orders in powers of two, then golden section."""
    ks = [mpf(k) for k in range(-40, 30)]
    best = max(ks, key=lambda k: quotient(law, 1 + mpf(2) ** k))
    return oracles.maximum(lambda k: quotient(law, 1 + mpf(2) ** (best + k)), low=-1.0, high=1.0)


LAWS = {
    "laplace": (rz.laplace(scale=2.0), laplace_law(0.5)),
    "laplace large": (rz.laplace(scale=0.125), laplace_law(8.0)),
    "laplace small": (rz.laplace(scale=256.0), laplace_law(2**-8)),
    "response": (rz.pure_dp(0.5), Law(oracles.approximate_dp(0.5))),
    "response large": (rz.pure_dp(12.0), Law(oracles.approximate_dp(12.0))),
    "range": (rz.bounded_range(1.5), Blend(ranges=((Fraction(3, 2), Fraction(0), 1),))),
    "skew": (
        rz.from_pair([0.5, 0.375, 0.125], [0.25, 0.25, 0.5]),
        Law(Finite.of([4, 3, 1], [2, 2, 4])),
    ),
    "rare": (
        rz.from_pair([2**-20, 1 - 2**-20], [2**-30, 1 - 2**-30]),
        Law(Finite.of([2**10, 2**30 - 2**10], [1, 2**30 - 1])),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_zcdp_parameters_are_suprema(name):
    pld, law = LAWS[name]
    truth = supremum(law)
    bounds = zcdp_parameter_bounds(pld)
    assert bounds.lo <= truth * (1 + mpf("1e-12"))
    assert truth <= bounds.hi <= truth * (1 + TIGHT)
    assert oracles.real(zcdp_cost(pld)) >= truth * (1 - mpf("1e-20"))
    assert zcdp_parameter(pld.reverse()) == pytest.approx(bounds.hi, rel=TIGHT)


@settings(max_examples=15)
@given(st.one_of(strategies.dyadic(max_size=4, bits=10), strategies.finite(3, False, False)))
def test_zcdp_parameters_lie_above_every_order(case):
    high = zcdp_parameter(case.pld)
    if case.law.mass_at_infinity or case.law.mass_at_minus_infinity:
        assert high == math.inf
        return
    for k in range(-20, 40, 2):
        assert quotient(case.law, 1 + mpf(2) ** k) <= high + mpf("1e-50")


@given(st.floats(2.0**-1000, 600.0))
def test_zcdp_of_a_response(eps):
    bounds = zcdp_parameter_bounds(rz.pure_dp(eps))
    e = oracles.real(eps)
    truth = e * mp.tanh(e / 2)
    assert bounds.lo <= truth <= bounds.hi
    assert bounds.hi <= truth * (1 + mpf("1e-13")) + mpf("1e-299")
    assert bounds.hi > 0


def test_zcdp_of_a_sampled_gaussian_is_that_of_the_whole():
    """High orders do not see the sampling."""
    for rate in (0.5, 0.01):
        bounds = zcdp_parameter_bounds(rz.subsampled_gaussian(2.0, rate))
        assert bounds.lo <= 1 / 8 <= bounds.hi <= (1 + TIGHT) / 8
    law = mixture_oracles.subsampled(2.0, 0.5, "remove")
    for alpha in (2, 20, 200):
        assert law.log_moment(alpha - mpf(1)) / ((alpha - 1) * alpha) <= bounds.hi


def test_costs_add_up_over_compositions():
    parts = [rz.laplace(scale=4.0), rz.pure_dp(0.25), rz.gaussian(sigma=7.0)]
    for cost in (zcdp_cost, lambda loss: renyi_cost(loss, 6.0)):
        each = sum(cost(part) for part in parts)
        assert each <= cost(sum(parts, rz.identity())) * (1 + Fraction(1, 10**13))
        assert cost(sum(parts, rz.identity())) <= each * (1 + Fraction(1, 10**13))


@pytest.mark.parametrize("alpha", [1.0 + 1e-9, 1.001, 1.1, 2.0, 8.0, 1e4, 1e9])
def test_gaussian_costs_are_exact(alpha):
    third = rz.gaussian(sigma=3.0)
    assert renyi_cost(9 * third, alpha) == amounts.written(alpha) / 2
    assert zcdp_cost(third) == Fraction(1, 18)
    assert zcdp_cost(rz.gaussian(mu=0.1)) == Fraction(1, 200)


def test_costs_do_not_depend_on_what_was_asked_before():
    """Equal PLDs, written differently: each is charged as it is written."""
    whole = 2.0**51
    pair = (
        rz.gaussian(sigma=0.7, sensitivity=0.1),
        rz.gaussian(sigma=0.7 * whole, sensitivity=0.1 * whole),
    )
    assert pair[0] == pair[1]
    costs = [(zcdp_cost(loss), renyi_cost(loss, 2.0)) for loss in pair]
    assert costs[0][0] == Fraction(1, 98) != costs[1][0]
    again = [(zcdp_cost(loss), renyi_cost(loss, 2.0)) for loss in reversed(pair)]
    assert again == costs[::-1]


@given(strategies.log_uniform(1e-30, 1.0), st.sampled_from([1.0 + 1e-6, 1.5, 8.0, 1000.0]))
def test_tiny_losses_cost_what_they_are(eps, alpha):
    for pld, law in (
        (rz.pure_dp(eps), Law(oracles.approximate_dp(eps))),
        (rz.laplace(scale=1.0, sensitivity=eps), laplace_law(eps)),
    ):
        with mp.extradps(80):
            truth = law.renyi(alpha) if eps > 1e-12 else oracles.real(eps) ** 2 * alpha / 2
            cost = oracles.real(renyi_cost(pld, alpha))
            assert cost >= truth * (1 - mpf("1e-11"))
            if alpha >= 1.5 and alpha * eps < 1e-2:
                assert cost <= truth * (1 + mpf("0.02"))


# ------------------------------------------------------------------------ conversion


def delta_of(alpha: object, rho: object, eps: object) -> mpf:
    """Canonne, Kamath and Steinke 2020, proposition 12, as it is printed."""
    a, r, e = (oracles.real(v) for v in (alpha, rho, eps))
    return mp.exp((a - 1) * (r - e)) / (a - 1) * (1 - 1 / a) ** a


decimals = st.integers(1, 60000).map(lambda k: Fraction(k, 1000))
deltas = st.integers(1, 300).map(lambda k: Fraction(1, 10**k))
orders = st.one_of(
    st.integers(1, 10**6).map(lambda k: 1 + Fraction(k, 1000)),
    st.sampled_from([1 + Fraction(1, 10**9), 1 + Fraction(1, 10**6), Fraction(10**9)]),
)


@given(orders, decimals, deltas)
def test_renyi_budgets_are_the_conversion_solved(alpha, eps, delta):
    rho = renyi_budget(alpha, eps, delta)
    with mp.extradps(80):
        limit = oracles.real(delta)
        if rho == 0:
            assert delta_of(alpha, Fraction(1, 10**18) * (1 + eps), eps) > limit
            return
        assert delta_of(alpha, rho, eps) <= limit
        assert delta_of(alpha, rho * (1 + Fraction(1, 10**15)) + Fraction(1, 10**18), eps) > limit


def test_a_budget_that_all_but_cancels_is_still_below():
    """`eps` such that the terms leave 1e-25: forty digits less what cancels."""
    alpha, delta = Fraction(17), Fraction(1, 10**9)
    with mp.workdps(120):
        a, d = oracles.real(alpha), oracles.real(delta)
        zero = -(mp.log(a * d) / (a - 1) - mp.log(1 - 1 / a))
        for k in (22, 25, 30, 36, 38):
            eps = Fraction(int((zero + mpf(10) ** -k) * mpf(10) ** 60), 10**60)
            rho = renyi_budget(alpha, eps, delta)
            assert rho == 0 or delta_of(alpha, rho, eps) <= d


@settings(max_examples=25)
@given(decimals, deltas)
def test_zcdp_budgets(eps, delta):
    rho = zcdp_budget(eps, delta)
    e, d = oracles.real(eps), oracles.real(delta)
    alpha = best_order(eps, delta)
    if rho == 0:
        return
    assert delta_of(alpha, rho * alpha, eps) <= d
    # No other order gives more than 1e-8 more.
    for k in range(-20, 21):
        a = 1 + (oracles.real(alpha) - 1) * mpf(2) ** (mpf(k) / 4)
        other = (e + mp.log(a * d) / (a - 1) - mp.log(1 - 1 / a)) / a
        assert other <= oracles.real(rho) * (1 + mpf("1e-8"))
    # Bun and Steinke 2016 is never better.
    level = mp.log(1 / d)
    assert (mp.sqrt(level + e) - mp.sqrt(level)) ** 2 <= oracles.real(rho) * (1 + mpf("1e-8"))


@given(decimals, deltas)
def test_whitehouse_budgets(eps, aside):
    rho = oracles.real(_whitehouse(eps, aside))
    level, e = mp.log(1 / oracles.real(aside)), oracles.real(eps)
    assert rho + 2 * mp.sqrt(rho * level) <= e
    more = rho * (1 + mpf("1e-30"))
    assert more + 2 * mp.sqrt(more * level) > e


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-6), (0.2, 1e-3), (4.0, 1e-9)])
def test_conversions_hold_for_actual_worst_cases(eps, delta):
    """The most Gaussian noise that the budget allows, and the largest PLD within it."""
    budget = zcdp_budget(amounts.written(eps), amounts.written(delta))
    mu = amounts.root_down(2 * budget)
    assert rz.gaussian(mu=mu).delta(eps) <= delta
    assert rz.gaussian(mu=1.3 * mu).delta_bounds(eps).lo > delta  # and not by a wide margin
    alpha = float(best_order(amounts.written(eps), amounts.written(delta)))
    rho = renyi_budget(amounts.written(alpha), amounts.written(eps), amounts.written(delta))
    worst = mechanisms.Rdp((alpha,), (amounts.reported(rho),)).pld(side="below")
    assert worst.delta_bounds(eps).lo <= delta
    assert worst.delta_bounds(eps).lo > 0.9 * delta


# ------------------------------------------------------------------------- potential


def gaussian_curve(mu: float) -> Callable[[mpf], mpf]:
    return lambda t: oracles.gaussian(mu, mp.exp(t))


def laplace_curve(eps: float) -> Callable[[mpf], mpf]:
    return lambda t: oracles.laplace(eps, mp.exp(t))


def curves(law: Any) -> list[Callable[[mpf], mpf]]:
    return [law.delta, law.reverse().delta]


POTENTIALS = {
    "gaussian": (rz.gaussian(mu=1.0), [gaussian_curve(1.0)]),
    "small gaussian": (rz.gaussian(mu=0.125), [gaussian_curve(0.125)]),
    "large gaussian": (rz.gaussian(mu=4.0), [gaussian_curve(4.0)]),
    "response": (rz.pure_dp(1.0), curves(Law(oracles.approximate_dp(1.0)))[:1]),
    "small response": (rz.pure_dp(2**-6), curves(Law(oracles.approximate_dp(2**-6)))[:1]),
    "responses": (3 * rz.pure_dp(0.5), curves(Law(oracles.approximate_dp(0.5).power(3)))[:1]),
    "laplace": (rz.laplace(scale=1.0), [laplace_curve(1.0)]),
    "small laplace": (rz.laplace(scale=64.0), [laplace_curve(2**-6)]),
    "skew": (LAWS["skew"][0], curves(LAWS["skew"][1])),
    "subsampled": (
        rz.subsampled_gaussian(1.0, 0.25),
        curves(mixture_oracles.subsampled(1.0, 0.25, "remove")),
    ),
}


def highest(curve: Callable[[mpf], mpf], alpha: float, right: float, points: int) -> mpf:
    """The largest `g(t)`: a scan, then golden section around each of the best points."""
    s = oracles.real(alpha) - 1
    constant = s * mp.log(1 - 1 / (s + 1)) - mp.log(s + 1)

    def g(t: mpf) -> mpf:
        h = oracles.real(curve(t))
        return t + (mp.log(h) - constant) / s if h > 0 else -mp.inf

    left = mp.log(1 - 1 / oracles.real(alpha)) - mpf("0.1")
    step = (right - left) / points
    values = [(g(left + step * k), k) for k in range(points + 1)]
    best = max(values)[0]
    for _, k in sorted(values)[-2:]:
        a, b = left + step * (k - 1), left + step * (k + 1)
        for _ in range(24):
            c, d = b - (b - a) * mpf("0.618034"), a + (b - a) * mpf("0.618034")
            first, second = g(c), g(d)
            best = max(best, first, second)
            a, b = (a, d) if first > second else (c, b)
    return best


@pytest.mark.parametrize(
    ("name", "alpha"),
    [
        (name, a)
        for name in POTENTIALS
        for a in (1.5, 6.0, 40.0)
        if (name, a) != ("subsampled", 1.5)
    ],
)
def test_potentials_are_suprema(name, alpha):
    pld, sides = POTENTIALS[name]
    cost = potential_cost(pld, alpha)
    assert cost == potential_cost(pld.reverse(), alpha)
    divergence = max(pld.renyi(alpha), pld.reverse().renyi(alpha))
    top = max(pld.renyi(math.inf), pld.reverse().renyi(math.inf))
    right = min(top, 2.0 * divergence + 1.0)
    with mp.workdps(40):
        points = 12 if name == "subsampled" else 60
        best = max(highest(curve, alpha, right, points) for curve in sides)
        assert best <= cost + mpf("1e-35")
        if (alpha - 1.0) * divergence < 600.0:  # else the curve is below what floats can say
            assert cost <= best * (1 + mpf("1e-6")) + mpf("1e-8")
    assert cost <= divergence
    assert log_constant(alpha) == pytest.approx(
        (alpha - 1) * math.log(1 - 1 / alpha) - math.log(alpha), rel=1e-12
    )


def test_potentials_of_the_extremes():
    assert potential_cost(rz.identity(), 4.0) == 0.0
    assert potential_cost(rz.approximate_dp(0.5, 1e-9), 4.0) == math.inf
    assert potential_cost(rz.approximate_dp(0.5, 1.0), 4.0) == math.inf
    for loss in (rz.from_pair([1.0, 0.0], [0.5, 0.5]), rz.from_pair([0.5, 0.5], [1.0, 0.0])):
        assert potential_cost(loss, 4.0) == math.inf
    for eps in (1e-6, 100.0, 600.0):
        cost = potential_cost(rz.pure_dp(eps), 3.0)
        assert 0.0 < cost <= rz.pure_dp(eps).renyi(3.0)


def test_zcdp_of_a_long_list_of_atoms():
    """A discrete Gaussian loses just less than `1 / 2σ²`; the list is a little below it."""
    sigma = 200.0
    below = rz.mechanisms.DiscreteGaussian(sigma=sigma).pld(side="below")
    bounds = zcdp_parameter_bounds(below)
    exact = 0.5 / sigma**2
    assert 0.999 * exact <= bounds.lo <= exact * (1.0 + 1e-9)
    assert bounds.lo <= bounds.hi <= 1.01 * exact
