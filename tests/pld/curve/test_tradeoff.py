"""Tradeoff curves of many levels at once, narrow and around the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

import oracles
import residua as rz


@pytest.mark.parametrize(("eps", "delta"), [(1.395, 0.509), (0.3, 0.9), (2.0, 1e-6), (5.0, 0.45)])
def test_approximate_dp_past_its_corner(eps: float, delta: float) -> None:
    """Piecewise linear through (0, 1-δ), the corner α = β = (1-δ)/(1+e^ε), and (1-δ, 0)."""
    alpha = np.concatenate([np.linspace(0.0, 1.0, 41), [1e-9, 1.0 - delta - 1e-6, 1.0 - delta]])
    bounds = rz.approximate_dp(eps, delta).tradeoff_bounds(alpha)
    with mp.workdps(40):
        e, d = mp.e ** mp.mpf(eps), mp.mpf(delta)
        for a, lo, hi in zip(alpha.tolist(), bounds.lo, bounds.hi, strict=True):
            truth = max(mp.mpf(0), 1 - d - e * mp.mpf(a), (1 - d - mp.mpf(a)) / e)
            assert oracles.agrees(rz.Interval(float(lo), float(hi)), truth)
            assert hi - lo <= 1e-12


@pytest.mark.parametrize("mu", [1e-3, 0.5, 3.0, 12.0])
def test_gaussian_at_many_levels(mu: float) -> None:
    alpha = np.concatenate([10.0 ** -np.arange(1.0, 20.0), np.linspace(0.05, 0.95, 50)])
    bounds = rz.gaussian(mu=mu).tradeoff_bounds(alpha)
    for a, lo, hi in zip(alpha.tolist(), bounds.lo, bounds.hi, strict=True):
        assert oracles.agrees(
            rz.Interval(float(lo), float(hi)), oracles.gaussian_tradeoff(mu, float(a))
        )
    assert np.max(bounds.hi - bounds.lo) <= 1e-11


@pytest.mark.parametrize(
    "pld",
    [
        rz.laplace(scale=2.0),
        rz.laplace(scale=1.0) + rz.gaussian(mu=0.5),
        rz.subsampled_gaussian(1.0, 0.01),
        10 * rz.pure_dp(0.3),
        30 * rz.laplace(scale=20.0),
    ],
    ids=repr,
)
def test_together_as_one_by_one(pld: rz.Pld) -> None:
    """Both enclose the same numbers, and neither is much wider."""
    alpha = np.linspace(0.02, 0.98, 13)
    together = pld.tradeoff_bounds(alpha)
    assert np.all(together.lo <= together.hi)
    assert np.all(np.diff(together.lo) < np.max(together.hi - together.lo))
    for place in (0, 5, 12):
        alone = pld.tradeoff_bounds(float(alpha[place]))
        assert alone.lo <= together.hi[place] and together.lo[place] <= alone.hi
    assert np.max(together.hi - together.lo) <= 1e-4


@pytest.mark.parametrize(
    ("pld", "exact"),
    [
        (rz.pure_dp(600.0), lambda a: max(1 - mp.exp(600) * a, mp.exp(-600) * (1 - a), 0)),
        (rz.gaussian(mu=40.0), lambda a: mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * a - 1) - 40)),
        (rz.laplace(scale=0.002), lambda a: _laplace_tradeoff(mpf(500), a)),
    ],
    ids=["response", "gaussian", "laplace"],
)
def test_losses_of_hundreds(pld: rz.Pld, exact: Callable[[mpf], mpf]) -> None:
    """Both ends hold, without warnings, and the upper one says something."""
    levels = np.array([0.1, 1e-3, 1e-15, 1e-30])
    found = pld.tradeoff_bounds(levels)
    with mp.workdps(400):
        for a, low, high in zip(levels.tolist(), found.lo, found.hi, strict=True):
            truth = exact(mpf(a))
            assert low <= truth <= high
            assert high <= 1e-100


def _laplace_tradeoff(e: mpf, a: mpf) -> mpf:
    """Of the Laplace mechanism: `1 - e^e a`, `e^-e / 4a`, `e^-e (1 - a)`, one after the other."""
    if a < mp.exp(-e) / 2:
        return 1 - mp.exp(e) * a
    return mp.exp(-e) / (4 * a) if a <= mpf(1) / 2 else mp.exp(-e) * (1 - a)


@pytest.mark.parametrize(
    "pld",
    [
        rz.laplace(scale=1.0) + rz.gaussian(mu=0.5),
        30 * rz.laplace(scale=20.0),
        100 * rz.subsampled_gaussian(1.0, 0.01),
        rz.approximate_dp(0.5, 0.1) + rz.laplace(scale=2.0),
    ],
    ids=repr,
)
def test_shared_samples_agree_with_a_level_alone(pld: rz.Pld) -> None:
    """Levels of every size at once: each interval meets the one found without the others."""
    alpha = np.concatenate([10.0 ** -np.arange(1.0, 13.0), np.linspace(0.0, 1.0, 120)])
    together = pld.tradeoff_bounds(alpha)
    assert np.all((together.lo >= 0.0) & (together.lo <= together.hi))
    assert np.max(together.hi - together.lo) <= 1e-4
    for place in (3, 14, 75, 129):
        alone = pld.tradeoff_bounds(float(alpha[place]))
        assert alone.lo <= together.hi[place] and together.lo[place] <= alone.hi


@pytest.mark.parametrize("scale", [0.25, 1.0, 8.0])
def test_shared_samples_around_the_truth(scale: float) -> None:
    """One Laplace: `1 - e^ε α`, then `e^-ε / (4α)`, and `e^-ε (1 - α)` from a half on."""
    alpha = np.concatenate([np.linspace(0.001, 0.999, 200), [1e-9, 1.0 - 1e-9]])
    bounds = rz.laplace(scale=scale).tradeoff_bounds(alpha)
    with mp.workdps(40):
        e = mp.exp(1 / mp.mpf(scale))
        for a, lo, hi in zip(alpha.tolist(), bounds.lo, bounds.hi, strict=True):
            a = mp.mpf(a)
            if 2 * e * a <= 1:
                truth = 1 - e * a
            else:
                truth = 1 / (4 * e * a) if 2 * a <= 1 else (1 - a) / e
            assert oracles.agrees(rz.Interval(float(lo), float(hi)), truth)
    assert np.max(bounds.hi - bounds.lo) <= 1e-12


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.7, 3.0, 20.0, 37.0, 60.0])
def test_gaussians_in_closed_form(mu: float) -> None:
    """Both ends about the truth, and within 1e-10 of each other wherever floats reach."""
    rng = np.random.default_rng(8)
    small = 10.0 ** rng.uniform(-307.0, -1.0, 12)
    alpha = np.concatenate([small, rng.uniform(size=12), 1.0 - 10.0 ** rng.uniform(-15.0, -1.0, 6)])
    found = (3 * rz.gaussian(mu=mu)).tradeoff_bounds(alpha)
    with mp.workdps(80):
        for a, low, high in zip(alpha.tolist(), found.lo, found.hi, strict=True):
            truth = mp.erfc(mp.sqrt(mpf(3) / 2) * mpf(mu) - _inverse_erfc(2 * mpf(a))) / 2
            assert low <= truth <= high
            assert high - low <= 1e-10 * high + 1e-300


def _inverse_erfc(y: mpf) -> mpf:
    """Where the complementary error function is `y`, by Newton steps on its logarithm."""
    if y > 1:
        return -_inverse_erfc(2 - y)
    x = mp.sqrt(-mp.log(y)) if y < 0.1 else mp.mpf(0)
    for _ in range(60):
        value = mp.erfc(x)
        step = mp.log(value / y) * value * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mpf(10) ** -60:
            return x
    raise AssertionError(y)


@pytest.mark.parametrize("scale, count", [(3.0, 3), (4.0, 8), (8.0, 8)])
def test_many_levels_are_as_narrow_as_few(scale: float, count: int) -> None:
    found = (count * rz.laplace(scale=scale)).tradeoff_bounds(np.linspace(0.0, 1.0, 501))
    assert float(np.max(found.hi - found.lo)) < 2e-4
