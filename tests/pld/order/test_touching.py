"""Curves that touch: proven where they do, refuted where a last bit says otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
import residua as rz
import strategies
from oracles import Finite
from residua import Order


def verdict(A: rz.Pld, B: rz.Pld) -> Order:
    return rz.compare(A, B).verdict


@given(strategies.singles())
def test_everything_is_below_itself(case):
    assert case.pld <= case.pld
    assert verdict(case.pld, case.pld) == Order.EQUAL


@given(strategies.finite(), strategies.finite())
def test_both_are_below_their_supremum_and_above_their_infimum(first, second):
    A, B = first.pld, second.pld
    for L in (A, B):
        assert L <= A | B
        assert A & B <= L
    assert verdict(A | B, B | A) == Order.EQUAL
    assert verdict((A | B) & A, A) == Order.EQUAL
    assert verdict((A & B) | A, A) == Order.EQUAL


@given(strategies.finite(max_size=4), strategies.finite(max_size=4))
def test_composing_only_raises(first, second):
    assert first.pld <= first.pld + second.pld


@pytest.mark.parametrize(
    ("n", "eps", "whole"), [(2, 0.1, 0.2), (4, 0.1, 0.4), (2, 0.3, 0.6), (8, 0.125, 1.0)]
)
def test_pure_dp_adds_up_to_pure_dp(n, eps, whole):
    """The largest loss is the same float; the curves touch from there on."""
    assert oracles.exact(eps) * n == oracles.exact(whole)
    assert n * rz.pure_dp(eps) <= rz.pure_dp(whole)
    assert verdict(n * rz.pure_dp(eps), rz.pure_dp(whole)) == Order.LESS


@pytest.mark.parametrize(("n", "eps", "whole"), [(3, 0.1, 0.3), (10, 0.1, 1.0), (6, 0.1, 0.6)])
def test_pure_dp_a_last_bit_too_large(n, eps, whole):
    """Three times the float 0.1 is more than the float 0.3: not below, by very little."""
    assert oracles.exact(eps) * n > oracles.exact(whole)
    assert not n * rz.pure_dp(eps) <= rz.pure_dp(whole)
    assert verdict(n * rz.pure_dp(eps), rz.pure_dp(whole)) in (
        Order.INCOMPARABLE,
        Order.UNDECIDED,
    )
    assert n * rz.pure_dp(eps) <= rz.pure_dp(math.nextafter(whole, math.inf))


@given(strategies.log_uniform(1e-6, 20), st.integers(1, 4))
def test_pure_dp_chain(eps, steps):
    """Neighbouring floats are ordered, and proven so."""
    larger = eps
    for _ in range(steps):
        larger = math.nextafter(larger, math.inf)
    assert rz.pure_dp(eps) < rz.pure_dp(larger)
    assert not rz.pure_dp(larger) <= rz.pure_dp(eps)


@given(strategies.log_uniform(1e-3, 10), strategies.log_uniform(1e-12, 0.5))
def test_approximate_dp_chain(eps, delta):
    L = rz.approximate_dp(eps, delta)
    assert rz.approximate_dp(eps * 1.5, delta) > L
    assert rz.approximate_dp(eps, delta * 1.5) > L
    assert rz.pure_dp(eps) < L
    assert not rz.approximate_dp(eps * 1.5, delta / 1.5) >= L


def test_gaussians_add_like_squares():
    both = rz.gaussian(mu=3.0) + rz.gaussian(mu=4.0)
    assert verdict(both, rz.gaussian(mu=5.0)) == Order.EQUAL
    assert both <= rz.gaussian(mu=5.0)
    assert both >= rz.gaussian(mu=5.0)
    assert both < rz.gaussian(mu=math.nextafter(5.0, 6.0))
    assert both > rz.gaussian(mu=math.nextafter(5.0, 4.0))
    assert verdict(4 * rz.gaussian(mu=0.25), rz.gaussian(sigma=2.0)) == Order.EQUAL
    assert verdict(100 * rz.gaussian(sigma=20.0), rz.gaussian(sigma=2.0)) == Order.EQUAL


def test_a_last_bit_in_the_masses_is_seen():
    half = np.nextafter(0.5, 1.0)
    A = rz.from_pair([0.5, 0.5], [0.25, 0.75])
    B = rz.from_pair([half, 1 - half], [0.25, 0.75])
    assert A < B
    assert B > A
    assert rz.compare(A, B).not_above.gap > 0


def test_random_responses_with_the_same_curve():
    """Splitting an outcome changes nothing."""
    whole = rz.from_pair([0.75, 0.25], [0.25, 0.75])
    split = rz.from_pair([0.5, 0.25, 0.125, 0.125], [0.1875, 0.0625, 0.5, 0.25])
    merged = rz.from_pair([0.375, 0.375, 0.25], [0.125, 0.125, 0.75])
    assert verdict(whole, merged) == Order.EQUAL
    assert whole == merged
    law = [Finite.of([3, 1], [1, 3]), Finite.of([8, 4, 2, 2], [3, 1, 8, 4])]
    assert (whole <= split) == (law[0] <= law[1])
    assert (split <= whole) == (law[1] <= law[0])


@given(strategies.dyadic(max_size=4), st.data())
def test_post_processing_is_below(case, data):
    """Merging outcomes at random gives a PLD below, exactly."""
    pairs = case.law.finite.pairs
    groups = [data.draw(st.integers(0, 2)) for _ in pairs]
    p = [float(sum(p for (p, _), g in zip(pairs, groups, strict=True) if g == k)) for k in range(3)]
    q = [float(sum(q for (_, q), g in zip(pairs, groups, strict=True) if g == k)) for k in range(3)]
    merged = rz.from_pair(p, q)
    assert merged <= case.pld
    kernel = rz.kernel(merged, case.pld)
    assert (kernel >= 0).all()
    assert np.abs(kernel.sum(axis=1) - 1).max() <= 1e-9
    for mine, theirs in zip(merged.pair(), case.pld.pair(), strict=True):
        assert np.abs(theirs @ kernel - mine).max() <= 1e-9


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0])
def test_laplace_touches_pure_dp_at_its_end(scale):
    eps = 1 / scale
    assert rz.laplace(scale=scale) < rz.pure_dp(eps)
    assert not rz.laplace(scale=scale) <= rz.pure_dp(math.nextafter(eps, 0.0))
    assert 3 * rz.laplace(scale=scale) < 3 * rz.pure_dp(eps)


def test_gaussian_with_the_same_gaussian_on_both_sides():
    G = rz.gaussian(mu=1.0)
    small, large = rz.pure_dp(0.25), rz.pure_dp(0.5)
    assert G + small < G + large
    assert G + small > G
    assert not G + large <= G + small
