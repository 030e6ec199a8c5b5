"""Rényi accounting at whichever order is best: an unsound rule, for demonstration.

For each order `α` there is an amount `rho_α` that keeps `(eps, delta)`: by the conversion of
Canonne, Kamath and Steinke (2020), or by the optimal one (below), which grants
more. One order fixed in advance is a sound filter. "Admit while *some* order still has
budget" is not: after an answer the analyst goes on with a query fitted to one order or to another,
whichever suits what was seen. Costs are proven upper bounds in the worse direction, so the rule
here admits no more than any system that does this.

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
from functools import cached_property

import numpy as np

from residua import checks
from residua.adversary.rule import CatalogueRule
from residua.bounds import Floats
from residua.errors import ArgumentError
from residua.filters.additive.renyi import order
from residua.filters.amounts import written
from residua.filters.costs import renyi_cost
from residua.filters.query import Query
from residua.filters.target import renyi_budget
from residua.pld.constructors import from_pair
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
        delta = checks.probability("delta", self.delta)
        checks.require(0.0 < delta < 1.0, "delta", "in (0, 1)", self.delta)
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
