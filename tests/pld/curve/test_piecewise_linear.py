"""Tradeoff and hockey-stick curves as input: round trips, conjugacy, domination."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oracles
import residua as rz
import strategies
from oracles import Finite
from residua import Order

levels = st.floats(0, 1)
positive = strategies.log_uniform(1e-6, 1e6)


def floats(points: list[tuple[object, object]]) -> tuple[list[float], list[float]]:
    return [float(a) for a, _ in points], [float(b) for _, b in points]


@given(strategies.dyadic(max_size=5))
def test_tradeoff_round_trip_is_exact(case):
    """Dyadic vertices are floats: nothing is lost either way."""
    alphas, betas = case.pld.tradeoff_points()
    again = rz.from_tradeoff(alphas, betas)
    assert rz.compare(again, case.pld).verdict == Order.EQUAL
    assert floats(case.law.finite.merge().tradeoff_points()) == (alphas.tolist(), betas.tolist())


@given(strategies.finite(max_size=5))
def test_hockey_stick_round_trip_dominates(case):
    """Vertices are rounded, so the curve is given up to rounding; the result stays next to it."""
    xs, values = case.pld.hockey_stick_points()
    assume(len(np.unique(xs)) == len(xs) > 0 and xs[0] > 1e-250 and xs[-1] < 1e250)
    assume(values[0] < 1 or len(xs) == 1)  # else rounding has made it constant
    again = rz.from_hockey_stick(xs, values)
    for x in np.unique(np.clip(xs, 1e-6, 1e6)):
        truth = case.law.finite.hockey_stick(x)
        h = again.hockey_stick_bounds(x)
        assert oracles.exact(h.hi) >= truth - oracles.exact(1e-15)
        assert oracles.exact(h.lo) <= truth + oracles.exact(1e-9)


@given(st.lists(st.integers(0, 64), min_size=1, max_size=6), st.integers(1, 64))
def test_from_hockey_stick_is_above_the_points(drops, width):
    """A convex curve from sorted slopes; the PLD's curve passes through or just above it."""
    slopes = sorted((d / 64 / 4 for d in drops), reverse=True)
    xs = [(i + 1) * width / 16 for i in range(len(slopes))]
    values, height = [], 1.0
    for slope in slopes:
        height = height - slope * width / 16
        values.append(height)
    assume(values[-1] >= 0 and all(v >= 1 - x for x, v in zip(xs, values, strict=True)))
    L = rz.from_hockey_stick(xs, values)
    law = Finite.from_hockey_stick(xs, values)
    for x in (*xs, 0.03, 0.7, 1.0, 5.0):
        h = L.hockey_stick_bounds(x)
        truth = law.hockey_stick(x)
        assert oracles.exact(h.hi) >= truth
        assert oracles.exact(h.lo) <= truth + oracles.exact(1e-12)


@given(strategies.dyadic(max_size=5), positive)
def test_hockey_stick_from_tradeoff(case, x):
    """`h(x) = 1 + (tau^-1)*(-x)`: the largest `1 - alpha - x tau(alpha)`."""
    alphas, betas = floats(case.law.finite.tradeoff_points())
    value = oracles.exact(rz.hockey_stick_from_tradeoff(alphas, betas, x))
    truth = max(
        1 - oracles.exact(a) - oracles.exact(x) * oracles.exact(b)
        for a, b in zip(alphas, betas, strict=True)
    )
    assert truth == case.law.finite.hockey_stick(x)
    assert truth <= value <= truth + oracles.exact((1 + x) * 1e-13)


@given(strategies.dyadic(max_size=5), levels)
def test_tradeoff_from_hockey_stick(case, alpha):
    """`tau(alpha)` is the largest `(1 - alpha - h(x)) / x`, from below."""
    law = case.law.finite
    kinks = law.kinks
    assume(kinks)
    xs, values = [float(x) for x in kinks], [float(law.hockey_stick(x)) for x in kinks]
    assume(max(xs) < 1e5 and min(xs) > 1e-5)
    value = oracles.exact(rz.tradeoff_from_hockey_stick(xs, values, alpha))
    assert abs(value - law.tradeoff(alpha)) <= oracles.exact(1e-9)


def test_arrays_in_arrays_out():
    curve = ([0.0, 0.25, 1.0], [1.0, 0.5, 0.0])
    xs = np.array([0.5, 1.0, 2.0])
    assert rz.hockey_stick_from_tradeoff(*curve, xs).shape == (3,)
    assert rz.tradeoff_from_hockey_stick([1.0], [0.25], np.array([[0.5]])).shape == (1, 1)
    assert type(rz.hockey_stick_from_tradeoff(*curve, 1.0)) is float


@pytest.mark.parametrize("n", [2, 3])
def test_composed_tradeoff_of_many(n):
    """Composing curve by curve is the n-fold PLD."""
    law = Finite.of([4, 3, 1, 0], [2, 3, 0, 3])
    curve = floats(law.tradeoff_points())
    together = curve
    for _ in range(n - 1):
        together = rz.compose_tradeoff(together, curve)
    expected = floats(law.power(n).tradeoff_points())
    assert (together[0].tolist(), together[1].tolist()) == expected  # type: ignore[attr-defined]


@given(strategies.dyadic(max_size=4), strategies.dyadic(max_size=4))
def test_composed_tradeoff_is_that_of_the_composed_pld(first, second):
    curves = [floats(case.law.finite.tradeoff_points()) for case in (first, second)]
    alphas, betas = rz.compose_tradeoff(*curves)
    together = first.law.finite + second.law.finite
    for alpha, beta in zip(alphas, betas, strict=True):
        assert abs(together.tradeoff(alpha) - oracles.exact(beta)) <= oracles.exact(1e-10)
