"""The least `nu` with `L ⪯ G_nu`, on either side of the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import oracles
import residua as rz
from residua.pld.residue.gdp_parameter import gdp_parameter_bounds


@pytest.mark.parametrize("eps", [1e-8, 0.1, 0.5, 5.0, 40.0])
def test_randomized_response(eps: float) -> None:
    """`nu = -2 Φ⁻¹(1 / (1 + e^eps))`."""
    found = gdp_parameter_bounds(rz.pure_dp(eps))
    with mp.workdps(60):
        tail = 1 / (1 + mp.exp(mpf(eps)))
        assert oracles.normal_cdf(-mpf(float(found.lo)) / 2) >= tail
        assert oracles.normal_cdf(-mpf(float(found.hi)) / 2) <= tail
    assert float(found.width) <= 1e-12 * float(found.hi)


@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_laplace(scale: float) -> None:
    """The curves touch at `x = 1`: `1 - e^{-1/2b} = erf(nu/√8)`."""
    found = gdp_parameter_bounds(rz.laplace(scale=scale))
    with mp.workdps(60):
        height = -mp.expm1(-1 / (2 * mpf(scale)))
        assert mp.erf(mpf(float(found.lo)) / mp.sqrt(8)) <= height
        assert mp.erf(mpf(float(found.hi)) / mp.sqrt(8)) >= height
    assert float(found.width) <= 1e-12 * float(found.hi)


def test_vertices_of_finite_queries() -> None:
    rng = np.random.default_rng(8)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        size = 10.0 ** rng.uniform(-9.0, 0.7)
        p = rng.dirichlet(np.ones(n)) + 1e-12
        q = p * np.exp(size * rng.standard_normal(n))
        query = rz.from_pair(p / p.sum(), q / q.sum())
        found = gdp_parameter_bounds(query)
        exact = query._atoms.exact
        truth = mpf(0)
        with mp.workdps(40):
            for k in range(1, len(exact)):
                below = mpf(sum(exact.p[:k])) / exact.p_den
                above = mpf(sum(exact.q[k:])) / exact.q_den
                quantiles = (mp.sqrt(2) * mp.erfinv(1 - 2 * mass) for mass in (below, above))
                truth = max(truth, sum(quantiles))
        assert found.lo <= truth <= found.hi
        assert float(found.width) <= 1e-5 * float(found.hi)


def test_gaussians_and_limits() -> None:
    assert gdp_parameter_bounds(rz.gaussian(mu=0.5)) == rz.Interval(0.5, 0.5)
    assert rz.gdp_parameter(rz.identity()) == 0.0
    assert rz.gdp_parameter(rz.approximate_dp(1.0, 1e-9)) == math.inf
    assert rz.gdp_parameter(rz.from_pair([0.5, 0.5, 0.0], [0.4, 0.5, 0.1])) == math.inf


def test_mixtures_have_the_tails_of_the_gaussian_inside() -> None:
    found = gdp_parameter_bounds(3 * rz.subsampled_gaussian(2.0, 0.1))
    assert float(found.lo) == pytest.approx(math.sqrt(0.75), rel=1e-12)
    assert float(found.hi) == pytest.approx(math.sqrt(0.75), rel=1e-6)


@pytest.mark.parametrize(
    "query",
    [
        rz.gaussian(mu=0.5) + rz.pure_dp(0.4),
        rz.gaussian(mu=0.2) + rz.laplace(scale=2.0),
        2 * rz.laplace(scale=3.0) + rz.pure_dp(0.1),
    ],
    ids=repr,
)
def test_compositions_against_the_order(query: rz.Pld) -> None:
    found = gdp_parameter_bounds(query)
    assert float(found.width) <= 1e-3 * float(found.hi)
    assert query <= rz.gaussian(mu=float(found.hi) * 1.001)
    assert not query <= rz.gaussian(mu=float(found.lo) * 0.999)
