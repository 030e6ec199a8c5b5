"""Mixtures in two parts, loud and quiet, against sums in 30 digits and extended floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpc, mpf

import mixture_oracles
import oracles
import residua as rz
from mixture_oracles import Blend, Mixture, extended
from residua.pld.curve.contour import split
from residua.pld.curve.contour.split import Parted, Parts
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.normal_mixture import Cut
from strategies import log_uniform

DIRECTIONS = ("remove", "add", "replace")


def factor(sigma: float, rate: float, direction: str) -> GaussianMixture:
    (made,) = rz.subsampled_gaussian(sigma, rate, direction).terms
    return made


# ------------------------------------------------------------------ the cut


@given(st.floats(-9.0, 9.0), log_uniform(0.02, 5.0), st.floats(-30.0, 30.0))
def test_a_cut_and_its_slope(centre, width, x):
    above, below, error = Cut(centre, width).logs(np.array([x]))
    slope = Cut(centre, width).slope(np.array([x]))[0]
    with mp.workdps(40):
        y = (mpf(x) - mpf(centre)) / mpf(width)
        wanted = [mp.log(mp.erfc(sign * y / mp.sqrt(2)) / 2) for sign in (-1, 1)]
        assert abs(mpf(above[0]) - wanted[0]) <= error[0]
        assert abs(mpf(below[0]) - wanted[1]) <= error[0]
        steep = mp.npdf(y) / (mp.erfc(-y / mp.sqrt(2)) / 2) / mpf(width)
        assert abs(mpf(slope) - steep) <= mpf("1e-11") * steep + mpf("1e-300")


@given(st.floats(-6.0, 6.0), st.floats(-2.0, 2.0))
def test_a_cut_off_the_axis(x, y):
    """`|w(x + iy)|` is at most `e^{y²/2} w(x)`, and so is `1 - w`."""
    with mp.workdps(40):
        for sign in (-1, 1):
            whole = mp.erfc(sign * mpf(x) / mp.sqrt(2)) / 2
            moved = mp.erfc(sign * mpc(x, y) / mp.sqrt(2)) / 2
            assert abs(moved) <= mp.exp(mpf(y) ** 2 / 2) * whole * (1 + mpf("1e-30"))


# ------------------------------------------------------------------ values on a line


def summed(law: Mixture, cut: Cut, lam: float, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Loud and quiet part of `M(λ+iω)/M(λ)`: the trapezoid rule with a tiny step."""
    reach = float(law.reach)
    step = 1.0 / math.ceil(max(8.0 / cut.width, float(omega.max()) * reach, 8.0))
    low, high = float(law.q[0][0]) - 10.0 - lam * reach, (1.0 + lam) * reach + 10.0
    grid = low + step * np.arange(int((high - low) / step))
    x = grid.astype(np.longdouble)
    logs = []
    for side in (law.p, law.q):
        terms = [np.exp(extended(a) * x - extended(a) ** 2 / 2) * extended(w) for a, w in side]
        logs.append(np.log(np.sum(terms, axis=0)))
    loss = logs[0] - logs[1]
    weights = np.exp(logs[0] + lam * loss - x * x / 2)
    with mp.workdps(25):
        y = [(mpf(v) - mpf(cut.centre)) / mpf(cut.width) / mp.sqrt(2) for v in grid.tolist()]
        loud = weights * np.array([extended(mp.erfc(-v) / 2) for v in y])
        quiet = weights * np.array([extended(mp.erfc(v) / 2) for v in y])
    phases = np.exp(1j * np.multiply.outer(omega.astype(np.longdouble), loss)) / weights.sum()
    return phases @ loud, phases @ quiet


@settings(max_examples=10)
@given(
    log_uniform(0.4, 4.0),
    log_uniform(1e-4, 0.5),
    st.sampled_from(DIRECTIONS),
    log_uniform(0.2, 5.0),
    st.floats(0.05, 0.6),
    log_uniform(0.01, 0.2),
)
def test_nodes_their_fall_and_quiet_moments(sigma, rate, direction, lam, share, step):
    made = factor(sigma, rate, direction)
    far = min(1.0, 0.9 * made.top_bounds[0])
    cut = split.placed(made.pair, share * far, far)
    assume(cut is not None and cut.width > 0.06)
    count = 200
    found = split.split_nodes(made.pair, cut, lam, step, count)
    assume(found is not None)
    law = mixture_oracles.subsampled(sigma, rate, direction)
    picked = np.array([0, 1, 7, 40, 120, 199])
    loud, quiet = summed(law, cut, lam, picked * step)
    # The oracle's own error is that of extended floats.
    assert np.all(np.abs(found.loud[picked] - loud) <= found.loud_error[picked] + 1e-17)
    assert np.all(np.abs(found.quiet[picked] - quiet) <= found.quiet_error[picked] + 1e-17)
    for edge in picked[1:] * step:
        whole_bound, loud_bound = (float(v[0]) for v in made.pair.falls(lam, np.array([edge]), cut))
        beyond = picked * step >= edge
        assert np.abs(loud[beyond]).max() <= math.exp(loud_bound) * (1 + 1e-12) + 1e-17
        assert np.abs((loud + quiet)[beyond]).max() <= math.exp(whole_bound) * (1 + 1e-12) + 1e-17
    bound = split.quiet_log_moment(made.pair, cut, np.array([lam]))[0]
    value = float(np.log(quiet[0].real)) + float(law.log_moment(lam))
    assert value - 1e-15 <= bound <= value + 1e-9


# ------------------------------------------------------------------ products

unit = st.floats(-1.0, 1.0)
values = st.tuples(unit, unit, unit, unit, log_uniform(1e-9, 1.0))


def rounded(numbers: tuple[float, ...], wrong: float) -> tuple[Parts, mpc, mpc]:
    """One node: floats that are off by up to `wrong`, and what they stand for."""
    a, b, c, d, scale = numbers
    loud, quiet = scale * complex(a, b), complex(c, d)
    shift = mpc(wrong, -wrong) / 2
    error = np.array([wrong])
    return Parts(np.array([loud]), np.array([quiet]), error, error), loud + shift, quiet - shift


@given(values, values, st.integers(1, 40), log_uniform(1e-17, 1e-9))
def test_products_and_powers(first, second, n, wrong):
    with mp.workdps(60):
        one, loud, quiet = rounded(first, wrong)
        two, more_loud, more_quiet = rounded(second, wrong)
        found = one.times(two.power(n))
        whole = (more_loud + more_quiet) ** n
        wanted_quiet = quiet * more_quiet**n
        wanted_loud = (loud + quiet) * whole - wanted_quiet
        assert abs(mpc(found.loud[0]) - wanted_loud) <= found.loud_error[0]
        assert abs(mpc(found.quiet[0]) - wanted_quiet) <= found.quiet_error[0]


# ------------------------------------------------------------------ curves


def averaged(law: Mixture, other: rz.Pld, t: float) -> oracles.Bracket:
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
def test_two_steps_averaged_one_over_the_other(t):
    """Narrow where few mixtures fall slowly, and about the truth."""
    first, second = rz.subsampled_gaussian(1.0, 0.02), rz.subsampled_gaussian(0.8, 0.01)
    truth = averaged(mixture_oracles.subsampled(1.0, 0.02, "remove"), second, t)
    L = first + second
    bounds = L.delta_bounds(t)
    assert isinstance(L._evaluator._contour(t, 1e-3, 1.0), Parted)
    assert truth.hi - truth.lo <= mpf("1e-9") * truth.hi
    assert oracles.agrees(bounds, truth)
    assert bounds.width <= 1e-6 * bounds.hi


def test_beside_a_gaussian_and_a_response():
    """What is no mixture counts as quiet."""
    law = Blend(((mixture_oracles.subsampled(1.0, 0.01, "remove"), 3),), variance=mpf(1) / 100)
    L = 3 * rz.subsampled_gaussian(1.0, 0.01) + rz.gaussian(mu=0.1)
    for t in (0.8, 1.5):
        bounds = L.delta_bounds(t)
        assert oracles.agrees(bounds, law.delta(t))
        assert bounds.width <= 1e-6 * bounds.hi
