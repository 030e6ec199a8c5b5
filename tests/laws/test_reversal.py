"""Reversal is an involution, a monoid map, monotone, and mirrors the curve."""

from __future__ import annotations

import pytest
from mpmath import mp

import oracles
import residua as rz
from catalogue import NAMES, PAIRS, READ_AT, case, high, low, truth_at
from residua import Order


@pytest.mark.parametrize("name", NAMES)
def test_involution(name):
    L = case(name).pld
    assert L.reverse().reverse() == L


@pytest.mark.parametrize("name", NAMES)
def test_curve_is_mirrored(name):
    """`h_rev(x) = 1 - x + x h(1/x)`."""
    back = case(name).pld.reverse()
    for t in READ_AT:
        x = mp.exp(oracles.real(t))
        value = truth_at(name, -t)
        least, most = (oracles.near(1 - x + x * oracles.real(end(value))) for end in (low, high))
        mirrored = oracles.Bracket(least.lo, most.hi)
        assert oracles.agrees(back.delta_bounds(t), mirrored)


@pytest.mark.parametrize("name", NAMES)
def test_symmetric_means_equal_to_its_reversal(name):
    L = case(name).pld
    if L.is_symmetric:
        assert L.reverse() == L
    else:
        law = case(name).law
        assert rz.compare(L, L.reverse()).verdict != Order.EQUAL
        assert sorted(law.finite.merge().pairs) != sorted(law.finite.reverse().merge().pairs)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_reversal_of_a_sum(a, b):
    A, B = case(a).pld, case(b).pld
    assert (A + B).reverse() == A.reverse() + B.reverse()


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_monotone(a, b):
    A, B = case(a).pld, case(b).pld
    verdict = rz.compare(A, B).verdict
    back = rz.compare(A.reverse(), B.reverse()).verdict
    assert Order.UNDECIDED in (verdict, back) or back == verdict


@pytest.mark.parametrize("name", NAMES)
def test_masses_at_infinity_swap(name):
    L = case(name).pld
    assert L.reverse().mass_at_infinity == L.mass_at_minus_infinity
    assert L.reverse().mass_at_minus_infinity == L.mass_at_infinity
