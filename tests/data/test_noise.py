"""Noise: its distribution, its half-widths, and what is charged for it."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

import residua as rz
from data.test_soundness import table
from residua.data import plans, queries
from residua.data.noise import (
    GAUSSIAN,
    GUMBEL,
    LAPLACE,
    LARGEST,
    Noise,
    descriptions,
    for_accuracy,
    for_eps,
    of_scale,
    threshold,
)
from residua.errors import ArgumentError
from residua.mechanisms import Composed, DiscreteLaplace, Laplace, PureDp

SCALES = (0.3, 1.0, 7.5, 300.0)


def weight(kind: str, scale: float, x: int) -> float:
    return math.exp(-abs(x) / scale if kind == LAPLACE else -x * x / (2 * scale * scale))


def tail(kind: str, scale: float, width: int) -> float:
    """The probability of more than `width`, by summing weights."""
    reach = int(60 * scale) + 60
    weights = {x: weight(kind, scale, x) for x in range(-reach, reach + 1)}
    return sum(w for x, w in weights.items() if abs(x) > width) / sum(weights.values())


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("level", [0.95, 0.975, 0.95 + 0.05 * 2 / 3])
def test_half_widths_are_the_least_that_hold(scale: float, level: float) -> None:
    width = Noise(LAPLACE, scale).half_width(level)
    assert tail(LAPLACE, scale, width) <= (1 - level) * (1 + 1e-9)
    assert width == 0 or tail(LAPLACE, scale, width - 1) > 1 - level


@pytest.mark.parametrize("scale", SCALES)
def test_half_widths_of_gaussian_noise_hold(scale: float) -> None:
    for level in (0.95, 0.98):
        width = Noise(GAUSSIAN, scale).half_width(level)
        assert tail(GAUSSIAN, scale, width) <= 1 - level
        assert width <= 3 * scale + 1


@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN])
def test_noise_has_the_distribution_that_is_described(kind: str) -> None:
    scale, count = 2.5, 20_000
    drawn = Counter(Noise(kind, scale).draw([0] * count))
    total = sum(weight(kind, scale, x) for x in range(-200, 201))
    for x in range(-6, 7):
        p = weight(kind, scale, x) / total
        assert abs(drawn[x] / count - p) < 5 * math.sqrt(p * (1 - p) / count), x


def test_totals_of_any_size_get_noise_without_overflow() -> None:
    for total in (LARGEST - 3, LARGEST + 3, 10**40, -(10**40)):
        (found,) = Noise(LAPLACE, 5.0).draw([total])
        assert abs(abs(found) - LARGEST) < 1000


def test_eps_is_shared_and_never_exceeded() -> None:
    plan = plans.plan(queries.parse("SELECT COUNT(*), AVG(v) FROM t GROUP BY g", table(2, 3)))
    noise = for_eps(plan, 0.7)
    spent = [
        plan.groups * Fraction(m.sensitivity) / Fraction(n.scale)
        for m, n in zip(plan.measures, noise, strict=True)
    ]
    assert 0.699999 < sum(spent) <= Fraction("0.7")


@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN])
def test_accuracy_is_what_was_asked_for(kind: str) -> None:
    plan = plans.plan(queries.parse("SELECT SUM(v), COUNT(*) FROM t", table(2, 3)))
    for wanted in (1, 4.2, 25, 1000):
        for measure, noise in zip(plan.measures, for_accuracy(plan, wanted, kind), strict=True):
            assert noise.half_width() * measure.step <= wanted
            more = Noise(kind, noise.scale * 1.05 + 0.6).half_width() * measure.step
            assert more > wanted - float(measure.step)
    scaled = of_scale(plan, 3.0, kind)
    assert [each.scale for each in scaled] == [30.0, 3.0]


def test_accuracy_must_be_reachable_and_known_in_advance() -> None:
    total = plans.plan(queries.parse("SELECT COUNT(*) FROM t", table(1, 1)))
    with pytest.raises(ArgumentError, match="accuracy must be at least one step"):
        for_accuracy(total, 0.5, LAPLACE)
    average = plans.plan(queries.parse("SELECT AVG(v) FROM t", table(1, 1)))
    with pytest.raises(ArgumentError, match="accuracy must not be given with AVG"):
        for_accuracy(average, 5, LAPLACE)


def test_every_description_dominates_the_exact_one() -> None:
    """The composition of discrete mechanisms comes first; the others lose at least as much."""
    for sql in ("SELECT COUNT(*) FROM t GROUP BY g", "SELECT COUNT(*), SUM(v) FROM t GROUP BY g"):
        plan = plans.plan(queries.parse(sql, table(2, 2)))
        exact, *others = descriptions(plan, of_scale(plan, 30.0, LAPLACE))
        assert [type(each).__name__ for each in others][-1] == "PureDp"
        for other in others:
            for eps in (0.0, 0.1, 0.5, 1.0):
                below, above = (
                    exact.pld(side="below").delta_bounds(eps),
                    other.pld().delta_bounds(eps),
                )
                assert below.lo <= above.hi + 1e-15, (sql, other, eps)
        (total,) = (each for each in others if isinstance(each, PureDp))
        assert exact.pld(side="below").delta_bounds(total.eps).lo == 0.0


@pytest.mark.parametrize("sensitivity", [1, 2, 7, 200])
@pytest.mark.parametrize("scale", [0.4, 3.0, 50.0])
def test_continuous_noise_dominates_with_a_slightly_larger_sensitivity(
    sensitivity: int, scale: float
) -> None:
    exact = DiscreteLaplace(scale, sensitivity).pld(side="below")
    continuous = Laplace(scale, sensitivity + 1 / (4 * scale)).pld()
    for place in range(1, 12):
        eps = sensitivity / scale * place / 11
        assert exact.delta_bounds(eps).lo <= continuous.delta_bounds(eps).hi


@pytest.mark.parametrize("noise", [DiscreteLaplace(3.0, 1), rz.DiscreteGaussian(sigma=3.0)])
def test_a_larger_shift_loses_more(noise: rz.mechanisms.Mechanism) -> None:
    """The lemma that a composition at the largest shift dominates any smaller ones."""
    shifted = [dataclasses.replace(noise, sensitivity=k) for k in range(1, 6)]
    for smaller, larger in pairwise(shifted):
        for eps in (0.0, 0.3, 1.0, 1.5):
            assert smaller.pld(side="below").delta_bounds(eps).lo <= larger.pld().delta(eps)
    mixed = Composed((noise, shifted[2])).pld(side="below")
    assert mixed.delta_bounds(0.5).lo <= (2 * shifted[2].pld()).delta(0.5)


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0, 1e6])
@pytest.mark.parametrize(("groups", "delta"), [(1, 1e-3), (3, 1e-9), (2, 1e-30)])
def test_a_group_of_one_unit_reaches_the_threshold_with_less_than_delta(
    scale: float, groups: int, delta: float
) -> None:
    least = threshold(Noise(LAPLACE, scale), groups, delta)
    with mpmath.workdps(60):
        r = mpmath.exp(-1 / mpmath.mpf(scale))
        reached = r ** (least - 1) / (1 + r)
        assert groups * reached <= delta
        assert groups * reached / r**4 > delta or least == 2


def test_choices_have_the_distribution_of_the_exponential_mechanism() -> None:
    scale, count, scores = 3.0, 20_000, [0, -2, -7, 1]
    drawn = Counter(Noise(GUMBEL, scale).choose([scores] * count))
    weights = [math.exp(score / scale) for score in scores]
    for place, weight_ in enumerate(weights):
        p = weight_ / sum(weights)
        assert abs(drawn[place] / count - p) < 5 * math.sqrt(p * (1 - p) / count)


def test_a_choice_costs_what_is_described() -> None:
    """The largest loss of the exponential mechanism on neighbouring scores."""
    plan = plans.plan(queries.parse("SELECT MEDIAN(v) FROM t", table(1, 2)))
    (measure,), (noise,) = plan.measures, for_eps(plan, 0.8)
    assert noise.kind == GUMBEL
    exact, *_, total = descriptions(plan, [noise])
    assert isinstance(total, PureDp) and 0.799999 < total.eps <= 0.8
    few = dataclasses.replace(measure, candidates=measure.candidates[::32])
    counts = [(n, below, below) for n in range(4) for below in range(n + 1)]
    worst = 0.0
    for n, below, _ in counts:
        for more in range(3):
            for higher in range(3 - more):
                pair = []
                for size, under in ((n, below), (n + more + higher, below + more)):
                    totals = [size] + [
                        under if place else 0 for place in range(len(few.candidates)) for _ in "bm"
                    ]
                    scores = few.scores(totals)
                    weights = [math.exp(each / noise.scale) for each in scores]
                    pair.append([each / sum(weights) for each in weights])
                ratios = [math.log(p / q) for p, q in zip(*pair, strict=True)]
                worst = max(worst, max(ratios) - min(ratios), *map(abs, ratios))
    assert worst <= 0.8 + 1e-12
    assert exact.pld().epsilon(0.0) <= 0.8
