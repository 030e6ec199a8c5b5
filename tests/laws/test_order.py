"""The Blackwell order is a partial order with least element `Id` and greatest `inf`.

`<=` is True only when proven, so the laws are about what is proven, and nothing that is
proven may contradict the exact curves.
"""

from __future__ import annotations

import itertools

import pytest

import oracles
import residua as rz
from catalogue import (
    ATOMIC,
    EXACT,
    FINITE_PAIRS,
    NAMES,
    PAIRS,
    XS,
    below,
    case,
    compared,
    high,
    low,
    truth,
)
from residua import Order

MIRROR = {
    Order.LESS: Order.GREATER,
    Order.GREATER: Order.LESS,
    Order.EQUAL: Order.EQUAL,
    Order.INCOMPARABLE: Order.INCOMPARABLE,
    Order.UNDECIDED: Order.UNDECIDED,
}


@pytest.mark.parametrize("name", NAMES)
def test_reflexive(name):
    L = case(name).pld
    assert L <= L
    assert L >= L
    assert not L < L
    assert not L > L
    assert rz.compare(L, L) == rz.Comparison(Order.EQUAL, None, None)


@pytest.mark.parametrize("name", NAMES)
def test_identity_is_least_and_inf_is_greatest(name):
    L = case(name).pld
    assert rz.identity() <= L
    assert rz.approximate_dp(1.0, 1.0) >= L


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_verdicts_agree_with_the_exact_curves(a, b):
    comparison = compared(a, b)
    verdict, not_below, not_above = (
        comparison.verdict,
        comparison.not_below,
        comparison.not_above,
    )
    lies_below = all(
        oracles.real(low(truth(a, x))) <= oracles.near(high(truth(b, x))).hi for x in XS
    )
    lies_above = all(
        oracles.real(low(truth(b, x))) <= oracles.near(high(truth(a, x))).hi for x in XS
    )
    if verdict in (Order.LESS, Order.EQUAL):
        assert lies_below
        assert not_below is None
    if verdict in (Order.GREATER, Order.EQUAL):
        assert lies_above
        assert not_above is None
    if verdict in (Order.LESS, Order.INCOMPARABLE):
        assert_witness(b, a, not_above)
    if verdict in (Order.GREATER, Order.INCOMPARABLE):
        assert_witness(a, b, not_below)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_compare_and_operators_tell_one_story(a, b):
    A, B = case(a).pld, case(b).pld
    verdict = compared(a, b).verdict
    assert compared(b, a).verdict == MIRROR[verdict]
    assert (A <= B) == (verdict in (Order.LESS, Order.EQUAL))
    assert (A >= B) == (verdict in (Order.GREATER, Order.EQUAL))
    if a in ATOMIC:
        assert (A < B) == (B > A) == (verdict == Order.LESS)
        assert (A > B) == (B < A) == (verdict == Order.GREATER)


def assert_witness(larger: str, smaller: str, witness: rz.Witness | None) -> None:
    """The witness shows a point where the first curve is above by at least its gap.

    The gap may be too small for a float, but not for the oracle.
    """
    assert witness is not None
    x, gap = witness
    assert gap >= 0
    # Left of 1 both curves are 1 - x and a little; only the reversed ones have the digits.
    first, second = case(larger), case(smaller)
    if x < 1:
        first, second = first.reverse(), second.reverse()
    scale = min(oracles.exact(x), 1)
    at = oracles.real(max(oracles.exact(x), 1 / oracles.exact(x)))
    difference = oracles.real(high(first.truth(at))) - oracles.real(low(second.truth(at)))
    assert difference > 0
    assert oracles.real(scale) * difference >= gap


@pytest.mark.parametrize("c", NAMES)
def test_transitive(c):
    higher = [name for name in NAMES if below(c, name)]
    lower = [name for name in NAMES if below(name, c)]
    for a, b in itertools.product(lower, higher):
        assert compared(a, b).verdict in (Order.LESS, Order.EQUAL)


@pytest.mark.parametrize(("a", "b"), FINITE_PAIRS)
def test_finite_order_is_decided_as_in_rationals(a, b):
    verdict = rz.compare(case(a).pld, case(b).pld).verdict
    assert verdict != Order.UNDECIDED
    if a in EXACT and b in EXACT:
        first = case(a).law.finite <= case(b).law.finite
        second = case(b).law.finite <= case(a).law.finite
        expected = {
            (True, True): Order.EQUAL,
            (True, False): Order.LESS,
            (False, True): Order.GREATER,
            (False, False): Order.INCOMPARABLE,
        }[first, second]
        assert verdict == expected


def test_known_chain_is_proven():
    chain = [rz.gaussian(mu=mu) for mu in (1e-9, 1e-3, 0.3, 0.3 + 1e-9, 1.0, 8.0, 50.0)]
    for first, second in itertools.pairwise(chain):
        assert first < second


def test_laplace_is_below_pure_dp():
    assert rz.laplace(scale=2.0) < rz.pure_dp(0.5)
    assert rz.compare(rz.pure_dp(0.5), rz.laplace(scale=2.0)).verdict == Order.GREATER


def test_order_with_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        rz.identity() <= 1.0  # noqa: B015
    with pytest.raises(rz.ArgumentTypeError):
        rz.compare(rz.identity(), 1.0)
