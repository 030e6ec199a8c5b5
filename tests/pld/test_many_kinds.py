"""Compositions of different Laplaces and responses, and of few sampled Gaussians."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import mixture_oracles
import oracles
import residua as rz
from mixture_oracles import Blend
from oracles import Law
from residua.bounds import Interval
from residua.pld.families.symmetric import Laplace


def law_of(pld: rz.Pld) -> Law:
    total = Law()
    for factor, n in pld.terms.items():
        if isinstance(factor, Laplace):
            total = total + Law(laplaces=((oracles.real(factor.top), n),))
        else:
            total = total + Law(oracles.approximate_dp(factor.eps).power(n))
    return total


def different(count: int, seed: int = 0, least: float = 0.05) -> list[rz.Pld]:
    """Laplaces, and a response in place of every fifth."""
    eps = np.random.default_rng([71, seed]).uniform(least, 3.0 * least, count).tolist()
    return [
        rz.pure_dp(e) if place % 5 == 4 else rz.laplace(scale=1.0 / e)
        for place, e in enumerate(eps)
    ]


SUMS = [
    3 * rz.laplace(scale=1.7) + 4 * rz.laplace(scale=2.3) + 5 * rz.laplace(scale=3.1),
    9 * rz.laplace(scale=4.0) + 7 * rz.laplace(scale=5.5) + rz.laplace(scale=9.0),
    6 * rz.pure_dp(0.25) + 4 * rz.laplace(scale=2.5) + rz.pure_dp(0.11),
    sum(different(10, seed=1, least=0.2)),
]


@pytest.mark.parametrize("pld", SUMS)
def test_reads_contain_closed_forms(pld):
    law, top = law_of(pld), float(sum(n * f.top for f, n in pld.terms.items()))
    for t in (0.4 * top, 0.85 * top, 0.93 * top, 0.99 * top):
        bounds = pld.delta_bounds(t)
        assert oracles.agrees(bounds, law.delta(t))
        assert mpf(bounds.hi) <= law.delta(t - 1e-3)
        assert mpf(bounds.lo) >= law.delta(t + 1e-3)
        finer = pld.delta_bounds(t, accuracy=1e-6)
        assert oracles.agrees(finer, law.delta(t))
        assert finer.width <= bounds.width


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(13, 30), st.floats(0.5, 0.97))
def test_any_read_meets_the_array(seed, count, share):
    pld = sum(different(count, seed, least=0.1))
    t = share * pld._evaluator._top
    found, other = pld.delta_bounds(t), pld.delta_bounds(np.array([t]), accuracy=1e-4)
    assert found.lo <= other.hi[0] and other.lo[0] <= found.hi


def test_nothing_past_the_largest_loss():
    pld = sum(different(20))
    assert pld.delta(0.8 * pld._evaluator._top) > 0.0
    assert pld.delta_bounds(1.001 * pld._evaluator._top) == Interval(0.0, 0.0)


def test_huge_counts():
    """Errors of values that add up to more than they are worth make a read that says nothing."""
    pld = sum(different(13)) * 10**6
    for t in (2.9e5, 3e5):
        found = pld.delta_bounds(t)
        assert 0.0 <= found.lo <= found.hi <= 1.0


def averaged(law: mixture_oracles.Mixture, other: rz.Pld, t: float) -> oracles.Bracket:
    """`E h(e^{t - Z})` over one mixture's observation, `h` in closed form, on two fine grids."""
    totals = []
    for step in (2.0**-12, 2.0**-13):
        x = np.arange(-10.0, float(law.reach) + 10.0, step)
        likelihood = sum(float(w) * np.exp(float(a) * x - float(a) ** 2 / 2) for a, w in law.p)
        heights = other.delta_bounds(t - np.log(likelihood)).hi
        density = likelihood * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        totals.append(mpf(float(density @ heights)) * step)
    spread = abs(totals[0] - totals[1]) + mpf("1e-11") * totals[1]
    return oracles.Bracket(totals[1] - spread, totals[1] + spread)


@pytest.mark.parametrize("t", [0.4, 1.0, 2.5])
def test_two_sampled_gaussians_averaged_one_over_the_other(t):
    first, second = rz.subsampled_gaussian(1.0, 0.02), rz.subsampled_gaussian(0.8, 0.01)
    law = mixture_oracles.subsampled(1.0, 0.02, "remove")
    bounds, truth = (first + second).delta_bounds(t), averaged(law, second, t)
    assert truth.hi - truth.lo <= mpf("1e-9") * truth.hi
    assert oracles.agrees(bounds, truth)
    assert mpf(bounds.hi) <= averaged(law, second, t - 1e-3).hi
    assert mpf(bounds.lo) >= averaged(law, second, t + 1e-3).lo


def test_few_sampled_beside_a_gaussian():
    law = Blend(((mixture_oracles.subsampled(1.0, 0.01, "remove"), 3),), variance=mpf(1) / 100)
    pld = 3 * rz.subsampled_gaussian(1.0, 0.01) + rz.gaussian(mu=0.1)
    for t in (0.8, 1.5):
        bounds = pld.delta_bounds(t)
        assert oracles.agrees(bounds, law.delta(t))
        assert bounds.width <= 1e-6 * bounds.hi
