"""Rules that do not keep what they promise, each with the queries that break it.

**Several budgets kept open at once.** Each of several rules keeps its own promise. Admitting what
*any* of them still admits lets the analyst look at answers first and then choose the budget: after
`L` the value is `L ⊕ sup_j V_j`, not `sup_j (L ⊕ V_j)`, and `⊕` does not distribute over `sup`.

**One shared delta.** The rule is that of a union of filters: a query is admitted if a live
component admits it, and the components that do not are stopped for good. What is wrong is the
promise: the analyst looks at answers before choosing which component goes on, so the deltas of all
components add up; the largest of them is not enough.

**Revived components.** A component that does not admit a query stays as it was, and may admit a
later one. The queries that it did not admit are paid for by the others alone, so no component knows
the whole loss, and the sum of their deltas bounds nothing.

**A ledger that cancels by replay.** Queries may be reserved, run later, or cancelled; a cancel
replays the history without the reserved query. The filter under it is sound, but the analyst can
look at later answers before deciding whether the reserved query runs, that is, between two budgets.
(The sound form folds the filter over queries in the order they *run*.) Moves are what is released:
reserving and cancelling release nothing and count as a round. At any time what is left may be asked
for at once, as one query that costs all of it; the game ends there.

**Rényi accounting at whichever order is best.** For each order `α` there is an amount `rho_α` that
keeps `(eps, delta)`: by the conversion of Canonne, Kamath and Steinke (2020), or by the optimal one
(below), which grants more. One order fixed in advance is a sound filter. "Admit while *some* order
still has budget" is not: after an answer the analyst goes on with a query fitted to one order or to
another, whichever suits what was seen. Costs are proven upper bounds in the worse direction, so the
rule here admits no more than any system that does this.

`fitted_query` is what an adversary plays: two losses only, the upper one where Markov's inequality
for `e^{(α-1)Z}` is tight at the threshold `x`, `z = ln(x α/(α-1))`, and as much mass there as the
divergence allows. `best_query` looks for the best upper loss instead, which the second loss moves.

**The optimal conversion** of one order. By data processing only two outcomes matter: `D_α(P‖Q) <=
rho` and `h(e^eps) >= delta` are possible together exactly if they are for a pair of coins `(p, q)`
with `p - e^eps q = delta`. So the most that an order may spend is

    rho* = min_q ln F(q) / (α-1),    F(q) = p^α q^{1-α} + (1-p)^α (1-q)^{1-α},  p = delta + e^eps q,

and anything below it implies `(eps, delta)`-DP. It is more than the conversion of Canonne, Kamath
and Steinke allows, which bounds the first term alone. `F` is convex (a perspective, along a line),
so with `F'(a) <= 0 <= F'(b)`, or `b` where `p = 1`, the minimum is at least
`F(a) + F'(a) (b - a)`. Decimals of fifty digits; the 1e-30th part of each term is taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from residua import checks
from residua.adversary.attack import Attack, attack
from residua.adversary.finite import ACCURACY
from residua.adversary.freeness import triple_budget
from residua.adversary.rule import (
    CatalogueRule,
    NaturalRule,
    PlanRule,
    Rule,
    as_rule,
)
from residua.bounds import Floats
from residua.errors import ArgumentError
from residua.filters.additive.basic import PureFilter
from residua.filters.additive.gdp import GdpFilter
from residua.filters.additive.renyi import order
from residua.filters.amounts import State, reported, written
from residua.filters.base import Filter
from residua.filters.costs import renyi_cost
from residua.filters.potential.plan import PlanFilter
from residua.filters.query import Query
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.filters.target import renyi_budget
from residua.filters.union.union import UnionFilter
from residua.pld.constructors import (
    approximate_dp,
    from_pair,
    gaussian,
    identity,
    pure_dp,
)
from residua.pld.pld import Pld

SLACK = Decimal("1e-30")
"""The share of each term that is taken off for the roundings of fifty digits."""


def optimal_renyi_budget(alpha: Fraction, eps: Fraction, delta: Fraction) -> Fraction:
    """`rho*` from below: `D_α <= rho` implies `(eps, delta)`-DP for every `rho` up to it."""
    with localcontext() as context:
        context.prec = 50
        a, e, d = (Decimal(v.numerator) / Decimal(v.denominator) for v in (alpha, eps, delta))
        slope = e.exp()
        # Right of `high` F rises, or p would exceed 1; left of `low` it falls.
        low, high = d / slope, (1 - d) / slope
        while _curve(a, slope, d, low)[1] > 0:
            low /= 2
        while high - low > Decimal("1e-12") * high:
            middle = (low * high).sqrt() if high > 2 * low else (low + high) / 2
            falls = _curve(a, slope, d, middle)[1] <= 0
            low, high = (middle, high) if falls else (low, middle)
        value, falling = _curve(a, slope, d, low)
        least = value * (1 - SLACK) + falling * (high - low) * (1 + SLACK)
        rho = least.ln() / (a - 1)
        rho -= (abs(rho) + 1 / (a - 1)) * SLACK
    if rho <= 0:
        return Fraction(0)
    return Fraction(Context(prec=20, rounding=ROUND_FLOOR).create_decimal(rho))


def _curve(a: Decimal, slope: Decimal, delta: Decimal, q: Decimal) -> tuple[Decimal, Decimal]:
    """`F(q)` and `F'(q)`."""
    p = delta + slope * q
    up, down = p / q, (1 - p) / (1 - q)
    value = q * up**a + (1 - q) * down**a
    by_p = a * (up ** (a - 1) - down ** (a - 1))
    by_q = (1 - a) * (up**a - down**a)
    return value, by_p * slope + by_q


CONVERSIONS: dict[str, Callable[[Fraction, Fraction, Fraction], Fraction]] = {
    "canonne": renyi_budget,
    "optimal": optimal_renyi_budget,
}


@dataclass(frozen=True)
class AnyOrderRenyi(CatalogueRule):
    """Admits while at least one order has budget left; states are what was spent at each."""

    eps: float
    delta: float
    orders: Sequence[float]
    catalogue: Sequence[Query]
    conversion: str = "canonne"

    def __post_init__(self) -> None:
        super().__post_init__()
        orders = tuple(order(f"orders[{i}]", a) for i, a in enumerate(self.orders))
        if not orders:
            raise ArgumentError("orders must contain at least one order, got []")
        delta = checks.inner_probability("delta", self.delta)
        checks.one_of("conversion", self.conversion, tuple(CONVERSIONS))
        checks.set_fields(self, eps=checks.positive("eps", self.eps), delta=delta, orders=orders)

    @cached_property
    def budgets(self) -> tuple[Fraction, ...]:
        """What each order may spend, rounded down."""
        eps, delta = written(self.eps), written(self.delta)
        budget = CONVERSIONS[self.conversion]
        return tuple(budget(written(a), eps, delta) for a in self.orders)

    @property
    def start(self) -> tuple[Fraction | None, ...]:
        return (Fraction(0),) * len(self.orders)

    def _allowed(self, state: tuple[Fraction | None, ...]) -> Iterable[tuple[Pld, Hashable]]:
        for loss in self.losses:
            costs = [renyi_cost(loss, a) for a in self.orders]
            after = tuple(
                None if spent is None or cost is None else spent + cost
                for spent, cost in zip(state, costs, strict=True)
            )
            within = (s is not None and s <= b for s, b in zip(after, self.budgets, strict=True))
            if any(within):
                yield loss, after


def fitted_query(alpha: float, rho: float, x: float) -> Pld:
    """A query of two losses with `D_α <= rho` in both directions, proven, that is high at `x`."""
    alpha, rho = order("alpha", alpha), checks.positive("rho", rho)
    x = checks.positive("x", x)
    ratio = x * alpha / (alpha - 1.0)
    checks.require(ratio > 1.0, "x", f"above {(alpha - 1.0) / alpha:.6g}", x)
    return _heaviest(alpha, rho, x, ratio)


def best_query(alpha: float, rho: float, x: float) -> Pld:
    """The query of two losses with `D_α <= rho` in both directions, proven, highest at `x`.

    As searched: the upper loss in floats, and then as much mass as is proven to fit.
    """
    alpha, rho = order("alpha", alpha), checks.positive("rho", rho)
    x = checks.positive("x", x)
    low, high = math.log(1e-12), math.log(0.5)
    for _ in range(6):
        t = np.linspace(low, high, 201)
        q = np.exp(t)
        p = _most_mass(alpha, rho, q)
        k = int(np.argmax(p - x * q))
        low, high = t[max(k - 1, 0)], t[min(k + 1, t.size - 1)]
    return _heaviest(alpha, rho, x, float(p[k] / q[k]))


def _most_mass(alpha: float, rho: float, q: Floats) -> Floats:
    """The largest `p` for each `q` with a divergence of `rho` in both directions, in floats."""
    low, high = np.log(q), np.full(q.shape, math.log1p(-1e-9))
    for _ in range(60):
        middle = 0.5 * (low + high)
        p = np.exp(middle)
        fits = np.maximum(_divergence(alpha, p, q), _divergence(alpha, q, p)) <= rho
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.exp(low)


def _divergence(alpha: float, p: Floats, q: Floats) -> Floats:
    logs: Floats = np.logaddexp(
        alpha * np.log(p) + (1.0 - alpha) * np.log(q),
        alpha * np.log1p(-p) + (1.0 - alpha) * np.log1p(-q),
    )
    return logs / (alpha - 1.0)


def _heaviest(alpha: float, rho: float, x: float, ratio: float) -> Pld:
    """As much mass at the loss `ln ratio` as is proven to fit."""
    low, high = 0.0, 1.0 - 2.0**-30
    for _ in range(60):
        middle = math.sqrt(low * high) if low > 0.0 else high * 2.0**-40
        cost = renyi_cost(_two_losses(middle, ratio), alpha)
        good = cost is not None and cost <= Fraction(rho)
        low, high = (middle, high) if good else (low, middle)
        if low == 0.0 and high < 1e-300:
            raise ArgumentError(f"rho must allow some query at x = {x:g}, got {rho!r}")
    return _two_losses(low, ratio)


def _two_losses(p: float, ratio: float) -> Pld:
    q = p / ratio
    return from_pair([1.0 - p, p], [1.0 - q, q])


_CLOSED = "closed"


@dataclass(frozen=True)
class SeveralBudgets(Rule):
    """Admits what any of the rules admits; one that does not admit a query may be closed."""

    rules: Sequence[Rule]
    close_others: bool = True
    """Whether a rule that does not admit a query is closed; otherwise it keeps its state."""

    def __post_init__(self) -> None:
        checks.set_fields(self, rules=tuple(self.rules))
        if not self.rules:
            raise ArgumentError("rules must contain at least one rule, got []")
        for i, rule in enumerate(self.rules):
            checks.instance(f"rules[{i}]", rule, Rule, "a Rule")

    @property
    def start(self) -> tuple[Hashable, ...]:
        return tuple(rule.start for rule in self.rules)

    def _allowed(self, state: tuple[Hashable, ...]) -> Iterable[tuple[Pld, Hashable]]:
        others = (_CLOSED,) * len(state) if self.close_others else state
        found: dict[Pld, list[Hashable]] = {}
        for i, (rule, own) in enumerate(zip(self.rules, state, strict=True)):
            for loss, after in rule.moves(own)[1:] if own != _CLOSED else ():
                found.setdefault(loss, list(others))[i] = after
        for loss, afters in found.items():
            yield loss, tuple(afters)


Event = tuple[int, bool]
"""The number of a reserved query, and whether it has run."""


_ENDED = "ended"


@dataclass(frozen=True, eq=False)
class CancelByReplay(CatalogueRule):
    """Reserves, runs and cancels queries; a state is the list of events that are not cancelled."""

    filter: Filter
    catalogue: Sequence[Query]

    def __post_init__(self) -> None:
        checks.instance("filter", self.filter, Filter, "a Filter")
        super().__post_init__()

    @property
    def start(self) -> tuple[Event, ...]:
        return ()

    def _allowed(self, state: tuple[Event, ...] | str) -> Iterable[tuple[Pld, Hashable]]:
        if isinstance(state, str):
            return
        left = self._fold(tuple(j for j, _ in state))
        assert left is not None, "a part of what was admitted is admitted"
        rest = self.filter.remaining_in(left)
        if isinstance(rest, Pld) and not rest.is_identity:
            yield rest, _ENDED
        for i, loss in enumerate(self.losses):
            if self._fold((*(j for j, _ in state), i)) is not None:
                yield identity(), (*state, (i, False))
                yield loss, (*state, (i, True))
        for place, (i, ran) in enumerate(state):
            if not ran:
                yield identity(), (*state[:place], *state[place + 1 :])
                yield self.losses[i], (*state[:place], (i, True), *state[place + 1 :])

    @cached_property
    def _fold(self) -> Callable[[tuple[int, ...]], State | None]:
        """The filter's state after these queries in this order; None if it refuses one."""

        @cache
        def fold(queries: tuple[int, ...]) -> State | None:
            if not queries:
                return self.filter.initial()
            before = fold(queries[:-1])
            if before is None:
                return None
            decision = self.filter.decide(before, self.losses[queries[-1]])
            return decision.state if decision.admitted else None

        return fold


APPROXIMATE_BUDGET = approximate_dp(1.395, 0.509)
STEADY, GAMBLE = approximate_dp(1.404, 0.0208), approximate_dp(0.0847, 0.478)
"""Queries of which two steady ones fit the budget, or one of each, but not a choice."""
GAUSSIAN_QUERIES = (pure_dp(0.5), pure_dp(0.78), gaussian(mu=0.8599))
"""The first and then either of the others fit `G_1`, but not a choice."""
SMALL, LARGE = approximate_dp(0.84, 0.028), approximate_dp(0.33, 0.155)
"""The same for a Gaussian budget with a delta."""


@dataclass(frozen=True)
class UnsoundRule:
    """A case of the suite: how to make a rule and its promise, and how many rounds break it."""

    name: str
    make: Callable[[], tuple[Rule, Pld]]
    rounds: int
    accuracy: float = ACCURACY

    def attack(self) -> Attack:
        """Find the worst case of the rule against its promise."""
        rule, promise = self.make()
        return attack(rule, promise, self.rounds, accuracy=self.accuracy)


def _approximate_budget_case() -> tuple[Rule, Pld]:
    return NaturalRule((GAMBLE, STEADY), APPROXIMATE_BUDGET), APPROXIMATE_BUDGET


def _pure_queries_case() -> tuple[Rule, Pld]:
    one, more = pure_dp(1.0), pure_dp(1.2)
    promise = triple_budget((one, more, 2 * one))
    return NaturalRule((one, more), promise), promise


def _degenerate_queries_case() -> tuple[Rule, Pld]:
    one, missing = pure_dp(1.0), approximate_dp(0.0, 0.2)
    promise = triple_budget((one, one, missing))
    return NaturalRule((one, missing), promise), promise


def _gaussian_budget_case() -> tuple[Rule, Pld]:
    """A query first, then one of two that fit what is left of the Gaussian on either side."""
    promise = gaussian(mu=1.0)
    return NaturalRule(GAUSSIAN_QUERIES, promise), promise


def _approximate_gaussian_budget_case() -> tuple[Rule, Pld]:
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
    nearer, farther = math.exp(eps - size), math.exp(eps + size)
    for alpha, budget, where in zip(rule.orders, rule.budgets, (farther, nearer), strict=True):
        cost = renyi_cost(first, alpha)
        assert cost is not None
        left = reported(budget - cost)
        if conversion == "optimal":
            fitted += [best_query(alpha, left, nearer), best_query(alpha, left, farther)]
        else:
            fitted.append(fitted_query(alpha, left, where))
    return AnyOrderRenyi(eps, delta, orders, (first, *fitted), conversion)


def _any_order_case() -> tuple[Rule, Pld]:
    eps, delta = 1.0, 1e-3
    rule = any_order_attack(eps, delta, (9.0, 40.0), pure_dp(0.04), 0.04)
    return rule, approximate_dp(eps, delta)


def _any_order_optimal_case() -> tuple[Rule, Pld]:
    eps, delta = 1.0, 1e-3
    rule = any_order_attack(eps, delta, (3.0, 20.0), pure_dp(0.05), 0.05, "optimal")
    return rule, approximate_dp(eps, delta)


def _several_budgets_case() -> tuple[Rule, Pld]:
    """Two plans that start alike, each within the budget by itself."""
    start = 12 * pure_dp(0.05)
    plans = (PlanRule((start, gaussian(mu=0.1714))), PlanRule((start, pure_dp(0.405))))
    return SeveralBudgets(plans), approximate_dp(1.0, 1e-6)


def _shared_delta_case() -> tuple[Rule, Pld]:
    """The same two plans as a union, whose deltas are not added up."""
    start, ends = 12 * pure_dp(0.05), (gaussian(mu=0.1714), pure_dp(0.405))
    plans = tuple(PlanFilter(1.0, 1e-6, (start, end)) for end in ends)
    union = UnionFilter(plans, eps=1.0)
    return as_rule(union, (start, *ends)), approximate_dp(1.0, max(union.deltas))


def _revived_union_case() -> tuple[Rule, Pld]:
    """Each component is used up by a query that the other does not admit."""
    union = UnionFilter((PureFilter(1.0), GdpFilter(0.5)))
    rules = [as_rule(each, (pure_dp(1.0), gaussian(mu=0.5))) for each in union.filters]
    return SeveralBudgets(rules, close_others=False), union.guarantee


def _replay_case() -> tuple[Rule, Pld]:
    ledger = GdpResidueFilter(mu=1.0)
    return CancelByReplay(ledger, (pure_dp(0.7), pure_dp(0.5))), ledger.guarantee


UNSOUND = (
    UnsoundRule("natural, approximate queries and budget", _approximate_budget_case, 2),
    UnsoundRule("natural, pure queries in 3 rounds", _pure_queries_case, 3),
    UnsoundRule("natural, a degenerate query", _degenerate_queries_case, 2),
    UnsoundRule("natural, Gaussian budget", _gaussian_budget_case, 2),
    UnsoundRule("natural, approximate Gaussian budget", _approximate_gaussian_budget_case, 2),
    UnsoundRule("Rényi at whichever order is best", _any_order_case, 2),
    UnsoundRule("Rényi at whichever order is best, optimal conversion", _any_order_optimal_case, 2),
    UnsoundRule("several budgets at once", _several_budgets_case, 2),
    UnsoundRule("a union with one shared delta", _shared_delta_case, 2),
    UnsoundRule("a union whose components come back", _revived_union_case, 2),
    UnsoundRule("a ledger that cancels by replay", _replay_case, 4, 1e-2),
)
"""The unsound rules that `residua attack` must catch."""
