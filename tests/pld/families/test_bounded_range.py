"""Bounded range, and its mixtures with randomized response, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import mixture_oracles
import oracles
import residua as rz
from mixture_oracles import Blend, range_curve, range_moment, range_sum
from residua.pld.families import symmetric
from residua.pld.families.symmetric import BoundedRange
from strategies import log_uniform

weights = st.one_of(st.just(0.0), st.floats(0.0, 1.0, exclude_max=True), log_uniform(1e-30, 0.5))


@given(log_uniform(1e-6, 100.0), weights, st.floats(-1.5, 1.5))
def test_curve(eps, atomic, share):
    L = rz.bounded_range(eps, atomic=atomic)
    t = share * eps
    assert oracles.agrees(L.delta_bounds(t), near(range_curve(eps, atomic, mp.exp(mpf(t)))))
    x = math.exp(t)
    if x > 0:
        assert oracles.agrees(L.hockey_stick_bounds(x), near(range_curve(eps, atomic, x)))
    if 0 <= share < 1 - 1e-6:
        bounds = L.delta_bounds(t)
        assert bounds.width <= 1e-9 * bounds.hi


def near(value: mpf) -> oracles.Bracket:
    return oracles.Bracket(value * (1 - mpf("1e-25")), value * (1 + mpf("1e-25")))


@pytest.mark.parametrize("eps", [2.0**-1000, 1e-200, 1e-160, 1e-30, 1e-9, 300.0, 600.0])
@pytest.mark.parametrize("atomic", [0.0, 1e-300, 0.25, 1.0 - 2.0**-53])
def test_extreme_parameters(eps, atomic):
    L = rz.bounded_range(eps, atomic=atomic)
    with mp.workdps(700):
        for t in (0.0, 0.25 * eps, 0.999 * eps, -0.5 * eps):
            assert oracles.agrees(L.delta_bounds(t), range_curve(eps, atomic, mp.exp(mpf(t))))
    for t in (eps, 2 * eps, 1e6, 1e300):
        assert L.delta_bounds(t) == rz.Interval(0.0, 0.0)
    assert L.delta_bounds(-1e300) == rz.Interval(1.0, 1.0) or L.delta_bounds(-1e300).hi == 1.0


def test_weight_of_a_laplace():
    """`w = (1 + e^-e) / 2` is Laplace noise, up to the rounding of `w`."""
    for eps in (0.125, 0.5, 2.0):
        w = (1.0 + math.exp(-eps)) / 2.0
        one, two = rz.bounded_range(eps, atomic=w), rz.laplace(scale=1.0 / eps)
        for n in (1, 2, 5):
            for t in np.linspace(-0.9, 0.9, 7) * n * eps:
                a, b = (n * one).delta_bounds(t), (n * two).delta_bounds(t)
                assert a.lo <= b.hi + 1e-14
                assert b.lo <= a.hi + 1e-14


def test_ends_of_the_weight():
    assert rz.bounded_range(0.5, atomic=1.0) == rz.pure_dp(0.5)
    assert rz.bounded_range(0.0) == rz.identity()
    assert rz.bounded_range(0.0, atomic=0.5) == rz.identity()


@given(log_uniform(1e-3, 20.0), st.floats(-0.999, 0.999))
def test_curve_is_the_supremum_of_two_point_pairs(eps, share):
    """The worst pair with losses `z` and `z - eps` at each `t`, and no pair above the curve."""
    e, t = mpf(eps), mpf(share) * mpf(eps)
    L = rz.bounded_range(eps)
    bounds = L.delta_bounds(float(t))
    t = mpf(float(t))

    def pair(high: mpf) -> mpf:
        low = high - e
        p = (1 - mp.exp(-low)) / (mp.exp(-high) - mp.exp(-low))
        return max(p * (1 - mp.exp(t - high)), 0) + max((1 - p) * (1 - mp.exp(t - low)), 0)

    assert oracles.agrees(bounds, near(pair((t + e) / 2)))
    for other in np.linspace(0.01, 0.99, 15):
        assert pair(mpf(float(other)) * e) <= mpf(bounds.hi) * (1 + mpf("1e-25"))


orders = st.one_of(
    st.floats(-0.999, -0.001), st.floats(-60, -1.001), log_uniform(1e-6, 60), st.just(-0.5)
)


def columns(eps: float, atomic: float) -> list[np.ndarray]:
    return [np.array([v]) for v in (eps, *BoundedRange(eps, atomic).weights)]


@given(log_uniform(1e-6, 100.0), weights, orders)
def test_log_moment(eps, atomic, s):
    value, error = symmetric.log_moment(*columns(eps, atomic), np.array([s]))
    truth = mp.log(range_moment(eps, atomic, mpf(s)))
    assert abs(truth - mpf(float(value[0]))) <= mpf(float(error[0]))
    assert error[0] <= 1e-13 * (1 + abs(s)) * (1 + eps)


@given(
    log_uniform(1e-6, 50.0),
    weights,
    log_uniform(1e-3, 100.0),
    st.one_of(log_uniform(1e-6, 1e5), log_uniform(1e-3, 1e2)),
)
def test_nodes_and_their_fall(eps, atomic, lam, omega):
    at = np.array([omega])
    value, error = symmetric.nodes(*columns(eps, atomic), lam, at)
    base = range_moment(eps, atomic, mpf(lam))
    truth = range_moment(eps, atomic, mp.mpc(lam, omega)) / base
    assert abs(truth - mp.mpmathify(complex(value[0]))) <= mpf(float(error[0]))
    bound = symmetric.log_decay(*columns(eps, atomic), lam, at)
    for more in (1, mpf("1.1"), 2, mpf("7.3")):
        later = abs(range_moment(eps, atomic, mp.mpc(lam, mpf(omega) * more)) / base)
        assert later <= mp.exp(mpf(float(bound[0])))


@given(log_uniform(1e-6, 100.0), weights, log_uniform(0.01, 50.0))
def test_renyi(eps, atomic, alpha):
    L = rz.bounded_range(eps, atomic=atomic)
    law = Blend(ranges=((eps, atomic, 1),))
    if abs(alpha - 1) > 1e-3:
        assert oracles.agrees(L.renyi_bounds(alpha), law.renyi(alpha))
    mean = law.renyi(1)
    spread = abs(mean) * mpf("1e-20")  # of a numerical derivative
    assert oracles.agrees(L.renyi_bounds(1.0), oracles.Bracket(mean - spread, mean + spread))
    assert L.renyi_bounds(math.inf) == rz.Interval(eps, eps)


COMPOSED = [
    (0.5, 0.0, 2),
    (0.5, 0.0, 3),
    (0.25, 0.0, 10),
    (0.1, 0.0, 20),
    (0.5, 0.25, 2),
    (0.25, 0.5, 8),
    (0.1, 0.9, 12),
    (2.0, 0.0, 4),
]


@pytest.mark.parametrize(("eps", "atomic", "n"), COMPOSED)
@pytest.mark.parametrize("share", [-0.3, 0.0, 0.2, 0.6])
def test_composition(eps, atomic, n, share):
    """Against piecewise polynomials times exponentials; within 1e-3 in `eps`."""
    L = n * rz.bounded_range(eps, atomic=atomic)
    t = share * n * eps
    parts = ((oracles.exact(eps), oracles.exact(atomic), n),)
    bounds = L.delta_bounds(t)
    assert oracles.agrees(bounds, near(range_sum(parts, mp.exp(mpf(t)))))
    assert mpf(bounds.hi) <= range_sum(parts, mp.exp(mpf(t - 1e-3)))
    assert mpf(bounds.lo) >= range_sum(parts, mp.exp(mpf(t + 1e-3)))


@pytest.mark.parametrize("t", [-0.5, 0.1, 1.0, 2.5])
def test_mixed_compositions(t):
    half = oracles.exact(0.5)
    ranges = ((half, 0, 2), (oracles.exact(0.25), oracles.exact(0.125), 3), (half, 1, 1))
    L = 2 * rz.bounded_range(0.5) + 3 * rz.bounded_range(0.25, atomic=0.125) + rz.pure_dp(0.5)
    assert oracles.agrees(L.delta_bounds(t), near(range_sum(ranges, mp.exp(mpf(t)))))
    laplace = (half, mixture_oracles.laplace_weight(0.5), 2)
    L = L + 2 * rz.laplace(scale=2.0)
    assert oracles.agrees(L.delta_bounds(t), near(range_sum((*ranges, laplace), mp.exp(mpf(t)))))
    L = L + rz.gaussian(mu=0.5)
    bounds = L.delta_bounds(t)
    truth = range_sum((*ranges, laplace), mp.exp(mpf(t)), mpf(1) / 4)
    assert oracles.agrees(bounds, near(truth))
    assert bounds.width <= 1e-6 * bounds.hi


@settings(max_examples=30)
@given(log_uniform(0.01, 2.0), weights, st.integers(2, 6), st.floats(-0.9, 0.95))
def test_powers(eps, atomic, n, share):
    L = n * rz.bounded_range(eps, atomic=atomic)
    t = share * n * eps
    parts = ((oracles.exact(eps), oracles.exact(atomic), n),)
    assert oracles.agrees(L.delta_bounds(t), near(range_sum(parts, mp.exp(mpf(t)))))


@pytest.mark.parametrize("n", [10**3, 10**5])
def test_many(n):
    """Against the transform summed elsewhere on the plane."""
    eps = 0.5 / math.sqrt(n)
    law = Blend(ranges=((oracles.exact(eps), 0, n),))
    L = n * rz.bounded_range(eps)
    for t in (0.1, 1.0):
        assert oracles.agrees(L.delta_bounds(t), law.by_contour(t))


def test_oracle_against_convolution():
    """Two of them: the curve of one averaged over the loss of the other."""
    e, w, t = mpf("0.5"), mpf("0.25"), mpf("0.2")

    def curve(u: mpf) -> mpf:
        return range_curve(e, w, mp.exp(u))

    atom = w * (mp.exp(e) * curve(t - e) + curve(t + e)) / (1 + mp.exp(e))
    pieces = sorted({-e, t - e, e})
    flat = mp.quad(lambda z: mp.exp(z / 2) * curve(t - z), pieces) / (4 * mp.sinh(e / 2))
    value = range_sum(((e, w, 2),), mp.exp(t))
    assert abs(atom + (1 - w) * flat - value) <= mpf("1e-30")


def test_reversal_and_equality():
    L = rz.bounded_range(0.5, atomic=0.25)
    assert L.reverse() == L
    assert L.is_symmetric
    assert rz.bounded_range(0.5) != L
    assert repr(L) == "bounded_range(0.5, atomic=0.25)"
    assert repr(rz.bounded_range(0.5)) == "bounded_range(0.5)"
