"""The natural filter's computed guarantee: bars, monotone, sound on what can be worked out."""

from __future__ import annotations

import itertools

import pytest

import residuum as rz
from residuum.adversary.natural_guarantee import (
    Guarantee,
    Plan,
    evaluate,
    natural_guarantee,
)
from residuum.errors import ArgumentError, ArgumentTypeError


@pytest.fixture(scope="module")
def ladder() -> dict[int, Guarantee]:
    return {k: natural_guarantee(1.0, 1e-6, k) for k in (1, 2, 4, 10, 30, 100)}


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
    ],
)
def test_bad_input_is_named(arguments, error):
    with pytest.raises(error, match=r"eps|delta|rounds|target_delta"):
        natural_guarantee(*arguments)
