"""`R_{eps,delta}` and its powers against binomial sums, up to a million-fold."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
import strategies


@given(strategies.responses(), strategies.losses)
def test_delta(case, t):
    assert oracles.agrees(case.pld.delta_bounds(t), case.delta(t))


@given(strategies.responses(1e-3, 30), st.floats(0, 1))
def test_tradeoff(case, alpha):
    truth = case.law.finite.real()
    a = oracles.real(alpha)
    best = max([mp.mpf(0), *((1 - a - truth.hockey_stick(x)) / x for x in truth.kinks)])
    if alpha == 0:  # the tangent at x -> 0
        best = 1 - oracles.real(case.law.mass_at_minus_infinity)
    # Dividing by x as small as e^-30 costs digits.
    spread = mp.mpf("1e-40")
    assert oracles.agrees(
        case.pld.tradeoff_bounds(alpha), oracles.Bracket(best - spread, best + spread)
    )


@given(strategies.responses(1e-3, 20), strategies.orders)
def test_renyi(case, alpha):
    assert oracles.agrees(case.pld.renyi_bounds(alpha), oracles.near(case.law.renyi(alpha)))


@example(math.exp(-4.0), 0.0, 1593, 0.875)  # a value among the subnormal floats
@given(
    strategies.log_uniform(1e-4, 3),
    st.one_of(st.just(0.0), strategies.log_uniform(1e-12, 0.1)),
    st.integers(1, 3000),
    st.floats(-1.0, 1.05),
)
def test_powers(eps, delta, n, share):
    L = n * rz.approximate_dp(eps, delta)
    mean = n * eps * math.tanh(eps / 2)
    t = mean + share * (n * eps - mean) if share > 0 else mean * (1 + share)
    truth = oracles.response_power(eps, delta, n, mp.exp(oracles.real(t)))
    assert oracles.agrees(L.delta_bounds(t), truth)


MANY = [
    (0.1, 0.0, 10**5, (900.0, 1000.0, 1200.0, 1500.0)),
    (0.01, 0.0, 10**5, (0.0, 5.0, 20.0, 60.0)),
    (0.001, 1e-12, 10**6, (0.0, 5.0)),
    (0.01, 0.0, 10**6, (50.0, 200.0)),
]


@pytest.mark.parametrize(("eps", "delta", "n", "reads"), MANY)
def test_many(eps, delta, n, reads):
    L = n * rz.approximate_dp(eps, delta)
    for t in reads:
        bounds = L.delta_bounds(t)
        truth = oracles.response_power(eps, delta, n, mp.exp(oracles.real(t)))
        assert oracles.agrees(bounds, truth)
        wider = [
            oracles.response_power(eps, delta, n, mp.exp(oracles.real(t) + move))
            for move in (-1e-3, 1e-3)
        ]
        relative = bounds.width <= 1e-6 * bounds.hi
        assert relative or wider[1] <= oracles.real(bounds.lo)
        assert relative or oracles.real(bounds.hi) <= wider[0]


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12, 1e-20, 1e-30, 1e-60])
def test_epsilon_of_many(delta):
    n, eps = 10**5, 0.01
    bounds = (n * rz.pure_dp(eps)).epsilon_bounds(delta)
    assert bounds.width <= 1e-3
    assert oracles.response_power(eps, 0, n, mp.exp(oracles.real(bounds.hi))) <= oracles.real(delta)
    assert oracles.response_power(eps, 0, n, mp.exp(oracles.real(bounds.lo))) >= oracles.real(delta)


def test_a_million_rare_failures():
    """`1 - (1 - 1e-12)^(10^6)` has its digits in `expm1` and `log1p`."""
    L = 10**6 * rz.approximate_dp(0.0, 1e-12)
    truth = -mp.expm1(10**6 * mp.log1p(-oracles.real(1e-12)))
    assert oracles.agrees(L.mass_at_infinity_bounds, truth)
    assert oracles.agrees(L.delta_bounds(1.0), truth)
    assert L.delta_bounds(1.0).width <= 1e-13 * float(truth)


@pytest.mark.parametrize(("eps", "n"), [(0.1, 20), (0.5, 10), (1.0, 7)])
def test_largest_loss_of_a_power_is_exact(eps, n):
    L = n * rz.pure_dp(eps)
    top = float(oracles.exact(eps) * n)
    assert L.delta_bounds(math.nextafter(top, math.inf)).hi == 0.0
    assert L.delta_bounds(top * (1 - 1e-9)).lo > 0.0
    assert oracles.agrees(L.epsilon_bounds(0.0), oracles.exact(eps) * n)
