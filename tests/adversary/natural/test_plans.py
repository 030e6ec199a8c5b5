"""Plans of sizes and draws: what the additive profile filter guarantees, by buckets."""

from __future__ import annotations

import residua as rz
from residua.adversary.buckets import Plan, best_plan, evaluate


def test_a_hundred_rounds() -> None:
    assert best_plan(1.0, 1e-6, 100, 1e-5)[1] <= 15.0


def test_plans_of_more_rounds_serve_fewer() -> None:
    """One plan, fewer rounds, no larger a bound."""
    plan, reached = best_plan(1.0, 1e-6, 32, 1e-5)
    bounds = [evaluate(plan, 1.0, 1e-6, k, 1e-5) for k in (18, 20, 24, 31, 32)]
    assert bounds == sorted(bounds) and bounds[-1] == reached


def test_a_plan_composes_the_copies_that_may_be_drawn() -> None:
    plan = Plan((0.1, 0.5, 2.0), (6, 2))
    assert plan.copies(10) == (4, 4, 2)
    target = 1e-2
    reached = evaluate(plan, 1.0, 1e-6, 10, target)
    copies = 4 * rz.pure_dp(0.1) + 4 * rz.pure_dp(0.5) + 2 * rz.pure_dp(2.0)
    assert reached >= copies.epsilon_bounds(target).lo


def test_plans_that_fail_too_often_reach_nothing() -> None:
    assert evaluate(Plan((0.1, 0.5), (0,)), 1.0, 1e-6, 10, 1e-5) == float("inf")
