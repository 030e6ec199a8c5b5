"""Cases that once came out wrong, or nearly, each against a truth found another way."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import residuum as rz


def holds(interval: rz.Interval, truth: object) -> bool:
    return bool(mp.mpf(float(interval.lo)) <= truth <= mp.mpf(float(interval.hi)))


def gaussian_delta(mu: float, t: float) -> object:
    with mp.workdps(80):
        m, s = mp.mpf(mu), mp.mpf(t)
        upper = mp.erfc((s / m - m / 2) / mp.sqrt(2)) / 2
        return upper - mp.exp(s) * mp.erfc((s / m + m / 2) / mp.sqrt(2)) / 2


def test_epsilon_where_delta_is_a_hair_below_the_mass_at_infinity():
    pld = 2 * rz.approximate_dp(1.0, 0.1)
    exact = 1 - (1 - Fraction(0.1)) ** 2
    lo, hi = pld.mass_at_infinity_bounds.lo, pld.mass_at_infinity_bounds.hi
    assert Fraction(lo) < exact <= Fraction(hi)
    assert pld.epsilon(lo) == math.inf
    assert pld.epsilon(hi) == pytest.approx(2.0)


@pytest.mark.parametrize("alpha", [1.00005, 0.99995, 1.0001, 1 + 1e-9, 1 - 1e-9])
def test_renyi_next_to_order_one(alpha):
    with mp.workdps(60):
        a = mp.mpf(alpha)
        moment = (a * mp.exp(a - 1) + (a - 1) * mp.exp(-a)) / (2 * a - 1)
        truth = mp.log(moment) / (a - 1)
    bounds = rz.laplace(1.0).renyi_bounds(alpha)
    assert holds(bounds, truth)
    assert bounds.width < 1e-4


@pytest.mark.parametrize("alpha", [2e6, 1e100, 1e160, 1e300])
def test_renyi_of_huge_order(alpha):
    assert holds(rz.gaussian(mu=1.0).renyi_bounds(alpha), mp.mpf(alpha) / 2)
    bounds = (rz.gaussian(mu=1.0) + rz.laplace(1.0)).renyi_bounds(alpha)
    assert bounds.lo >= 0.49 * alpha
    assert bounds.hi >= 0.5 * alpha
    assert 0.99 < rz.laplace(1.0).renyi_bounds(alpha).lo <= 1.0 <= rz.laplace(1.0).renyi(alpha)


@pytest.mark.parametrize(
    ("mu", "t"),
    [
        (1.5103358603496096e17, 1.140557205528998e34),
        (1.2979319012594672e16, 8.423136101535103e31),
        (1e9, 5.00000005e17),
        (1e-9, 3e-9),
    ],
)
def test_gaussians_whose_argument_loses_its_digits(mu, t):
    assert holds(rz.gaussian(mu=mu).delta_bounds(t), gaussian_delta(mu, t))


def test_a_count_too_large_for_its_digits():
    bounds = (3 * 10**14 * rz.laplace(scale=math.sqrt(3e14))).delta_bounds(np.array([0.0, 0.5]))
    truth = [gaussian_delta(1.0, 0.0), gaussian_delta(1.0, 0.5)]  # within 1e-6 of the limit law
    assert np.all(bounds.lo <= np.array([float(v) for v in truth]) + 1e-6)
    assert np.all(bounds.hi >= np.array([float(v) for v in truth]) - 1e-6)
    with pytest.raises(rz.ArgumentError, match=r"n must be .* got 1000000000000000000"):
        10**18 * rz.laplace(1.0)


@pytest.mark.parametrize("accuracy", [0.0, 1e-320, 1e300, -1.0, math.nan, math.inf])
def test_accuracy_is_checked(accuracy):
    with pytest.raises(rz.ArgumentError, match="accuracy must be between"):
        (3 * rz.laplace(1.0)).delta_bounds(0.5, accuracy=accuracy)
    with pytest.raises(rz.ArgumentError, match="accuracy must be between"):
        rz.supremum([rz.laplace(1.0)], accuracy=accuracy)


def test_a_light_atom_hides_no_heavy_one():
    p = [0.7233172808146011, 2.0**-100, 0.2766827191853989]
    q = [0.021843056442855766, 2.3822371918031769e-32, 0.9781569435571442]
    x = 33.114288868267664
    exact_p = [Fraction(v) / sum(map(Fraction, p)) for v in p]
    exact_q = [Fraction(v) / sum(map(Fraction, q)) for v in q]
    truth = sum(max(a - Fraction(x) * b, 0) for a, b in zip(exact_p, exact_q, strict=True))
    bounds = rz.from_pair(p, q).hockey_stick_bounds(np.full(65, x))  # many: the float path
    assert Fraction(float(bounds.lo[0])) <= truth <= Fraction(float(bounds.hi[0]))


@pytest.mark.parametrize(("eps", "n", "t"), [(0.5, 4000, 1000.0), (2.0, 1500, 2300.0)])
def test_losses_beyond_the_range_of_exp(eps, n, t):
    with mp.workdps(40):
        e = mp.mpf(eps)
        p = 1 / (1 + mp.exp(-e))
        truth = mp.mpf(0)
        for k in range(n + 1):
            z = (2 * k - n) * e
            if z > t:
                truth += mp.binomial(n, k) * p**k * (1 - p) ** (n - k) * (1 - mp.exp(t - z))
    bounds = (n * rz.pure_dp(eps)).delta_bounds(t)
    assert holds(bounds, truth)
    assert bounds.width <= 1e-6 * bounds.hi


def test_a_stream_that_starts_deep_in_the_tail():
    """An early contour has a huge tilt; extended, it must not overflow into nonsense."""
    pld = rz.gaussian(sigma=15.0) + rz.laplace(scale=16.0) + rz.pure_dp(0.087)
    assert pld.delta(4.0) < 1e-60
    pld = pld + rz.gaussian(sigma=11.8)
    fresh = rz.gaussian(sigma=15.0) + rz.laplace(scale=16.0) + rz.pure_dp(0.087)
    fresh = rz.gaussian(sigma=11.8) + fresh
    assert pld.delta(4.0) < 1e-20
    assert pld.delta_bounds(4.0).lo <= fresh.delta_bounds(4.0).hi
    assert fresh.delta_bounds(4.0).lo <= pld.delta_bounds(4.0).hi


def test_reads_after_other_reads_agree():
    """Kept contours may narrow an interval, never move it off the truth."""
    pld = 7 * rz.laplace(3.0) + 2 * rz.pure_dp(0.3)
    fresh = [(7 * rz.laplace(3.0) + 2 * rz.pure_dp(0.3)).delta_bounds(t) for t in (0.1, 1.0, 2.0)]
    pld.delta(np.linspace(0.0, 3.0, 50))
    for t, alone in zip((0.1, 1.0, 2.0), fresh, strict=True):
        again = pld.delta_bounds(t)
        assert max(again.lo, alone.lo) <= min(again.hi, alone.hi)


def test_accuracy_is_what_was_asked_next_to_a_heavy_atom():
    """Five Laplaces have an atom at 1.5; smoothing costs most there."""
    pld = 5 * rz.laplace(2.0)
    for eps in (1.5 - 1e-4, 1.5, 1.5 + 1e-4):
        bounds = pld.delta_bounds(eps)
        assert pld.delta_bounds(eps + 1e-3).lo <= bounds.lo
        assert pld.delta_bounds(eps - 1e-3).hi >= bounds.hi
