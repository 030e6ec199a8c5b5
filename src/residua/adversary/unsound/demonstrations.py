"""Rules that are known not to keep what they promise, each with the queries that break it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from residua.adversary.attack import Attack, attack
from residua.adversary.finite import ACCURACY
from residua.adversary.freeness import triple_budget
from residua.adversary.natural.cost import NaturalRule
from residua.adversary.rule import PlanRule, Rule
from residua.adversary.unsound.any_order_renyi import AnyOrderRenyi, best_query, fitted_query
from residua.adversary.unsound.replay_rule import ReplayRule
from residua.adversary.unsound.unions import RevivedUnion, SeveralBudgets, SharedDelta
from residua.filters.additive.basic import PureFilter
from residua.filters.additive.gdp import GdpFilter
from residua.filters.amounts import reported
from residua.filters.costs import renyi_cost
from residua.filters.potential.plan import PlanFilter
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.filters.union.union import UnionFilter
from residua.pld.constructors import (
    approximate_dp,
    gaussian,
    pure_dp,
)
from residua.pld.pld import Pld

APPROXIMATE_BUDGET = approximate_dp(1.395, 0.509)
STEADY, GAMBLE = approximate_dp(1.404, 0.0208), approximate_dp(0.0847, 0.478)
"""Queries of which two steady ones fit the budget, or one of each, but not a choice."""
GAUSSIAN_QUERIES = (pure_dp(0.5), pure_dp(0.78), gaussian(mu=0.8599))
"""The first and then either of the others fit `G_1`, but not a choice."""
SMALL, LARGE = approximate_dp(0.84, 0.028), approximate_dp(0.33, 0.155)
"""The same for a Gaussian budget with a delta."""


@dataclass(frozen=True)
class Unsound:
    """A rule that does not keep what it promises."""

    name: str
    make: Callable[[], tuple[Rule, Pld]]
    rounds: int
    accuracy: float = ACCURACY

    def attack(self) -> Attack:
        """Attack it."""
        rule, promise = self.make()
        return attack(rule, promise, self.rounds, accuracy=self.accuracy)


def _approximate_budget() -> tuple[Rule, Pld]:
    return NaturalRule((GAMBLE, STEADY), APPROXIMATE_BUDGET), APPROXIMATE_BUDGET


def _pure_queries() -> tuple[Rule, Pld]:
    one, more = pure_dp(1.0), pure_dp(1.2)
    promise = triple_budget((one, more, 2 * one))
    return NaturalRule((one, more), promise), promise


def _degenerate_queries() -> tuple[Rule, Pld]:
    one, missing = pure_dp(1.0), approximate_dp(0.0, 0.2)
    promise = triple_budget((one, one, missing))
    return NaturalRule((one, missing), promise), promise


def _gaussian_budget() -> tuple[Rule, Pld]:
    """A query first, then one of two that fit what is left of the Gaussian on either side."""
    promise = gaussian(mu=1.0)
    return NaturalRule(GAUSSIAN_QUERIES, promise), promise


def _approximate_gaussian_budget() -> tuple[Rule, Pld]:
    promise = gaussian(mu=1.0) + approximate_dp(0.0, 0.2)
    return NaturalRule((SMALL, LARGE), promise), promise


def any_order_attack(
    eps: float,
    delta: float,
    orders: tuple[float, float],
    first: Pld,
    size: float,
    conversion: str = "canonne",
) -> AnyOrderRenyi:
    """The any-order rule with the queries that break it.

    After a first query of losses `± size` what is left at each order is spent on a query fitted to
    it: one order where the loss was positive (the threshold came nearer), the other where it was
    negative. With the optimal conversion each order has a query for either case.
    """
    rule = AnyOrderRenyi(eps, delta, orders, (first,), conversion)
    fitted = []
    for order, budget, sign in zip(rule.orders, rule.budgets, (1.0, -1.0), strict=True):
        cost = renyi_cost(first, order)
        assert cost is not None
        left, nearer, farther = reported(budget - cost), math.exp(eps - size), math.exp(eps + size)
        if conversion == "optimal":
            fitted += [best_query(order, left, nearer), best_query(order, left, farther)]
        else:
            fitted.append(fitted_query(order, left, farther if sign > 0 else nearer))
    return AnyOrderRenyi(eps, delta, orders, (first, *fitted), conversion)


def _any_order() -> tuple[Rule, Pld]:
    eps, delta = 1.0, 1e-3
    return (
        any_order_attack(eps, delta, (9.0, 40.0), pure_dp(0.04), 0.04),
        approximate_dp(eps, delta),
    )


def _any_order_optimal() -> tuple[Rule, Pld]:
    eps, delta = 1.0, 1e-3
    rule = any_order_attack(eps, delta, (3.0, 20.0), pure_dp(0.05), 0.05, "optimal")
    return rule, approximate_dp(eps, delta)


def _several_budgets() -> tuple[Rule, Pld]:
    """Two plans that start alike, each within the budget by itself."""
    start = 12 * pure_dp(0.05)
    plans = (PlanRule((start, gaussian(mu=0.1714))), PlanRule((start, pure_dp(0.405))))
    return SeveralBudgets(plans), approximate_dp(1.0, 1e-6)


def _shared_delta() -> tuple[Rule, Pld]:
    """The same two plans as a union, whose deltas are not added up."""
    start, ends = 12 * pure_dp(0.05), (gaussian(mu=0.1714), pure_dp(0.405))
    plans = tuple(PlanFilter(1.0, 1e-6, (start, end)) for end in ends)
    rule = SharedDelta(UnionFilter(plans, eps=1.0), (start, *ends))
    return rule, rule.promise


def _revived_union() -> tuple[Rule, Pld]:
    """Each component is used up by a query that the other does not admit."""
    union = UnionFilter((PureFilter(1.0), GdpFilter(0.5)))
    rule = RevivedUnion(union, (pure_dp(1.0), gaussian(mu=0.5)))
    return rule, rule.promise


def _replay() -> tuple[Rule, Pld]:
    ledger = GdpResidueFilter(mu=1.0)
    return ReplayRule(ledger, (pure_dp(0.7), pure_dp(0.5))), ledger.guarantee


UNSOUND = (
    Unsound("natural, approximate queries and budget", _approximate_budget, 2),
    Unsound("natural, pure queries in 3 rounds", _pure_queries, 3),
    Unsound("natural, a degenerate query", _degenerate_queries, 2),
    Unsound("natural, Gaussian budget", _gaussian_budget, 2),
    Unsound("natural, approximate Gaussian budget", _approximate_gaussian_budget, 2),
    Unsound("Rényi at whichever order is best", _any_order, 2),
    Unsound("Rényi at whichever order is best, optimal conversion", _any_order_optimal, 2),
    Unsound("several budgets at once", _several_budgets, 2),
    Unsound("a union with one shared delta", _shared_delta, 2),
    Unsound("a union whose components come back", _revived_union, 2),
    Unsound("a ledger that cancels by replay", _replay, 4, 1e-2),
)
"""Rules that the suite must catch."""
