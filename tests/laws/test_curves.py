"""Laws of the curves: shape, inverse, conjugacy, additivity; every interval holds the truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mpmath import mp

import oracles
import residua as rz
from catalogue import (
    EXACT,
    FINITE,
    NAMES,
    PAIRS,
    READ_AT,
    XS,
    case,
    high,
    low,
    overlap,
    truth,
    truth_at,
)

ALPHAS = (0.0, 1e-12, 0.01, 0.125, 0.4, 0.75, 0.99, 1.0)
DELTAS = (1e-12, 1e-6, 0.01, 0.3, 0.999)
ORDERS = (0.25, 0.5, 1.0, 1.5, 2.0, 16.0, float("inf"))


@pytest.mark.parametrize("name", NAMES)
def test_hockey_stick_holds_the_truth(name):
    L = case(name).pld
    for x in XS:
        assert oracles.agrees(L.hockey_stick_bounds(x), truth(name, x))


@pytest.mark.parametrize("name", NAMES)
def test_delta_holds_the_truth(name):
    L = case(name).pld
    for t in READ_AT:
        assert oracles.agrees(L.delta_bounds(t), truth_at(name, t))


@pytest.mark.parametrize("name", NAMES)
def test_hockey_stick_is_decreasing_convex_and_above_its_floor(name):
    L = case(name).pld
    curve = [(x, L.hockey_stick_bounds(x)) for x in XS]
    for x, h in curve:
        assert 0 <= h.lo <= h.hi <= 1
        assert h.hi >= 1 - x
    for (_, first), (_, second) in itertools.pairwise(curve):
        assert second.lo <= first.hi
    for (a, first), (b, middle), (c, last) in zip(curve, curve[1:], curve[2:], strict=False):
        share = (oracles.exact(c) - oracles.exact(b)) / (oracles.exact(c) - oracles.exact(a))
        chord = share * oracles.exact(first.hi) + (1 - share) * oracles.exact(last.hi)
        assert oracles.exact(middle.lo) <= chord


@pytest.mark.parametrize("name", NAMES)
def test_hockey_stick_starts_at_one(name):
    L = case(name).pld
    for x in (5e-324, 1e-300, 1e-30):
        h = L.hockey_stick_bounds(x)
        assert h.lo <= 1 <= np.nextafter(h.hi + x, 2)
        assert h.lo >= 1 - 1e-14


@pytest.mark.parametrize("name", NAMES)
def test_delta_is_the_hockey_stick_at_exp_eps(name):
    L = case(name).pld
    for x in XS:
        t = float(np.log(x))
        around = L.delta_bounds(np.array([np.nextafter(t, -np.inf), np.nextafter(t, np.inf)]))
        assert overlap(rz.Interval(around.lo[1], around.hi[0]), L.hockey_stick_bounds(x))


@pytest.mark.parametrize("name", NAMES)
def test_arrays_read_as_scalars_do(name):
    L = case(name).pld
    several = np.array(READ_AT).reshape(2, 5)
    both = L.delta_bounds(several)
    assert both.lo.shape == both.hi.shape == (2, 5)
    for t, lo, hi in zip(several.ravel(), both.lo.ravel(), both.hi.ravel(), strict=True):
        assert overlap(rz.Interval(lo, hi), L.delta_bounds(float(t)))
    assert oracles.agrees(rz.Interval(both.lo[1, 1], both.hi[1, 1]), truth_at(name, several[1, 1]))
    assert L.hockey_stick(np.array(XS)).shape == (len(XS),)
    assert L.tradeoff(np.array([[0.25, 0.5]])).shape == (1, 2)
    assert L.epsilon(np.array([0.25, 0.5])).shape == (2,)
    assert L.renyi(np.array([0.5, 2.0])).shape == (2,)
    assert L.delta(np.array([])).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_plain_calls_return_the_safe_side(name):
    L = case(name).pld
    calls = [
        (L.hockey_stick(1.5), L.hockey_stick_bounds(1.5).hi),
        (L.delta(0.3), L.delta_bounds(0.3).hi),
        (L.epsilon(0.01), L.epsilon_bounds(0.01).hi),
        (L.tradeoff(0.3), L.tradeoff_bounds(0.3).lo),
        (L.inverse_tradeoff(0.3), L.inverse_tradeoff_bounds(0.3).lo),
        (L.renyi(2.0), L.renyi_bounds(2.0).hi),
        (L.mass_at_infinity, L.mass_at_infinity_bounds.hi),
        (L.mass_at_minus_infinity, L.mass_at_minus_infinity_bounds.hi),
    ]
    for plain, safe in calls:
        assert type(plain) is float
        assert plain == safe


@pytest.mark.parametrize("name", NAMES)
def test_masses_at_infinity_hold_the_truth(name):
    L, law = case(name).pld, case(name).law
    spread = case(name).rounded * mp.mpf("1e-15")
    for bounds, mass in (
        (L.mass_at_infinity_bounds, law.mass_at_infinity),
        (L.mass_at_minus_infinity_bounds, law.mass_at_minus_infinity),
    ):
        truth = oracles.Bracket(oracles.real(mass) - spread, oracles.real(mass) + spread)
        assert oracles.agrees(bounds, truth if spread else mass)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_safe_and_holds_the_truth(name, delta):
    """`delta(eps) <= delta` at the upper end, `>=` at the lower end unless that is 0."""
    L, law = case(name).pld, case(name)
    bounds = L.epsilon_bounds(delta)
    assert 0 <= bounds.lo <= bounds.hi
    if bounds.hi < np.inf:
        assert L.delta_bounds(bounds.hi).lo <= delta
        assert low(law.delta(bounds.hi)) <= delta
    else:
        assert high(law.law.mass_at_infinity) >= delta
    if bounds.lo == np.inf:
        # An unbounded loss never comes down to its mass at infinity.
        mass, unbounded = law.law.mass_at_infinity, L.renyi(np.inf) == np.inf
        assert mass >= delta if unbounded else mass > delta
    elif bounds.lo > 0:
        assert high(law.delta(bounds.lo)) >= delta


@pytest.mark.parametrize("name", NAMES)
def test_epsilon_of_one_is_zero(name):
    assert case(name).pld.epsilon_bounds(1.0) == rz.Interval(0.0, 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_epsilon_of_zero_is_the_largest_loss(name):
    L, law = case(name).pld, case(name).law
    bounds = L.epsilon_bounds(0.0)
    largest = law.renyi(float("inf"))
    if largest == mp.inf:
        assert bounds.hi == np.inf
    elif case(name).rounded == 0:
        assert oracles.agrees(bounds, oracles.near(max(largest, mp.mpf(0))))


@pytest.mark.parametrize("name", NAMES)
def test_tradeoff_is_decreasing_convex_and_below_its_ceiling(name):
    L = case(name).pld
    curve = [(a, L.tradeoff_bounds(a)) for a in ALPHAS]
    for alpha, tau in curve:
        assert 0 <= tau.lo <= tau.hi <= 1
        assert tau.lo <= 1 - alpha
    for (_, first), (_, second) in itertools.pairwise(curve):
        assert second.lo <= first.hi
    for (a, first), (b, middle), (c, last) in zip(curve, curve[1:], curve[2:], strict=False):
        share = (oracles.exact(c) - oracles.exact(b)) / (oracles.exact(c) - oracles.exact(a))
        chord = share * oracles.exact(first.hi) + (1 - share) * oracles.exact(last.hi)
        assert oracles.exact(middle.lo) <= chord


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("finite from losses", "from_hockey_stick")]
)
def test_tradeoff_holds_the_truth(name):
    """Exactly where the law is finite or Gaussian; else every tangent lies below the upper end."""
    L, law = case(name).pld, case(name).law
    closed = law.is_finite or (not law.laplaces and law.finite == oracles.IDENTITY)
    for alpha in ALPHAS:
        bounds = L.tradeoff_bounds(alpha)
        if closed:
            exact = name in EXACT
            value = law.tradeoff(alpha)
            assert oracles.agrees(bounds, value if exact else oracles.near(value))
        else:
            for x in XS:
                tangent = (1 - oracles.real(alpha) - low(truth(name, x))) / oracles.real(x)
                assert oracles.near(tangent).lo <= oracles.real(bounds.hi)


@pytest.mark.parametrize("name", NAMES)
def test_tradeoff_and_its_inverse(name):
    L = case(name).pld
    start = L.tradeoff_bounds(0.0).lo
    for beta in ALPHAS:
        back = L.inverse_tradeoff_bounds(beta)
        assert overlap(back, L.reverse().tradeoff_bounds(beta))
        assert L.tradeoff_bounds(back.hi).lo <= beta
        if beta <= start:
            assert L.tradeoff_bounds(back.lo).hi >= beta


@pytest.mark.parametrize("name", NAMES)
def test_tradeoff_is_conjugate_to_the_hockey_stick(name):
    """`h(x) >= 1 - alpha - x tau(alpha)` for every pair."""
    L = case(name).pld
    for alpha, x in itertools.product(ALPHAS, XS):
        tau, h = L.tradeoff_bounds(alpha), L.hockey_stick_bounds(x)
        line = 1 - oracles.exact(alpha) - oracles.exact(x) * oracles.exact(tau.hi)
        assert line <= oracles.exact(h.hi)


@pytest.mark.parametrize("name", EXACT)
def test_conversions_between_curves(name):
    """On the safe side of the truth (up to the rounding of the vertices), and next to it."""
    law = case(name).law.finite
    alphas, betas = np.array(law.tradeoff_points(), dtype=float).T
    for x in XS:
        value = oracles.exact(rz.hockey_stick_from_tradeoff(alphas, betas, x))
        assert -(1 + x) * 2.0**-53 <= value - law.hockey_stick(x) <= (1 + x) * 1e-13
    xs = np.array(law.kinks, dtype=float)
    values = np.array([law.hockey_stick(x) for x in law.kinks], dtype=float)
    for alpha in ALPHAS if len(xs) else ():
        value = oracles.exact(rz.tradeoff_from_hockey_stick(xs, values, alpha))
        assert -1e-13 <= value - law.tradeoff(alpha) <= 1e-15


@pytest.mark.parametrize("name", NAMES)
def test_renyi_holds_the_truth_and_grows_with_the_order(name):
    L, law = case(name).pld, case(name).law
    values = [L.renyi_bounds(alpha) for alpha in ORDERS]
    for first, second in itertools.pairwise(values):
        assert first.lo <= second.hi
    if case(name).rounded == 0:
        for alpha, bounds in zip(ORDERS, values, strict=True):
            assert oracles.agrees(bounds, oracles.near(law.renyi(alpha)))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_renyi_is_additive(a, b):
    A, B = case(a).pld, case(b).pld
    for alpha in (0.5, 1.0, 3.0):
        apart = [L.renyi_bounds(alpha) for L in (A, B)]
        together = (A + B).renyi_bounds(alpha)
        assert together.lo <= np.nextafter(apart[0].hi + apart[1].hi, np.inf)
        assert np.nextafter(apart[0].lo + apart[1].lo, -np.inf) <= together.hi


@pytest.mark.parametrize("name", FINITE)
def test_finite_intervals_are_narrow(name):
    L = case(name).pld
    for x in XS:
        assert L.hockey_stick_bounds(x).width <= 1e-13 * (1 + x)
