"""Composition is a commutative monoid, monotone in each argument; `n * L` is repeated addition."""

from __future__ import annotations

from itertools import product

import pytest

import residua as rz
from catalogue import EXACT, NAMES, PAIRS, READ_AT, TRIPLES, below, case, overlap
from residua import Order


def same_curve(A: rz.Pld, B: rz.Pld) -> bool:
    """Equal structure, or intervals that meet wherever we look."""
    return A == B or all(overlap(A.delta_bounds(t), B.delta_bounds(t)) for t in READ_AT)


@pytest.mark.parametrize("name", NAMES)
def test_identity_is_neutral(name):
    L = case(name).pld
    assert L + rz.identity() == L
    assert rz.identity() + L == L


@pytest.mark.parametrize("name", NAMES)
def test_infinite_absorbs(name):
    top = rz.approximate_dp(1.0, 1.0)
    absorbed = case(name).pld + top
    assert absorbed.delta_bounds(100.0) == rz.Interval(1.0, 1.0)
    assert top <= absorbed
    assert absorbed <= top


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_commutative(a, b):
    A, B = case(a).pld, case(b).pld
    assert A + B == B + A
    assert hash(A + B) == hash(B + A)


@pytest.mark.parametrize(("a", "b", "c"), TRIPLES)
def test_associative(a, b, c):
    A, B, C = case(a).pld, case(b).pld, case(c).pld
    assert same_curve((A + B) + C, A + (B + C))


@pytest.mark.parametrize("name", NAMES)
def test_multiplication_is_repeated_addition(name):
    L = case(name).pld
    assert rz.identity() == 0 * L
    assert 1 * L == L
    assert 3 * L == L * 3
    assert same_curve(3 * L, L + L + L)
    assert same_curve(2 * (2 * L), 4 * L)
    assert same_curve(2 * L + 3 * L, 5 * L)


@pytest.mark.parametrize("name", NAMES)
def test_composing_never_lowers(name):
    """`L = L + Id <= L + M`."""
    L = case(name).pld
    for other in ("pure_dp", "gaussian", "finite both"):
        more = L + case(other).pld
        assert rz.compare(more, L).verdict not in (Order.LESS, Order.INCOMPARABLE)
        assert all(L.delta_bounds(t).lo <= more.delta_bounds(t).hi for t in READ_AT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", ["finite both", "gaussian", "laplace"])
def test_monotone(name, other):
    """`A <= B` gives `A + L <= B + L`: nothing that is read contradicts it."""
    higher = [b for b in NAMES if below(name, b)]
    assert name in higher
    lower = case(name).pld + case(other).pld
    reads = (-1.0, 0.2, 2.5)
    ends = [lower.delta_bounds(t).lo for t in reads]
    for b in higher:
        upper = case(b).pld + case(other).pld
        assert all(lo <= upper.delta_bounds(t).hi for t, lo in zip(reads, ends, strict=True))


@pytest.mark.parametrize("other", ["finite both", "finite symmetric"])
def test_monotone_is_proven_for_finite_ones(other):
    L = case(other).pld
    ordered = [(a, b) for a, b in product(EXACT, EXACT) if below(a, b)]
    assert len(ordered) > 20
    for a, b in ordered:
        assert case(a).pld + L <= case(b).pld + L


@pytest.mark.parametrize(("a", "b", "c"), TRIPLES)
def test_masses_at_infinity_multiply(a, b, c):
    together = case(a).pld + case(b).pld + case(c).pld
    keep_p, keep_q = 1, 1
    for name in (a, b, c):
        keep_p *= 1 - case(name).law.mass_at_infinity
        keep_q *= 1 - case(name).law.mass_at_minus_infinity
    spread = sum(case(name).rounded for name in (a, b, c)) * 1e-15
    for bounds, mass in (
        (together.mass_at_infinity_bounds, 1 - keep_p),
        (together.mass_at_minus_infinity_bounds, 1 - keep_q),
    ):
        assert bounds.lo - spread <= mass <= bounds.hi + spread
