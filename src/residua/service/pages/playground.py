"""A game against the natural filter, small enough for every strategy to be exact.

Two queries and a budget `B = R_{1.395, 0.509}`: `steady`, `R_{1.404, 0.0208}`, and `gamble`,
`R_{0.0847, 0.478}`. Any two of them except two gambles compose to less than `B`, so the natural
filter admits either after `steady`. The analyst looks at the first answer before choosing, and the
whole interaction exceeds `B`: the curve of `steady ⊕ (steady ∨ gamble)`.

A residue filter keeps a loss `V` with `L ⊕ V ⪯ B` for what was asked, and admits what lies below
it. Here `V = steady` does after either query: whatever the analyst does, `L ⊕ V ⪯ B` bounds it.

Numbers: delta of a strategy is taken at eps = 1.395 from its exact masses, below for what is
reached, above for what is kept. Analysts who may ask anything, within an everyday budget, are those
of `natural_attack`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from residua.adversary.attack import Attack, natural_cost
from residua.adversary.natural_filter import NaturalFilter
from residua.adversary.strategy import STOP, Strategy
from residua.adversary.strongest import natural_attack
from residua.filters.additive.basic import BasicFilter
from residua.filters.base import Filter
from residua.filters.residue.update import UpdateFilter
from residua.pld.constructors import approximate_dp, identity
from residua.pld.pld import Pld

EPS, DELTA = 1.395, 0.509
"""What the filters promise."""
BUDGET = approximate_dp(EPS, DELTA)
PARAMETERS = {"steady": (1.404, 0.0208), "gamble": (0.0847, 0.478)}
QUERIES: dict[str, Pld] = {name: approximate_dp(*pair) for name, pair in PARAMETERS.items()}
RESIDUE = QUERIES["steady"]
STOPPED = "stop"
MOVES = (*QUERIES, STOPPED)
ROUNDS = 2
"""Queries that a plan asks at most."""
EVERYDAY = approximate_dp(1.0, 1e-6)
"""The budget within which anything may be asked, in each of these numbers of rounds."""
EVERYDAY_ROUNDS = (2, 5, 10)
_EPS = np.linspace(0.0, 2 * EPS, 121)


@dataclass(frozen=True)
class Plan:
    """The visitor's plan: a first query, and a next one for each finite outcome."""

    first: str
    low: str
    """After an answer that speaks against the person being there."""
    high: str
    """After one that speaks for it."""

    @property
    def adapts(self) -> bool:
        """Whether what comes next depends on what came out."""
        return self.low != self.high


@dataclass(frozen=True)
class PlayedPlan:
    """The result of a plan against one filter."""

    refusals: tuple[str, ...]
    """In the filter's own words."""
    strategy: Strategy
    below: float
    """Delta that is reached at least."""
    above: float
    """Delta that is reached at most."""

    @property
    def breaks(self) -> bool:
        """Whether the promise is broken: proven."""
        return self.below > DELTA


def in_words(name: str) -> str:
    """A query's effect in percent: `R_{eps, delta}` reveals, or else hints with odds `e^eps`."""
    eps, delta = PARAMETERS[name]
    right = 100 / (1 + math.exp(-eps))
    reveals = f"gives the truth away {100 * delta:.0f}\N{NO-BREAK SPACE}% of the time"
    return f"{reveals}, else a hint that is {right:.0f}\N{NO-BREAK SPACE}% right"


@cache
def worst() -> Attack:
    """The worst that the natural filter lets anybody do."""
    return natural_cost(tuple(QUERIES.values()), BUDGET, ROUNDS)


@cache
def exceeded() -> tuple[tuple[int, float], ...]:
    """How often the promised delta is reached in so many rounds by asking anything, from below."""
    found = (natural_attack(EVERYDAY, rounds) for rounds in EVERYDAY_ROUNDS)
    return tuple((one.rounds, math.floor(10.0 * one.ratio) / 10.0) for one in found)


@cache
def filters() -> dict[str, Filter]:
    """The filters that the visitor plays against."""
    return {
        "natural": NaturalFilter(BUDGET, rounds=ROUNDS, catalogue=tuple(QUERIES.values())),
        "residue": UpdateFilter(BUDGET, _residue),
        "basic": BasicFilter(EPS, DELTA),
    }


def _residue(budget: Pld, _loss: Pld) -> Pld:
    """What is left after a query: `V`, and nothing after the second one."""
    return RESIDUE if budget == BUDGET else identity()


@cache
def play_plan(name: str, plan: Plan) -> PlayedPlan:
    """A plan against one of the filters. What is refused is passed."""
    filter = filters()[name]
    refusals: list[str] = []

    def allowed(query: str, before: str | None) -> bool:
        state = filter.initial()
        if before is not None:
            state = filter.decide(state, QUERIES[before]).state
        decision = filter.decide(state, QUERIES[query])
        if not decision.admitted and decision.reason not in refusals:
            refusals.append(decision.reason)
        return decision.admitted

    strategy = STOP
    if plan.first != STOPPED and allowed(plan.first, None):
        then = tuple(
            Strategy(QUERIES[move]) if move != STOPPED and allowed(move, plan.first) else STOP
            for move in (plan.low, plan.high)
        )
        strategy = Strategy(QUERIES[plan.first], () if then == (STOP, STOP) else then)
    below, above = reached(strategy)
    return PlayedPlan(tuple(refusals), strategy, below, above)


def reached(strategy: Strategy) -> tuple[float, float]:
    """Delta at eps of a strategy, from below and from above."""
    if strategy.stops:
        return 0.0, 0.0
    # h falls in x = e^eps, so below it is taken a little further right.
    x = Fraction(math.nextafter(math.nextafter(math.exp(EPS), math.inf), math.inf))
    below = float(strategy.exact("below").hockey_stick(x))
    return math.nextafter(below, 0.0), float(strategy.pld().delta(EPS))


@cache
def curves(plan: Plan) -> dict[str, Any]:
    """The hockey-stick curves of the budget and of what each filter let happen."""
    lines = {"promised": BUDGET} | {
        name: play_plan(name, plan).strategy.pld() for name in ("natural", "residue")
    }
    return {
        "eps": _EPS.tolist(),
        "delta": {
            name: np.clip(np.asarray(pld.delta(_EPS), dtype=np.float64), 0.0, 1.0).tolist()
            for name, pld in lines.items()
        },
    }
