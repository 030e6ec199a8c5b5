"""The attack suite: every filter we ship against small catalogues, and rules that must fall.

A filter survives if its exact worst case is below its own guarantee, for every catalogue. A check
that cannot fail is worth nothing, so the suite also holds rules that are known not to keep what
they promise, and these must be caught with an adversary in hand.

Catalogues are finite and rational, so that survival is proven to the last digit, but for
`responses` (irrational masses) and `smooth` (continuous losses), which are rounded both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from residua import checks
from residua.adversary.attack import Attack, attack, attack_filter
from residua.adversary.finite import ACCURACY
from residua.adversary.freeness import triple_budget
from residua.adversary.natural.rule import NaturalRule
from residua.adversary.plan_rule import PlanRule
from residua.adversary.rule import Rule
from residua.adversary.unsound.any_order_renyi import AnyOrderRenyi, best_query, fitted_query
from residua.adversary.unsound.replay_rule import ReplayRule
from residua.adversary.unsound.revived_union import RevivedUnion
from residua.adversary.unsound.several_budgets import SeveralBudgets
from residua.adversary.unsound.shared_delta import SharedDelta
from residua.errors import ArgumentError
from residua.filters.additive.gdp import GdpFilter
from residua.filters.additive.pure import PureFilter
from residua.filters.amounts import reported
from residua.filters.base import Filter
from residua.filters.codec import from_dict
from residua.filters.divergence import renyi_cost
from residua.filters.kinds import KINDS
from residua.filters.potential.plan import PlanFilter
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.filters.union.union import UnionFilter
from residua.pld.constructors import (
    approximate_dp,
    from_exact,
    from_pair,
    gaussian,
    laplace,
    pure_dp,
)
from residua.pld.discretise.finite import written_out
from residua.pld.pld import Pld

ROUNDS = 3
_ACCURACY = 0.05
"""Of continuous losses, in `eps`, and of their compositions: rough, so that these stay small."""
_MENU = ({"kind": "pure_dp", "eps": 0.25}, {"kind": "pure_dp", "eps": 0.5})
_COMPONENTS = (
    {"kind": "pure", "eps": 1.1},
    {"kind": "basic", "eps": 0.6, "delta": 0.06},
    {"kind": "renyi", "alpha": 4.0, "rho": 0.3},
)

EXAMPLES: dict[str, dict[str, Any]] = {
    "pure": {"eps": 1.1},
    "basic": {"eps": 1.1, "delta": 0.06},
    "renyi": {"alpha": 4.0, "rho": 0.6},
    "renyi_curve": {"curve": [[2.0, 0.4], [8.0, 0.7]]},
    "zcdp": {"rho": 0.25},
    "approximate_zcdp": {"eps": 1.5, "delta": 0.06, "delta_conversion": 0.03},
    "gdp": {"mu": 1.0},
    "gdp_residue": {"mu": 1.0},
    "approximate_gdp_residue": {"mu": 1.0, "delta": 0.06},
    "target_residue": {"eps": 1.1, "delta": 0.06},
    "plan": {"eps": 1.1, "delta": 0.06, "plan": list(_MENU)},
    "menu": {"eps": 1.1, "delta": 0.06, "menu": list(_MENU)},
    "renyi_commit": {"eps": 1.5, "delta": 0.06},
    "auto": {"eps": 1.5, "delta": 0.06},
    "union": {"eps": 1.1, "filters": list(_COMPONENTS)},
    "natural": {"budget": {"kind": "approximate_dp", "eps": 1.0, "delta": 0.05}, "rounds": 3},
    "additive_profile": {"eps": 1.0, "delta": 0.05, "rounds": 3},
}
"""A filter of each kind, small enough for a few queries to use it up."""


def example(kind: str) -> Filter:
    """The filter of a kind that the suite attacks."""
    if kind not in EXAMPLES or kind not in KINDS:
        raise ArgumentError(
            f"kind must be one of {', '.join(sorted(KINDS))}, got {checks.shown(kind)}"
            f"{checks.near(kind, KINDS)}"
        )
    return from_dict({"kind": kind, **EXAMPLES[kind]})


@cache
def catalogues() -> dict[str, tuple[Pld, ...]]:
    """The queries that filters are attacked with."""
    half, quarter = _response(3, 5), _response(7, 9)
    asymmetric = from_pair([0.5, 0.5], [0.25, 0.75])
    leaning = from_pair([0.5, 0.5, 0.0], [0.5, 0.46875, 0.03125])
    return {
        "pure": (half, quarter),
        "approximate": (
            from_pair([1 / 64, 37 / 64, 26 / 64, 0.0], [0.0, 26 / 64, 37 / 64, 1 / 64]),
            approximate_dp(0.0, 1 / 32),
        ),
        "asymmetric": (asymmetric, asymmetric.reverse()),
        "minus infinity": (leaning, leaning.reverse()),
        "gaussian-like": (_binomial(4), quarter),
        "responses": (pure_dp(0.5), approximate_dp(0.25, 0.01)),
        "smooth": (gaussian(mu=0.5), laplace(scale=2.0)),
    }


def _response(low: int, high: int) -> Pld:
    total = float(low + high)
    return from_pair([low / total, high / total], [high / total, low / total])


def _binomial(n: int) -> Pld:
    """`n` small responses written out as one query: losses spread like those of a Gaussian."""
    return from_exact(written_out(n * _response(15, 17)).exact)


def survivors(kinds: tuple[str, ...] | None = None) -> Iterator[tuple[str, str, Attack]]:
    """Attack every filter with every catalogue."""
    for kind in kinds if kinds is not None else tuple(KINDS):
        filter = example(kind)
        for name, queries in catalogues().items():
            finite = all(query.is_finite for query in queries)
            found = attack_filter(
                filter,
                queries,
                ROUNDS if finite else 2,
                accuracy=_ACCURACY,
                coarse=None if finite else _ACCURACY,
            )
            yield kind, name, found


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
    promise = approximate_dp(1.395, 0.509)
    queries = (approximate_dp(0.0847, 0.478), approximate_dp(1.404, 0.0208))
    return NaturalRule(queries, promise), promise


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
    queries = (pure_dp(0.5), pure_dp(0.78), gaussian(mu=0.8599))
    return NaturalRule(queries, promise), promise


def _approximate_gaussian_budget() -> tuple[Rule, Pld]:
    promise = gaussian(mu=1.0) + approximate_dp(0.0, 0.2)
    queries = (approximate_dp(0.84, 0.028), approximate_dp(0.33, 0.155))
    return NaturalRule(queries, promise), promise


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
