"""The natural filter's computed guarantee: bars, monotone, sound on what can be worked out."""

from __future__ import annotations

import itertools
import math

import pytest

import residua as rz
from residua.adversary.natural_guarantee import (
    Guarantee,
    Plan,
    best_plan,
    evaluate,
    natural_guarantee,
    total,
)
from residua.errors import ArgumentError, ArgumentTypeError


@pytest.fixture(scope="module")
def ladder() -> dict[int, Guarantee]:
    ks = (1, 2, 4, 9, 10, 11, 16, 17, 24, 31, 32, 33, 37, 64, 65, 100)
    return {k: natural_guarantee(1.0, 1e-6, k) for k in ks}


def test_a_hundred_rounds(ladder):
    assert ladder[100].eps <= 15.0
    assert ladder[100].delta == 1e-5
    assert ladder[100].method == "buckets"


def test_no_worse_than_composing_the_budget(ladder):
    for k, found in ladder.items():
        assert found.eps <= (k * rz.approximate_dp(1.0, 1e-6)).epsilon(1e-5) + 1e-12


def test_monotone_in_rounds(ladder):
    values = [ladder[k].eps for k in sorted(ladder)]
    assert values == sorted(values)


def test_plans_of_more_rounds_serve_fewer():
    """What makes it monotone: one plan, fewer rounds, no larger a bound."""
    plan, reached = best_plan(1.0, 1e-6, 32, 1e-5)
    bounds = [evaluate(plan, 1.0, 1e-6, k, 1e-5) for k in (18, 20, 24, 31, 32)]
    assert bounds == sorted(bounds) and bounds[-1] == reached


@pytest.mark.parametrize("points", ["paper", "remark", [0.05, 0.3, 1.05, 2.0]])
def test_other_points_are_an_option(points):
    """Each is proven, and none does better than the best that were found (but for the search)."""
    chosen = natural_guarantee(1.0, 1e-6, 12, 1e-4, points)
    best = natural_guarantee(1.0, 1e-6, 12, 1e-4)
    assert best.eps <= chosen.eps * 1.01
    given = points if isinstance(points, str) else tuple(points)
    plan, reached = best_plan(1.0, 1e-6, 12, 1e-4, given)
    assert chosen.eps in (reached, (12 * rz.approximate_dp(1.0, 1e-6)).epsilon(1e-4))
    tops = {"paper": 3.0, "remark": 2.0}
    if isinstance(points, str):
        assert all(math.log2(tops[points] / e) % 1.0 == 0.0 for e in plan.points)
    else:
        assert set(plan.points) <= set(points)


def test_the_remarks_points_trade_delta_for_eps():
    """Its largest size is `2 eps`: losses beyond have up to `delta/eps` or so, to be paid."""
    paid = total(0.2, 0.1, 1e-6, 16)
    assert 1.5e-5 < paid < 3e-5
    assert best_plan(0.1, 1e-6, 16, 1e-5, "remark")[1] == math.inf
    assert natural_guarantee(0.1, 1e-6, 16, 1e-5, "remark").method == "composition"
    assert best_plan(0.1, 1e-6, 16, 1e-4, "remark")[1] < math.inf
    assert best_plan(0.1, 1e-6, 16, 1e-5, "paper")[1] < math.inf


def test_one_round_is_what_is_promised(ladder):
    assert ladder[1].eps <= 1.0
    assert natural_guarantee(1.0, 1e-6, 1, 1e-6).eps == pytest.approx(1.0, abs=1e-9)


def test_above_what_simple_adaptive_analysts_reach(ladder):
    """`R_1`-like first moves and then the worst of two: the value is far below the guarantee."""
    first = rz.pure_dp(0.2)
    either = (4 * rz.pure_dp(0.15)) | rz.pure_dp(0.55)
    reached = (first + either).delta(ladder[4].eps)
    assert reached <= ladder[4].delta


def test_a_plan_composes_the_copies_that_may_be_drawn():
    plan = Plan((0.1, 0.5, 2.0), (6, 2))
    assert plan.copies(10) == (4, 4, 2)
    target = 1e-2
    reached = evaluate(plan, 1.0, 1e-6, 10, target)
    copies = 4 * rz.pure_dp(0.1) + 4 * rz.pure_dp(0.5) + 2 * rz.pure_dp(2.0)
    assert reached >= copies.epsilon_bounds(target).lo


def test_plans_that_fail_too_often_reach_nothing():
    assert evaluate(Plan((0.1, 0.5), (0,)), 1.0, 1e-6, 10, 1e-5) == float("inf")


def test_a_larger_target_costs_less_eps():
    few = [natural_guarantee(1.0, 1e-6, 20, t).eps for t in (1e-6, 1e-5, 1e-3)]
    assert all(a >= b for a, b in itertools.pairwise(few))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0.0, 1e-6, 10), ArgumentError),
        ((float("nan"), 1e-6, 10), ArgumentError),
        ((1.0, 0.0, 10), ArgumentError),
        ((1.0, 1.0, 10), ArgumentError),
        ((1.0, 1e-6, 0), ArgumentError),
        ((1.0, 1e-6, -1), ArgumentError),
        ((1.0, 1e-6, 2.5), ArgumentTypeError),
        ((1.0, 1e-6, 10, 1e-7), ArgumentError),
        (("1", 1e-6, 10), ArgumentTypeError),
        ((1.0, 1e-6, 10, 1e-5, "thirds"), ArgumentError),
        ((1.0, 1e-6, 10, 1e-5, [1.0, 0.5]), ArgumentError),
        ((1.0, 1e-6, 10, 1e-5, []), ArgumentError),
        ((1.0, 1e-6, 10, 1e-5, [0.1, float("inf")]), ArgumentError),
    ],
)
def test_bad_input_is_named(arguments, error):
    with pytest.raises(error, match=r"eps|delta|rounds|target_delta|points"):
        natural_guarantee(*arguments)


@pytest.mark.parametrize(("eps", "delta"), [(50.0, 1e-6), (1.0, 5e-324), (1e-200, 1e-6)])
def test_extremes_are_answered_without_a_warning(eps: float, delta: float) -> None:
    """Warnings are errors here."""
    found = rz.natural_guarantee(eps, delta, 3)
    assert 0.0 <= found.eps <= 3 * eps * (1 + 1e-9) and found.delta >= delta


def test_an_eps_too_small_is_named() -> None:
    with pytest.raises(rz.ArgumentError, match="eps must be between 1e-250 and 100, got 1e-300"):
        rz.natural_guarantee(1e-300, 1e-6, 3)
