"""`G_mu` against erfc in high precision: tiny and huge mu, deep tails on both sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
import strategies
from residua import Order

MUS = (1e-9, 1e-6, 1e-3, 0.05, 0.29999, 0.3, 0.30001, 1.0, 5.0, 20.0, 50.0)


def relative_width(interval: rz.Interval) -> float:
    return interval.width / interval.hi if interval.hi else 0.0


@given(strategies.gaussians(), st.floats(-45, 45))
def test_delta_deep_into_both_tails(case, depth):
    """`depth` standard deviations of the loss from its mean."""
    mu = math.sqrt(case.law.variance)
    t = mu * mu / 2 + depth * mu
    bounds = case.pld.delta_bounds(t)
    truth = case.delta(t)
    assert oracles.agrees(bounds, truth)
    if truth > mp.mpf("1e-290"):
        assert bounds.lo > 0
        assert relative_width(bounds) <= 1e-6


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("depth", [0.0, 1.0, 6.0, 11.5, 20.0, 30.0, 36.0])
def test_relative_accuracy(mu, depth):
    t = mu * mu / 2 + depth * mu
    bounds = rz.gaussian(mu=mu).delta_bounds(t)
    truth = oracles.gaussian(mu, mp.exp(t))
    assert oracles.agrees(bounds, truth)
    assert relative_width(bounds) <= 1e-9


@pytest.mark.parametrize("mu", MUS)
def test_left_tail_keeps_the_excess(mu):
    """Left of the bulk `h(x)` is `1 - x` and a little: reversal reads the little exactly."""
    L = rz.gaussian(mu=mu)
    t = mu * mu / 2 + 9 * mu
    excess = L.delta_bounds(t)
    left = L.delta_bounds(-t)
    assert oracles.agrees(left, oracles.gaussian(mu, mp.exp(-mp.mpf(t))))
    assert excess.lo > 0
    assert left.width <= 1e-14 * left.hi


@given(strategies.gaussians(), strategies.log_uniform(1e-300, 1e300))
def test_hockey_stick(case, x):
    assert oracles.agrees(case.pld.hockey_stick_bounds(x), case.truth(x))


@given(
    strategies.gaussians(1e-6, 30), st.one_of(st.floats(0, 1), strategies.log_uniform(1e-200, 1))
)
def test_tradeoff(case, alpha):
    truth = oracles.gaussian_tradeoff(mp.sqrt(oracles.real(case.law.variance)), alpha)
    assert oracles.agrees(case.pld.tradeoff_bounds(alpha), truth)
    assert oracles.agrees(case.pld.inverse_tradeoff_bounds(alpha), truth)


@given(strategies.gaussians(1e-6, 50), strategies.log_uniform(1e-250, 0.5))
def test_epsilon(case, delta):
    bounds = case.pld.epsilon_bounds(delta)
    assert bounds.hi < math.inf
    assert case.delta(bounds.hi) <= oracles.real(delta)
    if bounds.lo > 0:
        assert case.delta(bounds.lo) >= oracles.real(delta)
    assert bounds.width <= 1e-6 * max(bounds.hi, 1e-300)


@given(strategies.gaussians(1e-9, 1e4), strategies.orders)
def test_renyi(case, alpha):
    assert oracles.agrees(case.pld.renyi_bounds(alpha), oracles.near(case.law.renyi(alpha)))


@given(
    st.lists(
        st.tuples(strategies.log_uniform(1e-4, 5), st.integers(1, 10**6)), min_size=1, max_size=6
    )
)
def test_composition_adds_variances(parts):
    L, variance = rz.identity(), 0
    for mu, n in parts:
        L = L + n * rz.gaussian(mu=mu)
        variance += n * oracles.exact(mu) ** 2
    mu = mp.sqrt(oracles.real(variance))
    for depth in (0.0, 3.0, 12.0):
        t = float(mu * mu / 2 + depth * mu)
        bounds = L.delta_bounds(t)
        assert oracles.agrees(bounds, oracles.gaussian(mu, mp.exp(oracles.real(t))))
        assert relative_width(bounds) <= 1e-6


@given(strategies.log_uniform(1e-3, 1e3), strategies.log_uniform(1e-3, 1e3))
def test_sigma_and_sensitivity_mean_their_quotient(sigma, sensitivity):
    L = rz.gaussian(sigma=sigma, sensitivity=sensitivity)
    mu = oracles.real(oracles.exact(sensitivity) / oracles.exact(sigma))
    t = float(mu * mu / 2 + 2 * mu)
    if t < 1e5:
        truth = oracles.gaussian(mu, mp.exp(oracles.real(t)))
        assert oracles.agrees(L.delta_bounds(t), truth)


@given(strategies.gaussians(1e-9, 50), strategies.gaussians(1e-9, 50))
def test_gaussians_form_a_chain(first, second):
    a, b = first.law.variance, second.law.variance
    expected = Order.EQUAL if a == b else Order.LESS if a < b else Order.GREATER
    assert rz.compare(first.pld, second.pld).verdict == expected


@pytest.mark.parametrize("mu", [20.0, math.exp(3.25), 40.0])
@pytest.mark.parametrize("alpha", [1e-3, 0.5625, 0.999])
def test_tradeoff_of_large_mu(mu, alpha):
    bounds = rz.gaussian(mu=mu).tradeoff_bounds(alpha)
    assert oracles.agrees(bounds, oracles.gaussian_tradeoff(mu, alpha))


def test_thousand_different_queries_with_a_read_after_each():
    L, variance = rz.identity(), 0
    for i in range(1000):
        sigma = 20.0 + 0.01 * i
        L = L + rz.gaussian(sigma=sigma)
        variance += 1 / oracles.exact(sigma) ** 2
        value = L.delta(1.0)
        assert 0 <= value <= 1
        if i % 250 == 249:
            mu = mp.sqrt(oracles.real(variance))
            assert oracles.agrees(L.delta_bounds(1.0), oracles.gaussian(mu, mp.e))


def test_far_beyond_the_floats_the_upper_end_stays_above_zero():
    """The truth is positive however small; an upper bound of 0 would be wrong."""
    L = rz.gaussian(mu=1.0)
    bounds = L.delta_bounds(np.array([40.0, 60.0, 200.0, 5000.0]))
    assert (bounds.hi > 0).all()
    assert (bounds.lo >= 0).all()
