"""Supremum and infimum: bounds, least and greatest, lattice laws, and their play with `+`.

For finite PLDs everything is exact and must be proven. Where a side is smooth the results are
rounded outward (`|` up, `&` down), so bounds are proven and equalities hold up to the accuracy.
"""

from __future__ import annotations

import itertools

import pytest

import oracles
import residua as rz
from catalogue import (
    EXACT,
    FINITE,
    LATTICE_PAIRS,
    NAMES,
    TRIPLES,
    XS,
    below,
    case,
    high,
    join,
    low,
    meet,
    truth,
)
from residua import Order

ACCURACY = 1e-5  # of `|` and `&`, in h, where a side is smooth
EXACT_PAIRS = list(itertools.combinations(EXACT, 2))
EXACT_TRIPLES = [
    ("finite +inf", "finite -inf", "finite both"),
    ("from_tradeoff", "finite +inf", "finite symmetric"),
    ("only delta", "finite symmetric", "finite composed"),
    ("identity", "infinite", "finite both"),
]


def proven(A: rz.Pld, B: rz.Pld) -> bool:
    return A <= B


@pytest.mark.parametrize(("a", "b"), LATTICE_PAIRS)
def test_supremum_is_above_both(a, b):
    """Proven above; its curve is nowhere below the larger truth, and is it for exact ones."""
    top = join(a, b)
    assert case(a).pld <= top
    assert case(b).pld <= top
    for x in XS:
        larger = max(low(truth(a, x)), low(truth(b, x)), key=oracles.real)
        h = top.hockey_stick_bounds(x)
        assert oracles.real(h.hi) >= oracles.near(larger).lo
        if a in EXACT and b in EXACT:
            assert oracles.agrees(h, larger)


@pytest.mark.parametrize(("a", "b"), LATTICE_PAIRS)
def test_infimum_is_below_both(a, b):
    """Proven below; its curve is nowhere above the smaller truth."""
    bottom = meet(a, b)
    assert bottom <= case(a).pld
    assert bottom <= case(b).pld
    for x in XS:
        smaller = min(high(truth(a, x)), high(truth(b, x)), key=oracles.real)
        assert oracles.real(bottom.hockey_stick_bounds(x).lo) <= oracles.near(smaller).hi


@pytest.mark.parametrize(("a", "b"), EXACT_PAIRS)
def test_exact_against_rationals(a, b):
    A, B = case(a), case(b)
    top, bottom = A.law.finite.sup_of(B.law.finite), A.law.finite.inf_of(B.law.finite)
    for x in {*XS, *map(float, top.kinks), *map(float, bottom.kinks)}:
        assert oracles.agrees((A.pld | B.pld).hockey_stick_bounds(x), top.hockey_stick(x))
        assert oracles.agrees((A.pld & B.pld).hockey_stick_bounds(x), bottom.hockey_stick(x))
    for mine, theirs in (
        ((A.pld | B.pld).mass_at_infinity_bounds, top.mass_at_infinity),
        ((A.pld | B.pld).mass_at_minus_infinity_bounds, top.mass_at_minus_infinity),
        ((A.pld & B.pld).mass_at_infinity_bounds, bottom.mass_at_infinity),
        ((A.pld & B.pld).mass_at_minus_infinity_bounds, bottom.mass_at_minus_infinity),
    ):
        assert oracles.agrees(mine, theirs)


@pytest.mark.parametrize(("a", "b"), LATTICE_PAIRS)
def test_bounds_are_least_and_greatest(a, b):
    """Whatever is above both is not refuted as above the supremum; likewise below."""
    exact = a in FINITE and b in FINITE
    for c in NAMES:
        C = case(c).pld
        if below(a, c) and below(b, c):
            top = join(a, b)
            assert proven(top, C) if exact and c in FINITE else not_clearly_above(top, c)
        if below(c, a) and below(c, b):
            bottom = meet(a, b)
            assert proven(C, bottom) if exact and c in FINITE else not_clearly_below(bottom, c)


def not_clearly_above(top: rz.Pld, c: str) -> bool:
    """The outward supremum exceeds an upper bound by no more than the accuracy allows."""
    return all(
        oracles.real(top.hockey_stick_bounds(x).lo) <= oracles.real(high(truth(c, x))) + ACCURACY
        for x in XS[1::3]
    )


def not_clearly_below(bottom: rz.Pld, c: str) -> bool:
    return all(
        oracles.real(bottom.hockey_stick_bounds(x).hi) >= oracles.real(low(truth(c, x))) - ACCURACY
        for x in XS[1::3]
    )


@pytest.mark.parametrize(("a", "b"), EXACT_PAIRS)
def test_commutative_and_absorbing(a, b):
    A, B = case(a).pld, case(b).pld
    for X, Y in (
        (A | B, B | A),
        (A & B, B & A),
        (A | (A & B), A),
        (A & (A | B), A),
    ):
        assert rz.compare(X, Y).verdict == Order.EQUAL


@pytest.mark.parametrize("name", NAMES)
def test_idempotent(name):
    L = case(name).pld
    assert rz.compare(L | L, L).verdict == Order.EQUAL
    assert rz.compare(L & L, L).verdict == Order.EQUAL


@pytest.mark.parametrize("name", NAMES)
def test_least_and_greatest_element(name):
    L, top = case(name).pld, rz.approximate_dp(1.0, 1.0)
    assert rz.compare(L | rz.identity(), L).verdict == Order.EQUAL
    assert rz.compare(L & rz.identity(), rz.identity()).verdict == Order.EQUAL
    assert rz.compare(L | top, top).verdict == Order.EQUAL
    assert rz.compare(L & top, L).verdict == Order.EQUAL


@pytest.mark.parametrize(("a", "b"), [("gaussian", "gaussian large"), ("laplace", "pure_dp")])
def test_a_chain_keeps_its_ends(a, b):
    A, B = case(a).pld, case(b).pld
    assert rz.compare(A | B, B).verdict == Order.EQUAL
    assert rz.compare(A & B, A).verdict == Order.EQUAL


@pytest.mark.parametrize(("a", "b", "c"), EXACT_TRIPLES)
def test_of_several(a, b, c):
    A, B, C = case(a).pld, case(b).pld, case(c).pld
    assert rz.compare(rz.supremum([A, B, C]), (A | B) | C).verdict == Order.EQUAL
    assert rz.compare(rz.infimum([A, B, C]), (A & B) & C).verdict == Order.EQUAL
    assert rz.compare((A | B) | C, A | (B | C)).verdict == Order.EQUAL
    assert rz.compare((A & B) & C, A & (B & C)).verdict == Order.EQUAL
    assert rz.supremum([A]) == A
    assert rz.infimum([A]) == A


@pytest.mark.parametrize(("a", "b"), EXACT_PAIRS)
def test_reversal_commutes_with_both(a, b):
    A, B = case(a).pld, case(b).pld
    assert rz.compare((A | B).reverse(), A.reverse() | B.reverse()).verdict == Order.EQUAL
    assert rz.compare((A & B).reverse(), A.reverse() & B.reverse()).verdict == Order.EQUAL


@pytest.mark.parametrize(("l", "a", "b"), EXACT_TRIPLES)
def test_composition_with_a_supremum_is_above(l, a, b):
    """`L + sup{A, B} >= sup{L + A, L + B}`."""
    L, A, B = case(l).pld, case(a).pld, case(b).pld
    assert proven((L + A) | (L + B), L + (A | B))


@pytest.mark.parametrize(("l", "a", "b"), TRIPLES)
def test_composition_with_a_supremum_is_not_refuted(l, a, b):
    L, A, B = case(l).pld, case(a).pld, case(b).pld
    apart = [L + A, L + B]
    together = L + (A | B)
    for x in XS:
        h = together.hockey_stick_bounds(x).hi
        assert all(M.hockey_stick_bounds(x).lo <= h for M in apart)


def test_composition_distributes_over_chains():
    A = case("finite symmetric").pld
    chain = [A, A + A, A + A + A]
    for name in EXACT:
        L = case(name).pld
        left = L + rz.supremum(chain)
        right = rz.supremum([L + M for M in chain])
        assert rz.compare(left, right).verdict == Order.EQUAL


def test_composition_does_not_distribute_in_general():
    """The gap is what filters are about: adaptivity can cost more."""
    A = rz.from_pair([0.75, 0.25], [0.25, 0.75])
    B = rz.from_pair([0.5, 0.375, 0.125], [0.5, 0.5, 0.0])
    left, right = A + (A | B), (A + A) | (A + B)
    comparison = rz.compare(left, right)
    assert comparison.verdict == Order.GREATER
    x, gap = comparison.not_below
    law = {"A": oracles.Finite.of([3, 1], [1, 3]), "B": oracles.Finite.of([4, 3, 1], [4, 4, 0])}
    exact_left = law["A"] + law["A"].sup_of(law["B"])
    exact_right = (law["A"] + law["A"]).sup_of(law["A"] + law["B"])
    assert exact_left.hockey_stick(x) - exact_right.hockey_stick(x) >= oracles.exact(gap)


@pytest.mark.parametrize("accuracy", [1e-2, 1e-4, 1e-6])
def test_smooth_bounds_keep_the_requested_accuracy(accuracy):
    """Outward, and by no more than `accuracy`."""
    A, B = "gaussian", "approximate_dp"
    members = [case(A).pld, case(B).pld]
    top = rz.supremum(members, accuracy=accuracy)
    bottom = rz.infimum(members, accuracy=accuracy)
    for x in (0.5, 0.9, 1.1, 2.0, 6.0):
        larger, smaller = max(truth(A, x), truth(B, x)), min(truth(A, x), truth(B, x))
        h = top.hockey_stick_bounds(x)
        assert larger <= h.hi
        assert h.lo <= larger + accuracy
        assert bottom.hockey_stick_bounds(x).lo <= smaller
    # The infimum's tradeoff curve is the larger of the two, from above.
    for alpha in (0.01, 0.2, 0.6):
        larger = max(case(A).law.tradeoff(alpha), case(B).law.tradeoff(alpha))
        tau = bottom.tradeoff_bounds(alpha)
        assert larger <= tau.hi
        assert all(
            (1 - oracles.real(alpha) - bottom.hockey_stick(x)) / x <= larger + accuracy / x
            for x in (0.5, 1.0, 2.0)
        )
