"""The natural filter, with the guarantee it really has.

It admits while the exact composition of what was spent stays below a budget `B`. Against adaptive
analysts that does *not* keep the interaction below `B` in general; what it does guarantee is worked
out when the filter is made, and where nothing is proven it is not made:

* **any queries, budget `R_eps`**: losses of a history add up, and `L_1 ⊕ … ⊕ L_t ⪯ R_eps` says that
  they never exceed `eps` in size; then no adaptive choice of them does. The guarantee is `B`.
* **a family that is free for every budget**: `"gaussian"`, `"pure_delta"`, or a catalogue whose
  compositions are totally ordered however many they are. The guarantee is `B`.
* **a finite catalogue**: the exact `V_k` (`attack.py`); `B` where `V_k ⪯ B` is proven, else
  `V_k` itself, from above.
* **any queries, budget `R_{eps,delta}`**: the computed `(eps', delta')` (`natural_guarantee.py`),
  for a number of rounds or for any.

Queries that are not symmetric enter as `L ∨ L.reverse()`, so that both directions are covered. A
query that is not in the catalogue is charged as one that dominates it.

**The additive profile filter** adds up the probabilities of losses of each size. It has a budget
for each of several sizes, and a budget of `rounds`. A symmetric query costs one round and, for each
size, the probability that its loss has that size or more (its discretised profile,
`discretise.py`). The budgets are the largest totals that the natural filter allows, so this filter
admits every symmetric query that the natural `(eps, delta)` filter admits. Its guarantee is another
one (`buckets.py`): the interaction is a post-processing of randomized responses, unless sizes are
drawn too often. Costs are rounded up, and budgets are upper bounds. The guarantee, `target_eps` at
`target_delta`, is part of the configuration, so that a ledger says what was promised.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from residua import checks
from residua.adversary.attack import attack
from residua.adversary.buckets import Plan, best_plan, total
from residua.adversary.discretise import tail_mass
from residua.adversary.finite import ACCURACY
from residua.adversary.freeness import free_family
from residua.adversary.natural_guarantee import (
    UNBOUNDED_EPS,
    Guarantee,
    check_promise,
    check_rounds,
    moment_bound,
    natural_guarantee,
)
from residua.adversary.rule import NaturalRule, as_catalogue, as_queries, as_rounds
from residua.bounds import LARGEST_EPS, Verdict
from residua.errors import ArgumentError, TooLargeError
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.amounts import State
from residua.filters.balance import Detail, make_detail
from residua.filters.base import Filter
from residua.filters.costs import gaussian_variance, response_point
from residua.filters.decision import Decision, make_decision
from residua.filters.query import Query, as_query, describe, loss_of, mechanism_if_known
from residua.filters.wording import SQUARES
from residua.mechanisms.codec import from_dict
from residua.pld.constructors import identity
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.work_limit import remembered, remembered_property

FAMILIES = ("gaussian", "pure_delta")


@dataclass(frozen=True)
class Spent(State):
    """The composition of what was spent, and in how many rounds.

    Unlike other states it grows: an entry for each different query, with a count.
    """

    loss: Pld
    rounds: int


@dataclass(frozen=True)
class NaturalBudget:
    """The budget, what of it was spent, and the rounds that are left (None: any number)."""

    budget: Pld
    spent: Pld
    rounds: int | None

    def __str__(self) -> str:
        rounds = "" if self.rounds is None else f" in {self.rounds} round"
        rounds += "" if self.rounds in (None, 1) else "s"
        less = "" if self.spent.is_identity else f" less {describe(self.spent)}"
        return f"{describe(self.budget)}{less}{rounds}"


class Proven(NamedTuple):
    """What a natural filter guarantees, and why."""

    guarantee: Pld
    free: bool
    reason: str
    computed: Guarantee | None = None
    """The guarantee for any queries."""


@dataclass(frozen=True)
class NaturalFilter(Filter):
    """Admits while what was spent, composed exactly, stays below `budget`.

    `guarantee` is what that is worth against adaptive analysts: the budget itself only where
    `free` says so.
    """

    budget: Pld
    rounds: int | None = None
    catalogue: Sequence[Query] | str | None = None

    kind: ClassVar[str] = "natural"

    def __post_init__(self) -> None:
        checks.set_fields(self, budget=loss_of(as_query(self.budget, "budget")))
        if self.rounds is not None:
            checks.set_fields(self, rounds=as_rounds(self.rounds))
        if isinstance(self.catalogue, str):
            checks.one_of("catalogue", self.catalogue, FAMILIES)
        elif self.catalogue is not None:
            queries = as_queries(self.catalogue)
            checks.set_fields(self, catalogue=tuple(mechanism_if_known(query) for query in queries))
        self.proven  # noqa: B018  raises where nothing is proven
        super().__post_init__()

    @property
    def members(self) -> tuple[Pld, ...]:
        """The catalogue as symmetric PLDs."""
        if self.catalogue is None or isinstance(self.catalogue, str):
            return ()
        return tuple(dict.fromkeys(symmetric(loss) for loss in as_catalogue(self.catalogue)))

    @property
    def proven(self) -> Proven:
        """The guarantee and its reason."""
        family = self.catalogue if isinstance(self.catalogue, str) else None
        members = None if family or self.catalogue is None else self.members
        return _proven(self.budget, self.rounds, family, members)

    @property
    def guarantee(self) -> Pld:
        return self.proven.guarantee

    @property
    def free(self) -> bool:
        """Whether the budget itself is what is guaranteed."""
        return self.proven.free

    def initial(self) -> Spent:
        return Spent(self.fingerprint, identity(), 0)

    def check_state(self, state: Any) -> State:
        state = super().check_state(state)
        if not isinstance(state, Spent):
            raise ArgumentError(f"state must be one of {self!r}, got {checks.shown(state)}")
        return state

    def _decide(self, state: Spent, query: Query, relation: str | None) -> Decision:
        loss = loss_of(query, relation)
        if loss.is_identity:
            return make_decision(self, state, state, loss, query, relation)
        if self.rounds is not None and not state.rounds < self.rounds:
            why = f"needs a round, and all {self.rounds} rounds are used"
            return make_decision(self, state, None, None, query, relation, why)
        charges = self._charges(loss)
        if isinstance(charges, str):
            return make_decision(self, state, None, None, query, relation, charges)
        for charge in charges:
            after = state.loss + charge
            if self._below(after):
                went = Spent(state.of, after, state.rounds + 1)
                return make_decision(self, state, went, charge, query, relation)
        why = self._missing(state, state.loss + charges[0])
        return make_decision(self, state, None, None, query, relation, why)

    def _missing(self, state: Spent, after: Pld) -> str:
        """What a query would take together with what was spent, where the budget has less."""
        fresh = state.loss.is_identity
        witness = dominated(after, self.budget).witness
        if witness is None:
            together = "is" if fresh else "and what was spent are"
            return f"{together} not proven to stay below the budget"
        needs = "needs" if fresh else "and what was spent need"
        taken = float(after.hockey_stick_bounds(witness.x).hi)
        there = float(self.budget.hockey_stick_bounds(witness.x).lo)
        return (
            f"{needs} delta {amounts.shown(taken, up=True)} at eps {math.log(witness.x):.6g},"
            f" where the budget has {amounts.shown(there)}"
        )

    def _charges(self, loss: Pld) -> Sequence[Pld] | str:
        """As what a query may be charged, or why it is none of the family."""
        if isinstance(self.catalogue, str):
            if _in_family(loss, self.catalogue):
                return (loss,)
            return f"is not in the family {self.catalogue}"
        loss = symmetric(loss)
        if self.catalogue is None:
            return (loss,)
        if loss in self.members:
            return (loss,)
        above = [member for member in self.members if dominated(loss, member).proven]
        return above or (
            "needs a query of the catalogue that dominates it, and no query of the catalogue does"
        )

    def _below(self, spent: Pld) -> bool:
        """Whether what was spent is proven to stay below; a family's Gaussians as written."""
        if self.catalogue == "gaussian" and not self.budget.terms:
            return gaussian_variance(spent) <= gaussian_variance(self.budget)
        if spent.gaussian and self.budget.renyi(math.inf) < math.inf:
            return False  # unbounded losses below bounded ones: no need to look for where
        return dominated(spent, self.budget).proven

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """What is left of a Gaussian budget for Gaussians; any other composition has no unit."""
        assert isinstance(state, Spent)
        if self.catalogue != "gaussian" or self.budget.terms:
            return ()
        whole = gaussian_variance(self.budget)
        left = whole - gaussian_variance(state.loss)
        detail = make_detail(self.kind, SQUARES, left, whole)
        if self.rounds is None:
            return (detail,)
        rounds = Fraction(self.rounds - state.rounds), Fraction(self.rounds)
        return make_detail(self.kind, "rounds", *rounds), detail

    def remaining_in(self, state: State) -> NaturalBudget:
        assert isinstance(state, Spent)
        left = None if self.rounds is None else self.rounds - state.rounds
        return NaturalBudget(self.budget, state.loss, left)

    def spent_in(self, state: State) -> Pld:
        assert isinstance(state, Spent)
        return state.loss

    def tables(self, _state: State) -> dict[str, bytes]:
        """The guarantee for any queries, and the cut that shows it, for verifiers."""
        found, point = self.proven.computed, response_point(self.budget)
        if found is None or point is None:
            return {}
        table: dict[str, Any] = {"eps": min(found.eps, UNBOUNDED_EPS), "delta": found.delta, "v": 2}
        if found.method == "moments":
            table |= moment_bound(*point, found.delta)[0]._asdict()
        return {"guarantee": json.dumps(table, sort_keys=True, separators=(",", ":")).encode()}

    def state_from_fields(self, fields: Mapping[str, Any]) -> Spent:
        of = fields["of"]
        checks.instance("of", of, str, "of type str")
        loss = loss_of(from_dict(fields["loss"]))
        return Spent(of, loss, checks.count("rounds", fields["rounds"]))


@remembered(maxsize=1024)
def symmetric(loss: Pld) -> Pld:
    """A query with its other direction."""
    return loss if loss.is_symmetric else loss | loss.reverse()


def _in_family(loss: Pld, family: str) -> bool:
    found = free_family([loss])
    if family == "gaussian":
        return found is not None and not loss.terms
    return found is not None and loss.gaussian is None and found.startswith("R_{0,delta}")


@remembered(maxsize=64)
def _proven(
    budget: Pld, rounds: int | None, family: str | None, members: tuple[Pld, ...] | None
) -> Proven:
    if budget.is_identity:
        return Proven(budget, True, "nothing but Id is admitted")
    point = response_point(budget)
    if point is not None and point[1] == 0.0:
        return Proven(budget, True, "losses of a history add up")
    if family is not None:
        return Proven(budget, True, f"the family {family} is closed and totally ordered")
    if members is None:
        return _for_any_queries(budget, rounds, point)
    why = free_family(members)
    if why is not None:
        return Proven(budget, True, why)
    if rounds is None:
        raise ArgumentError(
            "rounds must be given unless the natural filter is free in any number of rounds,"
            " got None"
        )
    try:
        finite = all(member.is_finite for member in members)
        accuracy = ACCURACY if finite else 0.01
        rule = NaturalRule(members, budget, lenient=True)
        found = attack(rule, budget, rounds, accuracy=accuracy)
    except TooLargeError:
        if point is None:
            raise
        return _for_any_queries(budget, rounds, point)
    if found.verdict is Verdict.YES:
        return Proven(budget, True, "the exact worst case lies below the budget")
    return Proven(found.worst.pld, False, "the exact worst case of the catalogue")


def _for_any_queries(budget: Pld, rounds: int | None, point: tuple[float, float] | None) -> Proven:
    if point is None:
        raise ArgumentError(
            "catalogue must be a list of queries, 'gaussian' or 'pure_delta', got None: nothing is"
            f" proven about arbitrary queries within the budget {describe(budget)}"
        )
    found = natural_guarantee(*point, rounds)
    if rounds is None and found.pld.is_infinite:
        raise ArgumentError(
            "rounds must be given where nothing is proven for any number of arbitrary queries, got"
            " None"
        )
    reason = f"computed for arbitrary queries: {found.method}"
    if found.pld.is_infinite:
        reason += "; it is trivial (delta = 1): nothing is guaranteed"
    return Proven(found.pld, False, reason, found)


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
