"""Laplace laws and their sums against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
import strategies
from oracles import Law
from residua import Order
from residua.pld.families import symmetric


@given(strategies.laplaces(), st.floats(-1.5, 1.5))
def test_delta(case, share):
    """`share` of the largest loss, beyond it included."""
    t = share * float(case.law.laplaces[0][0])
    assert oracles.agrees(case.pld.delta_bounds(t), case.delta(t))


@given(strategies.laplaces())
def test_beyond_the_largest_loss_delta_is_zero(case):
    top = float(case.law.laplaces[0][0])
    assert case.pld.delta_bounds(top * (1 + 1e-9)) == rz.Interval(0.0, 0.0)


@given(strategies.laplaces(1e-3, 20), st.floats(0, 1))
def test_tradeoff(case, alpha):
    """Two lines and a hyperbola between them."""
    e = oracles.real(case.law.laplaces[0][0])
    a = oracles.real(alpha)
    bend = mp.exp(-e) / 2
    if a < bend:
        truth = 1 - mp.exp(e) * a
    elif a <= mp.mpf(1) / 2:
        truth = mp.exp(-e) / (4 * a)
    else:
        truth = mp.exp(-e) * (1 - a)
    assert oracles.agrees(case.pld.tradeoff_bounds(alpha), truth)


@given(strategies.laplaces(1e-4, 30), strategies.orders)
def test_renyi(case, alpha):
    assert oracles.agrees(case.pld.renyi_bounds(alpha), oracles.near(case.law.renyi(alpha)))


@given(strategies.laplaces(1e-3, 30), st.floats(0, 1))
def test_epsilon(case, delta):
    bounds = case.pld.epsilon_bounds(delta)
    assert case.delta(bounds.hi) <= oracles.real(delta)
    if bounds.lo > 0:
        assert case.delta(bounds.lo) >= oracles.real(delta)
    assert bounds.width <= 1e-3


@settings(max_examples=20)
@given(strategies.laplaces(0.01, 3.0), st.integers(2, 40), st.floats(-0.9, 0.95))
def test_powers(case, n, share):
    many = case.times(n)
    t = share * n * float(case.law.laplaces[0][0])
    bounds = many.pld.delta_bounds(t)
    assert oracles.agrees(bounds, many.delta(t))
    assert_narrow_in_eps(many, t, bounds)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(strategies.laplaces(0.05, 2.0), st.integers(1, 3)), min_size=2, max_size=3),
    st.floats(-0.5, 0.9),
)
def test_sums_of_different_ones(parts, share):
    total = parts[0][0].times(parts[0][1])
    for case, n in parts[1:]:
        total = total + case.times(n)
    t = share * float(mp.fsum(n * oracles.real(e) for e, n in total.law.laplaces))
    bounds = total.pld.delta_bounds(t)
    assert oracles.agrees(bounds, total.delta(t))
    assert_narrow_in_eps(total, t, bounds)


def assert_narrow_in_eps(case: strategies.Case, t: float, bounds: rz.Interval) -> None:
    """The interval lies between the truths 1e-3 to the left and to the right."""
    assert oracles.real(bounds.hi) <= case.delta(t - 1e-3)
    assert oracles.real(bounds.lo) >= case.delta(t + 1e-3)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_deep_tail_of_a_hundred(share):
    """From 1e-7 down to below 1e-30 and lower."""
    L = 100 * rz.laplace(scale=10.0)
    law = Law(laplaces=((oracles.exact(1) / oracles.exact(10.0), 100),))
    t = 10 * share
    truth = law.delta(t)
    assert oracles.agrees(L.delta_bounds(t), truth)
    assert L.delta_bounds(t).lo > 0


@given(strategies.laplaces(1e-3, 20), strategies.laplaces(1e-3, 20))
def test_laplaces_form_a_chain(first, second):
    a, b = first.law.laplaces[0][0], second.law.laplaces[0][0]
    expected = Order.EQUAL if a == b else Order.LESS if a < b else Order.GREATER
    got = rz.compare(first.pld, second.pld).verdict
    assert got == expected or (got == Order.UNDECIDED and abs(a / b - 1) < 1e-12)


@pytest.mark.parametrize(("scale", "sensitivity"), [(3.0, 1.0), (0.7, 0.1), (10.0, 3.0)])
def test_scale_and_sensitivity_mean_their_quotient(scale, sensitivity):
    L = rz.laplace(scale=scale, sensitivity=sensitivity)
    e = oracles.exact(sensitivity) / oracles.exact(scale)
    for share in (0.1, 0.5, 0.99, 1.0 - 1e-12):
        x = math.exp(share * float(e))
        assert oracles.agrees(L.hockey_stick_bounds(x), oracles.laplace(e, x))


@pytest.mark.parametrize("eps", [1e-3, 0.11, 0.3, 4.0])
def test_log_moments_of_small_orders_keep_their_digits(eps):
    """What is said of zCDP divides them by the order: noise there would be noise in costs."""
    s = np.array([1e-9, 1e-7, 1e-4, 1e-2, -1e-7, -1.0 + 2.0**-20])
    half = np.array([0.5])
    value, error = symmetric.log_moment(np.array([eps]), half, half, s)
    with mp.workdps(40):
        for at, found, wrong in zip(s.tolist(), value, error, strict=True):
            order, e = mp.mpf(at), mp.mpf(eps)
            moment = (order + 1) * mp.exp(order * e) + order * mp.exp(-(order + 1) * e)
            gap = abs(mp.log(moment / (2 * order + 1)) - mp.mpf(float(found)))
            assert gap <= float(wrong)
            assert gap <= 1e-12 * abs(found)
