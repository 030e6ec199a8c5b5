"""Cases that once came out wrong, or nearly, each against a truth found another way."""

import math
import time
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import oracles
import residua as rz


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


def lacking(log_moment: object, t: float, sd: float) -> object:
    """`1 - h(e^t)` some standard deviations below the mean, by a sum left of the pole at 0."""
    with mp.workdps(40):
        lam = -3 / mp.mpf(sd)
        period = 60 * mp.mpf(sd)

        def term(k: int) -> object:
            s = lam + 2j * mp.pi * k / period
            return mp.re(-mp.exp(log_moment(s) - s * t) / (s * (s + 1)))

        return (term(0) + 2 * mp.fsum(term(k) for k in range(1, 160))) / period


def laplace_log(eps: float, s: object) -> object:
    w, e = s + mp.mpf(1) / 2, mp.mpf(eps)
    return mp.log(mp.cosh(w * e) + mp.sinh(w * e) / (2 * w)) - e / 2


def responses_truth(n: int, responses: tuple[float, ...], t: object) -> object:
    """`h(e^t)` of n each of one or two kinds of randomized response, summed over the second."""
    first, *second = responses
    if not second:
        return oracles.response_power(first, 0, n, mp.exp(t))
    e = mp.mpf(second[0])
    heads = 1 / (1 + mp.exp(-e))
    masses = [mp.binomial(n, k) * heads**k * (1 - heads) ** (n - k) for k in range(n + 1)]
    return mp.fsum(
        mass * responses_truth(n, (first,), t - (2 * k - n) * e) for k, mass in enumerate(masses)
    )


@pytest.mark.parametrize("below", [0, 1, 3, 5])
@pytest.mark.parametrize(("n", "eps"), [(10**4, 1.0), (10**6, 1.0), (10**6, 0.125)])
def test_far_more_loss_than_asked_for(n, eps, below):
    """Where delta is close to 1 its distance from 1 is what has to be right."""
    with mp.workdps(40):
        mean = n * mp.diff(lambda s: laplace_log(eps, s), 0)
        sd = mp.sqrt(n * mp.diff(lambda s: laplace_log(eps, s), 0, 2))
    t = float(mean - below * sd)
    bounds = (n * rz.laplace(1 / eps)).delta_bounds(t)
    truth = [
        1 - lacking(lambda s: n * laplace_log(eps, s), mp.mpf(t) + dt, sd)
        for dt in (0, -1e-3, 1e-3)
    ]
    assert holds(bounds, truth[0])
    assert truth[2] <= bounds.lo
    assert bounds.hi <= truth[1]


@pytest.mark.parametrize("below", [0, 1, 3, 5])
@pytest.mark.parametrize(("n", "responses"), [(10**5, (1.0,)), (150, (0.1, 1.0))])
def test_far_more_loss_than_asked_for_in_lumps(n, responses, below):
    mean = n * sum(e * math.tanh(e / 2) for e in responses)
    sd = math.sqrt(n * sum((e / math.cosh(e / 2)) ** 2 for e in responses))
    t = mean - below * sd
    bounds = sum((n * rz.pure_dp(e) for e in responses), rz.identity()).delta_bounds(t)
    with mp.workdps(40):
        truth = [responses_truth(n, responses, mp.mpf(t) + dt) for dt in (0, -1e-3, 1e-3)]
    assert holds(bounds, truth[0])
    assert truth[2] <= bounds.lo
    assert bounds.hi <= truth[1]


def test_hardly_any_privacy_left():
    for n in (10**3, 10**4, 10**6):
        for query in (rz.laplace(1.0), rz.pure_dp(1.0), rz.laplace(1.0) + rz.pure_dp(1.0)):
            bounds = (n * query).delta_bounds(1.0)
            assert bounds.width <= 1e-9
            assert bounds.hi <= 1.0


def test_a_million_laplaces_in_no_time():
    pld = 10**6 * rz.laplace(1.0)
    start = time.perf_counter()
    eps = pld.epsilon_bounds(1e-6)
    assert time.perf_counter() - start < 1.0
    assert eps.width <= 1e-4
    assert oracles.laplace_power(1, 10**6, mp.exp(mp.mpf(eps.hi))).hi <= mp.mpf(1e-6)
    assert oracles.laplace_power(1, 10**6, mp.exp(mp.mpf(eps.lo))).lo >= mp.mpf(1e-6) * (1 - 1e-9)


def test_a_delta_that_the_mass_at_infinity_all_but_uses_up():
    """A hundred thousand times 1e-14 leaves 5e-19 of 1e-9, and that is what counts."""
    pld = 10**5 * rz.approximate_dp(0.5, 1e-14)
    eps = pld.epsilon_bounds(1e-9)
    assert eps.width <= 1e-4
    with mp.workdps(60):
        ends = [
            oracles.response_power(0.5, 1e-14, 10**5, mp.exp(mp.mpf(e))) for e in (eps.lo, eps.hi)
        ]
        exact = 1 - (1 - mp.mpf(1e-14)) ** (10**5)
    assert ends[0] >= mp.mpf(1e-9) >= ends[1]
    mass = pld.mass_at_infinity_bounds
    assert holds(mass, exact)
    assert mass.hi == np.nextafter(mass.lo, 1.0)


@pytest.mark.parametrize(
    "masses",
    [
        [(1e-300, 10**15), (3e-301, 7)],
        [(0.3, 10**6)],
        [(1e-20, 10**6), (1e-3, 10**6), (0.75, 1)],
        [(1e-9 * k, 3 * k) for k in range(1, 200)],
    ],
)
def test_mass_at_infinity_of_many(masses):
    pld = rz.identity()
    for mass, n in masses:
        pld = pld + n * rz.approximate_dp(0.5, mass)
    with mp.workdps(700):
        exact = 1 - mp.fprod((1 - mp.mpf(mass)) ** n for mass, n in masses)
        bounds = pld.mass_at_infinity_bounds
        assert mp.mpf(bounds.lo) <= exact <= mp.mpf(bounds.hi)
    assert bounds.hi <= np.nextafter(bounds.lo, 1.0)


@pytest.mark.parametrize("mu", [1e-100, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2])
@pytest.mark.parametrize(
    ("query", "law"),
    [
        (3 * rz.laplace(4.0), oracles.Law(laplaces=((Fraction(1, 4), 3),))),
        (
            rz.laplace(1.0) + 2 * rz.pure_dp(0.25),
            oracles.Law(oracles.approximate_dp(0.25).power(2), ((Fraction(1), 1),)),
        ),
        (60 * rz.laplace(1.0), oracles.Law(laplaces=((Fraction(1), 60),))),
    ],
)
def test_a_narrow_gaussian_beside_something_else(query, law, mu):
    """Atoms are smoothed in closed form, the rest by a phantom that costs its square."""
    smooth = replace(law, variance=oracles.exact(mu) ** 2)
    for eps in (0.0, 0.25, 0.25 + 2e-6, 0.5, 0.7):
        bounds = (rz.gaussian(mu=mu) + query).delta_bounds(eps)
        assert oracles.agrees(bounds, smooth.hockey_stick(mp.exp(mp.mpf(eps))))
        assert bounds.width <= 1e-6 * bounds.hi


def test_past_everything_but_a_narrow_gaussian():
    pld = rz.gaussian(mu=1e-8) + 3 * rz.laplace(4.0)
    assert pld.delta(0.75 + 1e-7) < 1e-30
    assert pld.delta(0.76) < 1e-280
    assert pld.delta(5.0) < 1e-280
    eps = pld.epsilon_bounds(1e-60)
    assert 0.75 - 1e-6 < eps.lo <= eps.hi < 0.75 + 1e-3
    law = oracles.Law(laplaces=((Fraction(1, 4), 3),), variance=oracles.exact(1e-8) ** 2)
    least, most = (law.hockey_stick(mp.exp(mp.mpf(end))) for end in (eps.hi, eps.lo))
    assert least <= mp.mpf("1e-60") <= most
