"""The places where the text, or common sense, misleads; each test fails if the trap is sprung."""

from __future__ import annotations

import math

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

# 1. `L <= R_{eps,delta}` needs `h_L(e^-eps)` as well, unless L is symmetric.


def test_trap_1_one_evaluation_does_not_decide_approximate_dp():
    """The loss is ln 2 for sure, but `Q` has half its mass where `P` has none."""
    L = rz.from_pair([1.0, 0.0], [0.5, 0.5])
    budget = rz.approximate_dp(1.0, 0.01)
    assert L.delta(1.0) == 0.0  # the printed condition holds
    assert not budget >= L
    comparison = rz.compare(L, budget)
    assert comparison.verdict == Order.INCOMPARABLE
    x, gap = comparison.not_below
    law, bound = Finite.of([1, 0], [1, 1]), oracles.approximate_dp(1.0, 0.01)
    assert x < 1
    assert law.hockey_stick(mp.mpf(x)) - bound.hockey_stick(mp.mpf(x)) >= gap > 0
    assert not L.reverse() <= budget


@given(strategies.dyadic(), st.floats(0.01, 3))
def test_trap_1_both_evaluations_decide_approximate_dp(case, eps):
    """`delta` just above `h(e^eps)`, so that the verdict hangs on `h(e^-eps)` alone."""
    law = case.law.finite.real()
    up, down = mp.exp(oracles.real(eps)), mp.exp(-oracles.real(eps))
    delta = min(float(law.hockey_stick(up)) + 1e-9, 1.0)
    bound = oracles.approximate_dp(eps, delta)
    gaps = [law.hockey_stick(x) - bound.hockey_stick(x) for x in (up, down)]
    assert gaps[0] <= 0
    proven = case.pld <= rz.approximate_dp(eps, delta)
    if gaps[1] > mp.mpf("1e-40"):
        assert not proven
    elif max(gaps) < -mp.mpf("1e-12"):
        assert proven


@given(strategies.dyadic(), st.floats(0.01, 3), st.floats(1e-6, 0.9))
def test_trap_1_one_evaluation_decides_for_symmetric_ones(case, eps, delta):
    symmetric = case.pld + case.pld.reverse()
    law = case.law.finite + case.law.finite.reverse()
    gap = law.hockey_stick(mp.exp(oracles.real(eps))) - oracles.real(delta)
    proven = symmetric <= rz.approximate_dp(eps, delta)
    if gap > mp.mpf("1e-40"):
        assert not proven
    elif gap < -mp.mpf("1e-12"):
        assert proven


# 2. Everything is one-sided in (P, Q): `x >= 1` alone decides nothing.


@pytest.mark.parametrize(
    "budget",
    [rz.gaussian(mu=3.0), 40 * rz.pure_dp(0.5), rz.gaussian(mu=2.0) + rz.laplace(scale=1.0)],
    ids=["gaussian", "pure", "mixed"],
)
def test_trap_2_the_half_line_above_one_is_not_enough(budget):
    """Far below a symmetric budget for `x >= 1`, above it near `x = 0`."""
    L = rz.from_pair([1.0, 0.0], [0.875, 0.125])
    for x in np.geomspace(1.0, 1e6, 60):
        assert L.hockey_stick(x) <= budget.hockey_stick_bounds(x).lo
    assert not budget >= L
    assert not L.reverse() <= budget
    assert rz.compare(L, budget).not_below.x < 1


def test_trap_2_directions_differ():
    """The two directions of one mechanism are different values with different curves."""
    p, q = [0.75, 0.125, 0.125], [0.5, 0.5, 0.0]
    L, law = rz.from_pair(p, q), Finite.of(p, q)
    back = L.reverse()
    assert back != L
    assert not L.is_symmetric
    for x in (0.5, 1.4, 5.0):
        assert oracles.agrees(L.hockey_stick_bounds(x), law.hockey_stick(x))
        assert oracles.agrees(back.hockey_stick_bounds(x), law.reverse().hockey_stick(x))
        assert law.hockey_stick(x) != law.reverse().hockey_stick(x)
    assert L.mass_at_infinity == 0.125
    assert back.mass_at_infinity == 0.0


# 3. `R_{0,d}` splits off only where the rest is a PLD.


def test_trap_3_mass_at_infinity_does_not_split_off():
    """`P` has mass 1/8 at +inf and `Q` is whole: this is not `R_{0,1/8}` plus something."""
    p, q = [0.875, 0.125], [1.0, 0.0]
    L, law = rz.from_pair(p, q), Finite.of(p, q)
    split = rz.approximate_dp(0.0, 0.125)
    assert split != L
    assert L.mass_at_minus_infinity == 0.0
    assert rz.compare(L, split).verdict == Order.LESS
    for other, other_law in (
        (rz.gaussian(mu=1.0), oracles.Law(variance=1)),
        (rz.laplace(scale=2.0), oracles.Law(laplaces=((0.5, 1),))),
        (rz.pure_dp(0.5), oracles.Law(oracles.approximate_dp(0.5))),
    ):
        whole = oracles.Law(law) + other_law
        for t in (-2.0, -0.1, 0.0, 0.3, 2.0):
            assert oracles.agrees((L + other).delta_bounds(t), whole.delta(t))
        assert not split + other <= L + other


def test_trap_3_the_composed_inequality_is_checked_directly():
    """Conditioned on a finite loss, L looks smaller than nothing at all; it is not."""
    L = rz.from_pair([0.875, 0.125], [1.0, 0.0])
    assert not rz.identity() >= L
    assert not L + rz.gaussian(mu=1.0) <= rz.gaussian(mu=1.0)
    small = rz.approximate_dp(0.0, 0.0625)
    assert not small >= L
    # delta to spare at +inf, but nothing to spare for what Q lost at -inf:
    M = L.reverse()
    assert M.mass_at_infinity == 0.0
    assert not rz.gaussian(mu=50.0) >= M


# 6. Composing piecewise-linear tradeoff curves: slopes are negative, steepest first.


@given(strategies.dyadic(max_size=4), strategies.dyadic(max_size=4))
def test_trap_6_composed_tradeoff_is_the_convolution(first, second):
    curves = []
    for case in (first, second):
        points = case.law.finite.tradeoff_points()
        curves.append(([float(a) for a, _ in points], [float(b) for _, b in points]))
    alphas, betas = rz.compose_tradeoff(*curves)
    together = (first.law.finite + second.law.finite).tradeoff_points()
    expected = [(float(a), float(b)) for a, b in together]
    assert list(zip(alphas.tolist(), betas.tolist(), strict=True)) == expected


def test_trap_6_the_curve_starts_at_the_mass_at_minus_infinity():
    """`1 - f(0) = d1 + d2 - d1 d2` with `Q`'s masses at -inf, not `P`'s at +inf."""
    first = ([0.0, 0.5], [0.75, 0.0])  # half of P at +inf, a quarter of Q at -inf
    second = ([0.0, 0.875], [0.5, 0.0])
    alphas, betas = rz.compose_tradeoff(first, second)
    assert betas[0] == 1 - (0.25 + 0.5 - 0.25 * 0.5)
    assert alphas[0] == 0.0
    assert betas[-1] == 0.0
    at_infinity = 0.5 + 0.125 - 0.5 * 0.125
    assert alphas[betas == 0.0].min() == 1 - at_infinity


def test_trap_6_composition_is_steepest_first():
    curve = ([0.0, 0.125, 1.0], [1.0, 0.5, 0.0])
    alphas, betas = rz.compose_tradeoff(curve, curve)
    slopes = np.diff(betas) / np.diff(alphas)
    assert (np.diff(slopes) > 0).all()
    assert slopes[0] == -16.0


# 7. Degenerate PLDs (one finite loss) are unordered and still distribute over suprema.


def test_trap_7_the_degenerate_pair():
    first = rz.from_pair([0.5, 0.5], [1.0, 0.0])  # 1/2 at -ln 2, 1/2 at +inf
    second = rz.from_atoms([0.0], [2 / 3], mass_at_infinity=1 / 3)
    assert rz.compare(first, second).verdict == Order.INCOMPARABLE
    top = first | second
    for L in (first, second):
        apart = (L + first) | (L + second)
        assert rz.compare(L + top, apart).verdict == Order.EQUAL


def test_trap_7_a_non_degenerate_unordered_pair_does_not_distribute():
    first = rz.from_pair([0.75, 0.25], [0.25, 0.75])
    second = rz.from_pair([0.5, 0.375, 0.125], [0.625, 0.375, 0.0])
    assert rz.compare(first, second).verdict == Order.INCOMPARABLE
    top = first | second
    verdicts = [rz.compare(L + top, (L + first) | (L + second)).verdict for L in (first, second)]
    assert Order.GREATER in verdicts
    assert set(verdicts) <= {Order.GREATER, Order.EQUAL}


# 9. NaN is never good news: nothing is admitted because a comparison was false.

NAN = float("nan")


@pytest.mark.parametrize(
    "build",
    [
        lambda: rz.gaussian(mu=NAN),
        lambda: rz.gaussian(sigma=NAN),
        lambda: rz.gaussian(sigma=1.0, sensitivity=NAN),
        lambda: rz.laplace(scale=NAN),
        lambda: rz.laplace(scale=1.0, sensitivity=NAN),
        lambda: rz.pure_dp(NAN),
        lambda: rz.approximate_dp(NAN, 0.1),
        lambda: rz.approximate_dp(0.1, NAN),
        lambda: rz.from_atoms([NAN], [1.0]),
        lambda: rz.from_atoms([0.0], [NAN]),
        lambda: rz.from_atoms([0.0], [1.0], mass_at_infinity=NAN),
        lambda: rz.from_pair([NAN, 1.0], [0.5, 0.5]),
        lambda: rz.from_pair([0.5, 0.5], [NAN, 1.0]),
        lambda: rz.from_tradeoff([0.0, NAN], [1.0, 0.0]),
        lambda: rz.from_tradeoff([0.0, 1.0], [1.0, NAN]),
        lambda: rz.from_hockey_stick([1.0, NAN], [0.5, 0.25]),
        lambda: rz.from_hockey_stick([1.0, 2.0], [0.5, NAN]),
        lambda: rz.Interval(NAN, 1.0),
        lambda: rz.Interval(0.0, NAN),
    ],
)
def test_trap_9_no_value_is_built_from_nan(build):
    with pytest.raises(rz.ArgumentError, match="nan"):
        build()


@pytest.mark.parametrize(
    "method",
    ["hockey_stick", "delta", "epsilon", "tradeoff", "inverse_tradeoff", "renyi"],
)
@pytest.mark.parametrize("suffix", ["", "_bounds"])
def test_trap_9_no_curve_is_read_at_nan(method, suffix):
    L = rz.gaussian(mu=1.0)
    for argument in (NAN, np.array([0.5, NAN])):
        with pytest.raises(rz.ArgumentError, match="nan"):
            getattr(L, method + suffix)(argument)


def test_trap_9_nan_is_in_no_interval():
    assert NAN not in rz.Interval(0.0, 1.0)
    assert NAN not in rz.Interval(-math.inf, math.inf)


def test_trap_9_nothing_is_below_nan():
    for other in (NAN, np.float64(NAN), None, "gaussian"):
        with pytest.raises(TypeError):
            rz.identity() <= other  # noqa: B015
        with pytest.raises(TypeError):
            rz.identity() >= other  # noqa: B015
        with pytest.raises(rz.ArgumentTypeError):
            rz.compare(rz.identity(), other)
        with pytest.raises(rz.ArgumentTypeError):
            rz.supremum([rz.identity(), other])
