"""An odometer: a bound on the loss so far that holds at every moment at once. It refuses nothing.

Fix a Rényi order `α > 1` and a `delta` before the first answer. With `Z_t` the privacy loss of the
first `t` answers and `ρ_t` the sum of their Rényi divergences of order `α`, each query chosen as
one likes from the answers before it,

    E[e^{(α-1)(Z_t - ρ_t)} | answers so far] <= e^{(α-1)(Z_{t-1} - ρ_{t-1})},

so by Ville's inequality, with probability at least `1 - delta` over the answers,

    Z_t <= ρ_t + ln(1/delta) / (α-1)      for all t at once.

That is the reading (Rogers, Roth, Ullman and Vadhan 2016 for the notion; Whitehouse, Ramdas, Rogers
and Wu 2023 for bounds of this kind), or the sum of the largest absolute losses where that is less:
`Z_t` never exceeds it. It holds at whatever moment one looks or stops, and in both directions,
since divergences are taken in the worse one. Fixing `α` beforehand is what the inequality needs:
it does not cover taking, at each moment, the order that reads least. Nor does a reading enforce
anything: a budget is kept by a filter, which refuses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction

from residua import checks
from residua.errors import ArgumentError
from residua.filters import amounts
from residua.filters.additive.renyi import order
from residua.filters.costs import largest_loss, missing_mass, renyi_cost, split, stated_renyi
from residua.filters.query import Query, as_query, describe, relation_of
from residua.mechanisms.mechanism import Mechanism

_SLACK = Decimal("1e-30")
"""Covers the roundings of decimals of forty digits."""


@dataclass(frozen=True)
class Reading:
    """With probability at least `1 - delta`, no more than `eps` has been lost."""

    eps: float
    delta: float
    queries: int


@dataclass(frozen=True)
class Odometer:
    """Reports the privacy loss so far; the order `alpha` and `delta` are fixed in advance.

    A value: `after(query)` is the odometer that has seen one more query.
    """

    alpha: float
    delta: float
    queries: int = 0
    spent: Fraction = Fraction(0)
    """The sum of divergences, from above."""
    largest: Fraction | None = Fraction(0)
    """The sum of the largest absolute losses, from above; None where one is unbounded."""
    relation: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", order("alpha", self.alpha))
        object.__setattr__(self, "delta", checks.inner_probability("delta", self.delta))

    @classmethod
    def expecting(cls, rho: float, delta: float) -> Odometer:
        """The odometer that reads least when, all in all, about `rho`-zCDP is spent."""
        rho, delta = checks.positive("rho", rho), checks.inner_probability("delta", delta)
        best = 1.0 + math.sqrt(-math.log(delta) / rho)
        return cls(float(f"{min(max(best, 1.0 + 1e-6), 1e9):.6g}"), delta)

    def after(self, query: Query, *, relation: str | None = None) -> Odometer:
        """The odometer after one more query; mechanisms keep to one neighbouring relation."""
        query = as_query(query)
        common = self.relation
        if isinstance(query, Mechanism):
            common = relation_of(query, self.relation if relation is None else relation)
            if self.relation is not None and common != self.relation:
                raise ArgumentError(
                    f"relation must be {self.relation}, as for earlier queries, got {common!r}"
                )
        stated, rest = split(query, common, self._declared_cost)
        cost = renyi_cost(rest, self.alpha)
        if cost is None:
            raise ArgumentError(
                f"query must have a finite Rényi divergence of order {self.alpha:g}, "
                f"got {describe(query)}"
            )
        spent = self.spent + cost + (stated[0] if stated else Fraction(0))
        most = None if stated or missing_mass(rest) > 0 else largest_loss(rest)
        largest = None if most is None or self.largest is None else self.largest + most
        return replace(
            self, queries=self.queries + 1, spent=spent, largest=largest, relation=common
        )

    def _declared_cost(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        cost = stated_renyi(mechanism, self.alpha)
        return None if cost is None else (cost,)

    @property
    def reading(self) -> Reading:
        """An upper bound on the loss so far."""
        with localcontext(Context(prec=40)):
            log = -Decimal(self.delta).ln() / (Decimal(self.alpha) - 1)
            raised = log * (1 + _SLACK)
        exact = self.spent + Fraction(Context(prec=30, rounding=ROUND_CEILING).plus(raised))
        least = exact if self.largest is None else min(exact, self.largest)
        return Reading(amounts.charged(least), self.delta, self.queries)

    def __str__(self) -> str:
        now = self.reading
        return (
            f"eps {now.eps:.6g} lost so far, by {now.queries} queries,"
            f" but for probability {now.delta:g}"
        )
