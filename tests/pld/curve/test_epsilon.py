"""The search for `epsilon(delta)`: what it starts from is proven, and its answers are narrow.

That they are true is asked of every family beside its exact law (`test_compositions.py`,
`test_gaussian_mixture.py`, the soundness sweep).
"""

from __future__ import annotations

import math

import pytest

import residua as rz
from residua.pld.curve import chernoff

PLDS = {
    "subsampled, remove": lambda: 1000 * rz.subsampled_gaussian(1.0, 0.01),
    "subsampled, add": lambda: 1000 * rz.subsampled_gaussian(1.0, 0.01, "add"),
    "subsampled, replace": lambda: 100 * rz.subsampled_gaussian(2.0, 0.1, "replace"),
    "few subsampled, add": lambda: 50 * rz.subsampled_gaussian(0.5, 0.02, "add"),
    "with Laplace": lambda: 100 * rz.subsampled_gaussian(1.0, 0.01) + 10 * rz.laplace(10.0),
    "Gaussian and Laplace": lambda: rz.gaussian(sigma=3.0) + 100 * rz.laplace(10.0),
    "Laplaces": lambda: 100 * rz.laplace(10.0),
    "few Laplaces": lambda: 7 * rz.laplace(3.0),
    "responses": lambda: 30 * rz.pure_dp(0.05) + 40 * rz.pure_dp(0.07) + 50 * rz.pure_dp(0.033),
    "approximate": lambda: 100 * rz.approximate_dp(0.1, 1e-9) + rz.laplace(2.0),
}
SMOOTH = [name for name in PLDS if name.startswith(("subsampled", "with", "Gauss"))]
"""Those with Gaussian noise, but for the one next to its largest loss: see the known limits."""
DELTAS = (0.1, 1e-6, 1e-12)


@pytest.mark.parametrize("name", PLDS)
@pytest.mark.parametrize("level", [0.3, 1e-6])
def test_the_search_starts_below_a_proven_end(name, level):
    pld = PLDS[name]()
    guess, far = chernoff.start(pld._evaluator, level)
    assert 0.0 <= guess <= far
    beyond = pld.delta_bounds(far).lo - pld.mass_at_infinity_bounds.hi
    assert beyond <= level


@pytest.mark.parametrize("name", PLDS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_curve_crosses_between_the_ends(name, delta):
    """Read again from a contour that knows nothing of the search."""
    eps = PLDS[name]().epsilon_bounds(delta)
    assert 0.0 <= eps.lo <= eps.hi
    if eps.hi == math.inf:
        assert PLDS[name]().mass_at_infinity_bounds.hi > delta
        return
    assert PLDS[name]().delta_bounds(eps.hi).lo <= delta
    assert eps.lo == 0.0 or PLDS[name]().delta_bounds(eps.lo).hi >= delta
    assert eps.width <= 1e-3


@pytest.mark.parametrize("name", SMOOTH)
def test_earlier_answers_do_not_widen_later_ones(name):
    """Contours made for one delta serve for another only if they are good there."""
    pld = PLDS[name]()
    for delta in (1e-3, 1e-9, 0.1, 1e-6):
        eps = pld.epsilon_bounds(delta)
        assert eps.width <= 1e-8 * (1.0 + eps.hi)
        read = pld.delta_bounds(eps.hi)
        assert read.width <= 1e-6 * read.hi


def test_no_privacy_loss_above_delta_is_zero():
    assert (3 * rz.subsampled_gaussian(1.0, 0.01)).epsilon_bounds(0.3) == rz.Interval(0.0, 0.0)
    assert (2 * rz.laplace(scale=100.0)).epsilon_bounds(0.5) == rz.Interval(0.0, 0.0)


def test_a_largest_loss_below_zero():
    """All that is finite is harmless: the mass at infinity decides alone."""
    for n, mass in ((1, 0.5), (2, 0.75)):
        pld = n * rz.from_pair([0.5, 0.5], [1.0, 0.0])
        assert pld.epsilon_bounds(mass) == rz.Interval(0.0, 0.0)
        assert pld.epsilon(mass - 0.01) == math.inf


def test_next_to_nothing_there_is_an_upper_bound():
    """Many kinds of sampled Gaussians, close to their largest loss: quick, and not below the truth.

    That is at most the curve of as many of the loudest kind, which one contour gives.
    """
    sigmas = [1.0 + 0.01 * k for k in range(20)]
    stream = sum((10 * rz.subsampled_gaussian(s, 0.01, "add") for s in sigmas[1:]), rz.identity())
    stream = stream + 10 * rz.subsampled_gaussian(sigmas[0], 0.01, "add")
    loudest = 200 * rz.subsampled_gaussian(sigmas[0], 0.01, "add")
    quietest = 200 * rz.subsampled_gaussian(sigmas[-1], 0.01, "add")
    seen = set()
    for t in (0.9, 1.2, 1.5):
        read = stream.delta_bounds(t)
        assert quietest.delta_bounds(t).lo <= read.hi
        assert read.lo <= loudest.delta_bounds(t).hi
        seen.add(read.lo == 0.0 and read.hi < 1e-40)
    assert seen == {True, False}
