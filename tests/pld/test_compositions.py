"""Mixed compositions against mixtures, contour integrals and lattice sums."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
import strategies
from oracles import Finite, Law


@settings(max_examples=60)
@given(strategies.compositions(), st.floats(-4, 8))
def test_delta(case, t):
    bounds = case.pld.delta_bounds(t)
    assert oracles.agrees(bounds, case.delta(t))
    if case.law.variance and bounds.hi:
        assert bounds.width <= 1e-6 * bounds.hi


@settings(max_examples=25)
@given(strategies.compositions(), st.sampled_from([0.5, 1.0, 2.0, 7.5]))
def test_renyi(case, alpha):
    assert oracles.agrees(case.pld.renyi_bounds(alpha), oracles.near(case.law.renyi(alpha)))


@settings(max_examples=25)
@given(strategies.compositions(), strategies.log_uniform(1e-20, 0.5))
def test_epsilon(case, delta):
    bounds = case.pld.epsilon_bounds(delta)
    if bounds.hi < math.inf:
        assert case.delta(bounds.hi) <= oracles.real(delta)
    else:
        mass = case.law.mass_at_infinity
        # Rationals against rationals: older versions of mpmath do not compare with them.
        level = oracles.real(delta) if isinstance(mass, mp.mpf) else oracles.exact(delta)
        assert mass >= level
    if 0 < bounds.lo < math.inf:
        assert case.delta(bounds.lo) >= oracles.real(delta)


@settings(max_examples=15)
@given(strategies.compositions(), st.floats(0.0, 1.0))
def test_tradeoff_lies_on_or_above_every_tangent(case, alpha):
    """`tau(alpha) >= (1 - alpha - h(x)) / x`, and the lower end keeps to the other side."""
    bounds = case.pld.tradeoff_bounds(alpha)
    assert bounds.lo <= 1 - alpha
    for t in (-2.0, -0.3, 0.0, 0.4, 2.0):
        x = mp.exp(t)
        tangent = (1 - oracles.real(alpha) - oracles.real(case.truth(x))) / x
        assert oracles.near(tangent).lo <= oracles.real(bounds.hi)


@given(strategies.finite(), strategies.gaussians(1e-3, 20), st.floats(-30, 60))
def test_gaussian_and_finite(finite, gaussian, t):
    together = finite + gaussian
    bounds = together.pld.delta_bounds(t)
    assert oracles.agrees(bounds, together.delta(t))
    if bounds.hi > 1e-290:
        assert bounds.width <= 1e-6 * bounds.hi


@pytest.mark.parametrize("t", [1.0, 6.0, 12.0, 17.0, 20.0])
def test_deep_tail_of_a_mixed_stream(t):
    """Down to 1e-30 and below, relative width 1e-6."""
    L = rz.gaussian(mu=1.0) + 4 * rz.laplace(scale=2.0) + 3 * rz.pure_dp(0.25)
    law = Law(oracles.approximate_dp(0.25).power(3), ((oracles.real(0.5), 4),), 1)
    bounds = L.delta_bounds(t)
    truth = law.delta(t)
    assert oracles.agrees(bounds, truth)
    assert bounds.lo > 0
    assert bounds.width <= 1e-6 * bounds.hi
    if t == 20.0:
        assert truth < mp.mpf("1e-30")


def test_streaming_a_thousand_different_queries():
    """A read after each; the intervals hold the exact value of a prefix with a closed form."""
    L = rz.identity()
    last = 0.0
    for i in range(1000):
        kind = i % 3
        if kind == 0:
            L = L + rz.gaussian(sigma=50.0 + i / 100)
        elif kind == 1:
            L = L + rz.laplace(scale=60.0 + i / 100)
        else:
            L = L + rz.pure_dp(0.01 + i / 1e6)
        bounds = L.delta_bounds(0.5)
        assert 0 <= bounds.lo <= bounds.hi <= 1
        assert bounds.hi >= last
        last = bounds.lo


SUBSAMPLED = [
    (1.0, 0.01, 1 / 16, 48, 100),
    (0.8, 0.02, 1 / 8, 24, 1000),
    (2.0, 0.05, 1 / 32, 32, 10**4),
]


@pytest.mark.parametrize(("sigma", "rate", "step", "top", "n"), SUBSAMPLED)
@pytest.mark.parametrize("t", [0.25, 6.0])
def test_many_subsampled_steps(sigma, rate, step, top, n, t):
    losses, masses = oracles.subsampled_lattice(sigma, rate, step, top)
    L = n * rz.from_atoms(losses, masses)
    lattice = {round(z / step): m for z, m in zip(losses, masses, strict=True)}
    total = mp.fsum(lattice.values())
    lattice = {j: m / total for j, m in lattice.items()}
    whole = oracles.ulps(lambda x: oracles.lattice_power(lattice, step, n, x), mp.exp(t), n)
    assert oracles.agrees(L.delta_bounds(t), whole)


@pytest.mark.parametrize("n", [1, 3, 10])
def test_asymmetric_powers_in_both_directions(n):
    p, q = [0.5, 0.25, 0.125, 0.125, 0.0], [0.25, 0.25, 0.375, 0.0, 0.125]
    law = Finite.of(p, q).power(n)
    L = n * rz.from_pair(p, q)
    for t in (-3.0, -0.2, 0.0, 0.7, 4.0):
        x = mp.exp(t)
        assert oracles.agrees(L.delta_bounds(t), law.hockey_stick(x))
        assert oracles.agrees(L.reverse().delta_bounds(t), law.reverse().hockey_stick(x))
