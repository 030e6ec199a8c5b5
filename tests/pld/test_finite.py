"""Finite PLDs against exact rationals: curves, composition, order and lattice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
import strategies
from oracles import Finite
from residua import Order

positive = strategies.log_uniform(1e-40, 1e40)
levels = st.one_of(st.floats(0, 1), strategies.log_uniform(1e-300, 1))
exact_cases = st.one_of(strategies.finite(), strategies.dyadic())
small_cases = st.one_of(strategies.finite(max_size=4), strategies.dyadic(max_size=4))


def verdict(a: Finite, b: Finite) -> Order:
    return {
        (True, True): Order.EQUAL,
        (True, False): Order.LESS,
        (False, True): Order.GREATER,
        (False, False): Order.INCOMPARABLE,
    }[a <= b, b <= a]


@given(exact_cases, positive)
def test_hockey_stick(case, x):
    assert oracles.agrees(case.pld.hockey_stick_bounds(x), case.truth(x))


@given(exact_cases)
def test_hockey_stick_at_its_own_kinks(case):
    for kink in case.law.finite.kinks:
        x = float(kink)
        if 0 < x < math.inf:
            for near in (np.nextafter(x, 0), x, np.nextafter(x, math.inf)):
                if 0 < near < math.inf:
                    assert oracles.agrees(case.pld.hockey_stick_bounds(near), case.truth(near))


@given(exact_cases, strategies.losses)
def test_delta(case, t):
    assert oracles.agrees(case.pld.delta_bounds(t), case.delta(t))


@given(strategies.atoms(), strategies.losses)
def test_from_losses_and_masses(case, t):
    assert oracles.agrees(case.pld.delta_bounds(t), case.delta(t))


@given(exact_cases, levels)
def test_tradeoff(case, alpha):
    assert oracles.agrees(case.pld.tradeoff_bounds(alpha), case.law.tradeoff(alpha))
    back = case.law.finite.inverse_tradeoff(alpha)
    assert oracles.agrees(case.pld.inverse_tradeoff_bounds(alpha), back)


@given(exact_cases, strategies.orders)
def test_renyi(case, alpha):
    assert oracles.agrees(case.pld.renyi_bounds(alpha), oracles.near(case.law.renyi(alpha)))


@given(exact_cases, levels)
def test_epsilon(case, delta):
    bounds = case.pld.epsilon_bounds(delta)
    if bounds.hi < math.inf:
        assert case.delta(bounds.hi) <= oracles.real(delta)
    else:
        assert case.law.mass_at_infinity >= oracles.exact(delta)
    if bounds.lo == math.inf:
        assert case.law.mass_at_infinity > oracles.exact(delta)
    elif bounds.lo > 0:
        assert case.delta(bounds.lo) >= oracles.real(delta)


@given(exact_cases)
def test_masses_at_infinity(case):
    assert oracles.agrees(case.pld.mass_at_infinity_bounds, case.law.mass_at_infinity)
    missing = case.pld.mass_at_minus_infinity_bounds
    assert oracles.agrees(missing, case.law.mass_at_minus_infinity)


@given(small_cases, small_cases, positive)
def test_composition(first, second, x):
    together = first + second
    assert oracles.agrees(together.pld.hockey_stick_bounds(x), together.truth(x))


@given(strategies.dyadic(max_size=3), st.integers(2, 12), strategies.losses)
def test_power(case, n, t):
    many = case.times(n)
    assert oracles.agrees(many.pld.delta_bounds(t), many.delta(t))


@given(exact_cases, exact_cases)
def test_order_is_the_rational_one(first, second):
    comparison = rz.compare(first.pld, second.pld)
    a, b = first.law.finite, second.law.finite
    assert comparison.verdict == verdict(a, b)
    for witness, above, below in (
        (comparison.not_below, a, b),
        (comparison.not_above, b, a),
    ):
        assert (witness is None) == (above <= below)
        if witness is not None:
            gap = above.hockey_stick(witness.x) - below.hockey_stick(witness.x)
            # A violation may fit between two floats: then the gap is 0.
            assert witness.gap >= 0
            assert witness.gap == 0 or gap >= oracles.exact(witness.gap)


@given(small_cases, small_cases)
def test_order_of_composed_ones_is_the_rational_one(first, second):
    """Composing only raises; with itself it touches."""
    together = first + second
    assert rz.compare(first.pld, together.pld).verdict == verdict(
        first.law.finite, together.law.finite
    )
    assert rz.compare(together.pld, second.pld + first.pld).verdict == Order.EQUAL


@given(exact_cases, exact_cases, positive)
def test_supremum_and_infimum(first, second, x):
    a, b = first.law.finite, second.law.finite
    top, bottom = first.pld | second.pld, first.pld & second.pld
    assert oracles.agrees(top.hockey_stick_bounds(x), a.sup_of(b).hockey_stick(x))
    assert oracles.agrees(bottom.hockey_stick_bounds(x), a.inf_of(b).hockey_stick(x))
    for L in (first.pld, second.pld):
        assert top >= L
        assert bottom <= L


@given(small_cases, small_cases, small_cases)
def test_supremum_is_least_and_infimum_greatest(first, second, third):
    """Built so that the premise always holds: `C | A` is above `A`."""
    A, B, C = first.pld, second.pld, third.pld
    upper = rz.supremum([A, B, C])
    lower = rz.infimum([A, B, C])
    assert upper >= (A | B)
    assert lower <= (A & B)
    above = A | B
    assert rz.compare(rz.supremum([above, A]), above).verdict == Order.EQUAL


@given(exact_cases)
def test_pair_gives_the_pld_back(case):
    p, q = case.pld.pair()
    again = Finite.of(p, q)
    law = case.law.finite
    for x in (0.1, 0.5, 1.0, 1.5, 7.0):
        slack = (1 + Fraction(x)) * 4 * Fraction(1, 2**53)
        assert abs(again.hockey_stick(x) - law.hockey_stick(x)) <= slack


@given(exact_cases)
def test_reversal(case):
    back = case.reverse()
    for x in (0.2, 1.0, 3.0):
        assert oracles.agrees(back.pld.hockey_stick_bounds(x), back.truth(x))
    assert case.pld.is_symmetric == (
        sorted(case.law.finite.merge().pairs) == sorted(back.law.finite.merge().pairs)
    )


@given(strategies.pairs(max_size=8), st.randoms())
def test_order_of_the_outcomes_does_not_matter(pair, random):
    p, q = pair
    where = list(range(len(p)))
    random.shuffle(where)
    shuffled = rz.from_pair([p[i] for i in where], [q[i] for i in where])
    assert shuffled == rz.from_pair(p, q)
    assert hash(shuffled) == hash(rz.from_pair(p, q))


def test_duplicate_losses_are_merged():
    twice = rz.from_atoms([0.5, 1.0, 0.5], [0.25, 0.5, 0.25])
    assert twice == rz.from_atoms([1.0, 0.5], [0.5, 0.5])
    assert len(twice.pair()[0]) == 3  # two losses, and what Q keeps at -inf


def test_ten_thousand_atoms():
    rng = np.random.default_rng(7)
    z = np.sort(rng.normal(0.0, 1.0, 10_000))
    p = rng.dirichlet(np.ones(z.size)) + 1e-12
    p /= p.sum()
    z += math.log(math.fsum(p * np.exp(-z))) + 0.1
    L = rz.from_atoms(z, p)
    law = oracles.from_atoms(list(z), list(p), 0.0)
    for t in (-2.0, 0.0, 0.37, 3.0):
        truth = oracles.ulps(law.hockey_stick, mp.exp(t))
        assert oracles.agrees(L.delta_bounds(t), truth)
    assert rz.identity() < L
    assert rz.compare(L, L | rz.pure_dp(0.1)).verdict in (Order.LESS, Order.EQUAL)


@pytest.mark.parametrize("n", [1, 7, 400])
def test_nearly_all_mass_at_infinity(n):
    """`1 - mass` is 2^-60: no float is close to the mass at infinity itself."""
    p, q = [2.0**-60, 1.0], [1.0, 0.0]
    L = n * rz.from_pair(p, q)
    kept = Finite.of(p, q).pairs[0][0] ** n
    assert oracles.agrees(L.mass_at_infinity_bounds, 1 - kept)
    assert L.delta_bounds(1.0).hi == 1.0
    assert L.delta_bounds(1.0).lo > 0.999


@pytest.mark.parametrize("tiny", [1e-300, 2.0**-1000])
def test_tiny_masses_keep_their_loss(tiny):
    p, q = [tiny, 1.0], [0.5, 0.5]
    L = rz.from_pair(p, q)
    law = Finite.of(p, q)
    back = L.reverse()
    for x in (1e-3, 1.0, 2.0, 1e250):
        assert oracles.agrees(L.hockey_stick_bounds(x), law.hockey_stick(x))
        assert oracles.agrees(back.hockey_stick_bounds(x), law.reverse().hockey_stick(x))
    assert oracles.agrees(back.epsilon_bounds(0.0), law.reverse().largest_loss())
