"""The additive profile filter: it adds up the probabilities of losses of each size.

The filter has a budget for each of several sizes, and a budget of `rounds`. A symmetric query costs
one round and, for each size, the probability that its loss has that size or more (its discretised
profile, `discretise.py`). The budgets are the largest totals that the natural filter allows, so
this filter admits everything that the natural `(eps, delta)` filter admits, and it has the
guarantee computed for that filter (`guarantee.py`): the interaction is a post-processing of
randomized responses, unless sizes are drawn too often. Costs are rounded up, and budgets are upper
bounds. The guarantee, `target_eps` at `target_delta`, is part of the configuration, so that a
ledger says what was promised.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.adversary.natural.buckets import Plan, best_plan, total
from residua.adversary.natural.discretise import tail_mass
from residua.adversary.natural.guarantee import (
    UNBOUNDED_EPS,
    Guarantee,
    check_promise,
    check_rounds,
)
from residua.bounds import LARGEST_EPS
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.state import State
from residua.pld.pld import Pld
from residua.work_limit import remembered_property


def _round_up(eps: float) -> float:
    """`eps` rounded up to six digits, without last bits that differ between machines."""
    if eps > LARGEST_EPS:
        return UNBOUNDED_EPS
    return float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(repr(eps)))


@dataclass(frozen=True)
class ProfileBudget:
    """Rounds, and for each size the total probability of losses of that size or more."""

    rounds: int
    sizes: tuple[float, ...]
    totals: tuple[float, ...]


@dataclass(frozen=True)
class AdditiveProfileFilter(Additive):
    """Admits every query that the natural `(eps, delta)` filter admits; see `guarantee`."""

    eps: float
    delta: float
    rounds: int
    target_delta: float | None = None
    target_eps: float | None = None
    """The guaranteed `eps` at `target_delta`; by default the least that is proven, rounded up."""

    kind: ClassVar[str] = "additive_profile"

    def __post_init__(self) -> None:
        eps, delta, target = check_promise(self.eps, self.delta, self.target_delta)
        rounds = check_rounds(self.rounds)
        checks.set_fields(self, eps=eps, delta=delta, rounds=rounds, target_delta=target)
        least = best_plan(eps, delta, rounds, target)[1]
        target_eps = _round_up(least) if self.target_eps is None else self.target_eps
        target_eps = checks.real("target_eps", target_eps, "what is proven, or more")
        expected = f"at least {_round_up(least):g}, which is what is proven"
        is_proven = target_eps >= least or target_eps > LARGEST_EPS
        checks.require(is_proven, "target_eps", expected, target_eps)
        checks.set_fields(self, target_eps=min(target_eps, UNBOUNDED_EPS))
        super().__post_init__()

    @property
    def _target(self) -> float:
        assert self.target_delta is not None
        return self.target_delta

    @remembered_property
    def plan(self) -> Plan:
        """The sizes at which losses are cut, and how often each may be drawn."""
        return best_plan(self.eps, self.delta, self.rounds, self._target)[0]

    @remembered_property
    def proven(self) -> Guarantee:
        """`(eps', delta')` of the whole interaction."""
        assert self.target_eps is not None
        return Guarantee(self.target_eps, self._target, "buckets")

    def _amounts(self) -> tuple[Fraction, ...]:
        budgets = [total(e, self.eps, self.delta, self.rounds) for e in self.plan.points]
        return (Fraction(self.rounds), *(amounts.rounded_up(b) for b in budgets))

    def tables(self, _state: State) -> dict[str, bytes]:
        """The sizes that amounts are for, how many draws beyond each are allowed, and `eps'`."""
        found: dict[str, Any] = {"points": self.plan.points, "draws": self.plan.draws}
        found |= {"eps": self.proven.eps, "delta": self.proven.delta, "v": 1}
        return {"plan": json.dumps(found, sort_keys=True, separators=(",", ":")).encode()}

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        if not loss.is_symmetric:
            return "is not symmetric, and only symmetric queries are covered"
        tails = (tail_mass(loss, e).hi for e in self.plan.points)
        return (Fraction(1), *(Fraction(float(tail)) for tail in tails))

    @property
    def _units(self) -> tuple[str, ...]:
        return ("rounds", *(f"P(loss > {size:g})" for size in self.plan.points))

    def _cost_value(self, costs: tuple[Fraction, ...]) -> ProfileBudget:
        return self._budget(tuple(map(amounts.charged, costs)))

    def _budget(self, numbers: tuple[float, ...]) -> ProfileBudget:
        return ProfileBudget(int(numbers[0]), self.plan.points, numbers[1:])

    @property
    def guarantee(self) -> Pld:
        return self.proven.pld
