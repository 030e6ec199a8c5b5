"""Subsampled Gaussians and mixtures of Gaussians against their exact pairs."""

from __future__ import annotations

import math
import os
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import mixture_oracles
import oracles
import residua as rz
from catalogue import low
from mixture_oracles import Blend, Mixture, laplace_weight
from residua.pld.families.gaussian_mixture import GaussianMixture
from strategies import log_uniform

THOROUGH = (
    os.environ.get("RESIDUA_THOROUGH") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)
DIRECTIONS = ("remove", "add", "replace")
LARGEST_RATIO = 19.9  # of sensitivity / sigma
Pair = tuple[rz.Pld, Mixture]

rates = st.one_of(log_uniform(1e-9, 0.9), log_uniform(1e-9, 0.9).map(lambda v: 1.0 - v))


@st.composite
def subsampled(draw: st.DrawFn, low: float = 1e-2, high: float = 1e3) -> Pair:
    rate, direction = draw(rates), draw(st.sampled_from(DIRECTIONS))
    size = draw(st.one_of(st.just(1.0), log_uniform(0.1, 10.0)))
    sigma = draw(log_uniform(max(low, size / LARGEST_RATIO), high))
    made = rz.subsampled_gaussian(sigma, rate, direction, sensitivity=size)
    return made, mixture_oracles.subsampled(sigma, rate, direction, size)


@st.composite
def mixtures(draw: st.DrawFn, low: float = 1e-2, high: float = 1e3) -> Pair:
    direction = draw(st.sampled_from(DIRECTIONS[:2]))
    shift = st.one_of(st.just(0.0), log_uniform(0.05, 3.0))
    shifts = sorted(draw(st.sets(shift, min_size=2, max_size=4)))
    sigma = draw(log_uniform(max(low, shifts[-1] / LARGEST_RATIO), high))
    weights = [draw(log_uniform(1e-6, 1.0)) for _ in shifts]
    total = math.fsum(weights)
    weights = [w / total for w in weights]
    made = rz.mixture_of_gaussians(sigma, shifts, weights, direction)
    return made, mixture_oracles.mixture(sigma, shifts, weights, direction)


def factor(pld: rz.Pld) -> GaussianMixture:
    (made,) = pld.terms
    assert isinstance(made, GaussianMixture)
    return made


# ------------------------------------------------------------------ one pair


@settings(max_examples=70)
@given(st.one_of(subsampled(), mixtures()), st.floats(-3.0, 30.0), st.booleans())
def test_curve_at_the_loss_of_an_observation(pair, x, far):
    """From the bulk to 1e-200, to the right and to the left of 1."""
    pld, law = pair
    t = float(law.loss(mpf(x) + (oracles.real(law.p[-1][0]) if far else 0)))
    assume(1e-14 < abs(t) < 600.0)
    bounds = pld.delta_bounds(t)
    assert oracles.agrees(bounds, law.delta(mpf(t)))
    x = math.exp(t)
    if 0.0 < x < 1e300:
        assert oracles.agrees(pld.hockey_stick_bounds(x), law.hockey_stick(x))


@settings(max_examples=40)
@given(subsampled(0.3, 10.0), log_uniform(1e-12, 0.9))
def test_curve_next_to_its_end(pair, gap):
    """The last of `add`, and of the left half of `remove`."""
    pld, law = pair
    if law.top < mp.inf:
        t = float(law.top) * (1.0 - gap)
        assert oracles.agrees(pld.delta_bounds(t), law.delta(mpf(t)))
        back = float(law.top) * (1.0 + gap)
        assert pld.delta_bounds(back) == rz.Interval(0.0, 0.0)
    if law.bottom > -mp.inf:
        t = float(law.bottom) * (1.0 - gap)
        assert oracles.agrees(pld.delta_bounds(t), law.delta(mpf(t)))


@pytest.mark.parametrize("rate", [1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("share", [1e-8, 1e-5, 1e-2])
def test_what_underflows_stays_above_0(rate, share):
    """Before its end a curve is positive, however small."""
    t = -math.log1p(rate * (share - 1.0))
    assert t < -math.log1p(-rate)
    assert rz.subsampled_gaussian(10.0, rate, "add").delta_bounds(t).hi > 0.0


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "depth", [1e-3, 1e-12, 1e-30, 1e-100, 1e-200] if THOROUGH else [1e-3, 1e-30, 1e-200]
)
def test_deep_tails(direction, depth):
    """Narrow at any depth where there is one."""
    for sigma, rate in ((1.0, 0.01), (0.6, 0.3), (4.0, 1e-4), (20.0, 0.5)):
        law = mixture_oracles.subsampled(sigma, rate, direction)
        L = rz.subsampled_gaussian(sigma, rate, direction)
        t = L.epsilon(depth)
        bounds = L.delta_bounds(t)
        assert oracles.agrees(bounds, law.delta(mpf(t)))
        if t < 0.99 * law.top:
            assert bounds.width <= 1e-7 * bounds.hi


@settings(max_examples=12)
@given(subsampled(0.2, 20.0), log_uniform(1e-30, 0.2))
def test_epsilon(pair, delta):
    pld, law = pair
    bounds = pld.epsilon_bounds(delta)
    assert law.delta(mpf(bounds.hi)) <= mpf(delta)
    assert bounds.lo == 0.0 or law.delta(mpf(bounds.lo)) >= mpf(delta)


@settings(max_examples=10)
@given(st.one_of(subsampled(0.2, 20.0), mixtures(0.2, 20.0)), st.floats(0.0, 1.0))
def test_tradeoff_lies_on_or_above_every_tangent(pair, alpha):
    pld, law = pair
    bounds = pld.tradeoff_bounds(alpha)
    assert bounds.lo <= 1 - alpha
    for t in (-1.0, -0.1, 0.0, 0.2, 1.5):
        tangent = (1 - oracles.real(alpha) - law.delta(t)) * mp.exp(-mpf(t))
        assert oracles.near(tangent).lo <= oracles.real(bounds.hi)


# ------------------------------------------------------------------ moments


moment_orders = st.one_of(
    st.floats(-0.999, -0.001), st.floats(-20.0, -1.001), log_uniform(1e-3, 30.0), st.just(0.5)
)


@settings(max_examples=25)
@given(st.one_of(subsampled(0.1, 100.0), mixtures(0.1, 100.0)), moment_orders)
def test_log_moment(pair, s):
    pld, law = pair
    assume((abs(s) + 1) * law.reach < 40)
    value, error = factor(pld).log_moment(np.array([s]))
    assert abs(law.log_moment(s) - mpf(float(value[0]))) <= mpf(float(error[0]))
    if (1 + abs(s)) * law.reach < 20:
        assert error[0] <= 1e-12


@given(st.one_of(subsampled(), mixtures()), log_uniform(1.0, 1e6))
def test_log_moment_far_out(pair, s):
    """Within what Gaussians of the nearest and of the farthest shift allow."""
    pld, law = pair
    value, error = factor(pld).log_moment(np.array([s, -1.0 - s]))
    cap = law.reach**2 * s * (s + 1) / 2
    heavy = oracles.real(law.p[-1][1])
    floor = max(mpf(0), cap + (1 + mpf(s)) * mp.log(heavy)) if len(law.q) == 1 else mpf(0)
    assert mpf(float(value[0] - error[0])) <= cap * (1 + mpf("1e-12"))
    assert mpf(float(value[0] + error[0])) >= floor * (1 - mpf("1e-12"))
    assert error.min() >= 0.0


@settings(max_examples=15)
@given(st.one_of(subsampled(0.1, 100.0), mixtures(0.1, 100.0)), log_uniform(0.01, 20.0))
def test_renyi(pair, alpha):
    pld, law = pair
    assume(abs(alpha - 1) > 1e-3 and (alpha + 1) * law.reach < 40)
    truth = law.log_moment(alpha - 1) / (mpf(alpha) - 1)
    assert oracles.agrees(pld.renyi_bounds(alpha), truth)


@settings(max_examples=12)
@given(st.one_of(subsampled(0.1, 100.0), mixtures(0.1, 100.0)))
def test_mean_loss(pair):
    pld, law = pair
    assume(law.reach < 25)
    mean = law.mean()
    bounds = pld.renyi_bounds(1.0)
    assert oracles.agrees(bounds, mean)
    assert bounds.width <= 1e-12 * (1 + float(mean))
    # Next to order 1 as well.
    assert mpf(pld.renyi_bounds(1.0 + 1e-9).hi) >= mean
    assert mpf(pld.renyi_bounds(1.0 - 1e-9).lo) <= mean


@settings(max_examples=60)
@given(
    st.one_of(subsampled(0.1, 100.0), mixtures(0.1, 100.0)),
    log_uniform(0.01, 30.0),
    log_uniform(0.01, 3.0),
)
def test_nodes_and_their_fall(pair, lam, step):
    """`M(λ+iω)/M(λ)` within its error; nothing beyond an edge above the bound given for it."""
    pld, law = pair
    count = 160
    assume((lam + 1) * law.reach < 60)
    made = factor(pld)
    truth, _ = law.line(lam, step, count)
    value, error = made.nodes(lam, step, count)
    assert np.all(np.abs(value - truth) <= error + 1e-16)
    edges = step * np.array([1.0, 5.0, 20.0, 60.0, 140.0])
    bounds = made.log_decay(lam, edges)
    omega, size = step * np.arange(count), np.abs(truth).astype(float)
    for edge, bound in zip(edges, bounds, strict=True):
        assert size[omega >= edge].max() <= math.exp(bound) * (1 + 1e-12) + 1e-15


def test_the_oracle_integrates():
    """Its trapezoid rule against adaptive quadrature with breakpoints at the modes."""
    law = mixture_oracles.mixture(1.0, [0.0, 0.7, 1.5], [0.5, 0.3, 0.2], "remove")
    with mp.workdps(25):
        for s in (2.5, mp.mpc(1, 2)):
            centres = law.centres(mp.re(s))
            pieces = [centres[0] - 12, *centres, centres[-1] + 12]
            slow = mp.quad(lambda x, s=s: law.integrand(x, s), pieces, maxdegree=8)
            assert abs(law.moment(s) - slow) <= mpf("1e-20") * abs(slow)
        rough = law.log_moment_roughly(2.5)
        assert abs(law.log_moment(2.5) - rough) <= 1e-15


# ------------------------------------------------------------------ compositions

STEPS = [
    # sigma, rate, n, losses to read at
    (1.0, 0.1, 3, (0.2,)),
    (1.0, 0.1, 10, (0.1, 0.9)),
    (1.0, 0.01, 10, (0.0,)),
    (0.8, 0.2, 30, (0.5, 5.0)),
    (2.0, 0.3, 100, (0.0, 2.0, 6.0)),
    (1.0, 0.01, 1000, (0.3, 1.5)),
    (4.0, 0.05, 10**4, (0.1, 3.0)),
    (10.0, 0.01, 10**5, (0.2, 1.0)),
]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("sigma", "rate", "n", "reads"), STEPS)
def test_many_steps(sigma, rate, n, reads, direction):
    law = Blend(((mixture_oracles.subsampled(sigma, rate, direction), n),))
    L = n * rz.subsampled_gaussian(sigma, rate, direction)
    for t in reads:
        truth = law.delta(t)
        bounds = L.delta_bounds(t)
        assert oracles.agrees(bounds, truth)
        # Next to the largest loss of `add` a phantom costs up to 1e-3 in eps.
        if n >= 10 and (direction != "add" or t < 0.1 * law.top):
            assert bounds.width <= 1e-6 * bounds.hi
        x = mp.exp(-mpf(t))
        assert oracles.agrees(L.hockey_stick_bounds(math.exp(-t)), mirrored(law, x, t))


def mirrored(law: Blend, x: mpf, t: float) -> oracles.Bracket:
    """`h(e^-t)`, `e^-t` rounded to a float."""
    value = law.delta(-mpf(t))
    low, high = value if isinstance(value, oracles.Bracket) else (value, value)
    return oracles.Bracket(low - x * mpf("1e-15"), high + x * mpf("1e-15"))


@pytest.mark.parametrize("direction", DIRECTIONS if THOROUGH else ["remove"])
@pytest.mark.parametrize("t", [0.15, 1.5] if THOROUGH else [0.15])
def test_two_steps_by_averaging_one_over_the_other(direction, t):
    law = Blend(((mixture_oracles.subsampled(1.0, 0.5, direction), 2),))
    L = 2 * rz.subsampled_gaussian(1.0, 0.5, direction)
    assert oracles.agrees(L.delta_bounds(t), law.delta(t))


def test_two_tilts_of_the_oracle_agree():
    law = mixture_oracles.subsampled(1.0, 0.05, "remove")
    near, far = (Blend(((law, 50),), bent=bent).by_contour(mpf("0.7")) for bent in (0.8, 1.6))
    assert near.lo <= far.hi
    assert far.lo <= near.hi
    assert near.hi - near.lo <= mpf("1e-11") * near.hi


def gaussian_part(mu: float) -> tuple[rz.Pld, Blend]:
    return rz.gaussian(mu=mu), Blend(variance=oracles.exact(mu) ** 2)


def range_part(pld: rz.Pld, eps: float, atomic: object) -> tuple[rz.Pld, Blend]:
    return pld, Blend(ranges=((oracles.exact(eps), atomic, 1),))


MIXED = {
    "gaussian": gaussian_part(0.75),
    "laplace": range_part(rz.laplace(scale=2.0), 0.5, laplace_weight(0.5)),
    "response": range_part(rz.pure_dp(0.5), 0.5, 1),
    "range": range_part(rz.bounded_range(0.5), 0.5, 0),
}


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("other", MIXED)
@pytest.mark.parametrize("n", [1, 20] if THOROUGH else [20])
def test_mixed_with_another(other, direction, n):
    more, law = MIXED[other]
    law = Blend(((mixture_oracles.subsampled(1.5, 0.1, direction), n),)) + law
    L = n * rz.subsampled_gaussian(1.5, 0.1, direction) + more
    for t in (0.1, 0.6) if n == 20 else (0.3,):
        assert oracles.agrees(L.delta_bounds(t), law.delta(t))


def test_different_steps_together():
    first, second = (
        mixture_oracles.subsampled(s, q, "remove") for s, q in ((1.0, 0.02), (2.0, 0.1))
    )
    third = mixture_oracles.mixture(2.0, [0.0, 0.5, 1.0], [0.5, 0.25, 0.25], "remove")
    law = Blend(((first, 40), (second, 60), (third, 10)))
    L = 40 * rz.subsampled_gaussian(1.0, 0.02) + 60 * rz.subsampled_gaussian(2.0, 0.1)
    L = L + 10 * rz.mixture_of_gaussians(2.0, [0.0, 0.5, 1.0], [0.5, 0.25, 0.25])
    for t in (0.2, 1.0, 3.0):
        bounds = L.delta_bounds(t)
        assert oracles.agrees(bounds, law.delta(t))
        assert bounds.width <= 1e-6 * bounds.hi


def test_a_stream_reads_as_the_whole():
    """Contours extended step by step keep the truth."""
    L, step = rz.gaussian(mu=0.25), rz.subsampled_gaussian(1.0, 0.05)
    law = mixture_oracles.subsampled(1.0, 0.05, "remove")
    for n in range(1, 41):
        L = L + step
        bounds = L.delta_bounds(0.5)
        if n in (20, 40):
            assert oracles.agrees(bounds, Blend(((law, n),), variance=mpf(1) / 16).delta(0.5))
    assert 40 * step + rz.gaussian(mu=0.25) == L


# ------------------------------------------------------------------ widths

WIDTHS = [
    (1e-2, 1.0, 1000),
    (1e-2, 0.8, 10**4),
    (1e-1, 2.0, 100),
    (1e-1, 4.0, 10**4),
    (0.5, 4.0, 10),
    (0.5, 10.0, 1000),
    (1e-2, 4.0, 10**5),
]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("rate", "sigma", "n"), WIDTHS)
def test_delta_is_narrow_where_people_read_it(rate, sigma, n, direction):
    L = n * rz.subsampled_gaussian(sigma, rate, direction)
    for delta in (1e-3, 1e-6, 1e-9, 1e-12) if THOROUGH else (1e-3, 1e-9):
        eps = L.epsilon_bounds(delta)
        assert eps.width <= 1e-6 * (1 + eps.hi)
        bounds = L.delta_bounds(eps.hi)
        assert bounds.width <= 1e-6 * bounds.hi


# ------------------------------------------------------------------ structure, extremes


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_reversal(direction):
    L = rz.subsampled_gaussian(1.5, 0.25, direction)
    assert L.reverse().reverse() == L
    assert L.is_symmetric == (direction == "replace")
    if direction != "replace":
        other = "add" if direction == "remove" else "remove"
        assert L.reverse() == rz.subsampled_gaussian(1.5, 0.25, other)
    assert (3 * L).reverse() == 3 * L.reverse()


def test_degenerate_ones_are_simpler():
    assert rz.subsampled_gaussian(2.0, 1.0) == rz.gaussian(sigma=2.0)
    assert rz.subsampled_gaussian(2.0, 1.0, "replace") == rz.gaussian(sigma=2.0, sensitivity=2.0)
    assert rz.subsampled_gaussian(2.0, 0.0) == rz.identity()
    assert rz.subsampled_gaussian(2.0, 0.5, sensitivity=0.0) == rz.identity()
    assert rz.mixture_of_gaussians(2.0, [1.0], [1.0]) == rz.gaussian(sigma=2.0)
    assert rz.mixture_of_gaussians(2.0, [0.0], [1.0]) == rz.identity()
    assert rz.mixture_of_gaussians(2.0, [3.0, 0.0], [0.25, 0.75]) == rz.subsampled_gaussian(
        2.0, 0.25, sensitivity=3.0
    )
    assert rz.mixture_of_gaussians(2.0, [1.0, 0.0, 1.0], [0.25, 0.5, 0.25]) == (
        rz.subsampled_gaussian(2.0, 0.5)
    )


EXTREME_RATES = (1e-100, 1e-16, 0.5, 1.0 - 2.0**-53)
EXTREME_SIGMAS = (0.05, 1.0, 1e12)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("rate", "sigma"), list(product(EXTREME_RATES, EXTREME_SIGMAS)))
def test_extreme_parameters(rate, sigma, direction):
    """Both ends of what is allowed, and far beyond the top, without a warning."""
    L = rz.subsampled_gaussian(sigma, rate, direction)
    law = mixture_oracles.subsampled(sigma, rate, direction)
    for t in (0.0, 1e-30, 1e-3, 1.0, 600.0, 1000.0, -1e-3, -700.0):
        assert oracles.agrees(L.delta_bounds(t), oracles.near(law.delta(mpf(t))))
    for t in (1e6, 1e17, 1e300):
        bounds = L.delta_bounds(t)
        assert bounds.lo <= bounds.hi
        assert bounds.hi < 1e-280 or law.delta(mpf(t)) > 1e-290
        assert L.delta_bounds(-t).hi == 1.0


SMALL_WEIGHTS = [
    (0.05, 1e-12, (1.0, 2.0, 4.0)),
    (0.05, 1e-20, (2.0, 5.0)),
    (0.1, 1e-50, (4.0, 8.0)),
]


@pytest.mark.parametrize(("sigma", "rate", "orders"), SMALL_WEIGHTS)
def test_losses_beyond_the_range_of_exp(sigma, rate, orders):
    """A tiny weight times an `e^d` that is no float any more: nothing may saturate."""
    L = rz.subsampled_gaussian(sigma, rate)
    law = mixture_oracles.subsampled(sigma, rate, "remove")
    for s in orders:
        assert oracles.agrees(L.renyi_bounds(1.0 + s), law.log_moment(s) / mpf(s))
    x = np.array([40.0, 60.0, 70.0, 90.0])
    value, error = factor(L).pair.loss(x)
    for at, z, wrong in zip(x, value, error, strict=True):
        assert abs(law.loss(mpf(float(at))) - mpf(float(z))) <= mpf(float(wrong))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_arrays_of_any_shape(direction):
    L = rz.subsampled_gaussian(1.0, 0.1, direction)
    for pld in (L, 5 * L, L + rz.gaussian(mu=1.0)):
        assert pld.delta_bounds(np.zeros((0, 3))).lo.shape == (0, 3)
        reads = np.array([[-0.5, 0.0, 0.05], [0.25, 1.0, 20.0]])[:, None, :]
        whole = pld.delta_bounds(reads)
        assert whole.lo.shape == whole.hi.shape == (2, 1, 3)
        for t, lo, hi in zip(reads.ravel(), whole.lo.ravel(), whole.hi.ravel(), strict=True):
            one = pld.delta_bounds(float(t))
            assert max(lo, one.lo) <= min(hi, one.hi)


# -- where no contour serves ---------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "rate", "n"), [(1.0, 0.01, 2), (2.0, 0.05, 10)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_next_to_the_largest_loss_the_curve_is_bounded_by_moments(sigma, rate, n, share):
    """`A(r) M(r)^n e^{-rt}` at `r = 100`, in mpmath; and never above the value at 0."""
    pld = n * rz.subsampled_gaussian(sigma, rate, "add")
    law = mixture_oracles.subsampled(sigma, rate, "add")
    t, r = share * float(n * law.top), mpf(100)
    peak = r**r / (1 + r) ** (1 + r)
    bound = peak * mp.exp(n * law.log_moment(r) - r * mpf(t))
    assert pld.delta(t) <= bound * (1 + mpf("1e-3"))
    assert pld.delta(t) <= pld.delta(0.0)


@pytest.mark.parametrize("t", [0.3, 0.4])
def test_that_bound_is_above_the_curve(t):
    pld = 10 * rz.subsampled_gaussian(2.0, 0.05, "add")
    law = mixture_oracles.Blend(((mixture_oracles.subsampled(2.0, 0.05, "add"), 10),))
    (bound,) = pld._evaluator._above(np.array([t]))
    assert low(law.delta(t)) <= bound
    assert bound <= pld._evaluator._above(np.array([0.9 * t]))[0]
