"""The plan filter: a budget made of the queries that somebody expects.

The budget `B` is the composition of the longest prefix of the plan that fits `R_{eps,delta}`. A
query on the plan, or dominated by one that is, takes that one off: `L ⊕ (B - W) ⪯ W ⊕ (B - W) = B`.
Any other query takes off the least part `S` with `(B - S) ⊕ L ⪯ B`, found among the copies of each
planned kind and proven with the order of PLDs, separately for the planned Gaussians and for the
other planned queries, as the verifier does: the others only where all of their outcomes can be
written out, which Laplace noise among them rules out. Free: both are the residue condition. On plan
nothing is lost at all; far off it, much may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from residua import checks
from residua.errors import ArgumentError
from residua.filters.base import Filter
from residua.filters.decision import Decision, make_decision
from residua.filters.describe import named
from residua.filters.query import Query, as_list, described, loss_of
from residua.filters.state import State
from residua.filters.target import alone_words, moderate_target, needed_alone
from residua.filters.wording import Amounts
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.relations import ADD_REMOVE
from residua.pld.constructors import approximate_dp, identity
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld
from residua.provable import MOST_OUTCOMES


@dataclass(frozen=True)
class Planned(State):
    """How many of each kind on the plan are left, in the order in which they first stand there."""

    left: tuple[int, ...]


@dataclass(frozen=True)
class PlanFilter(Filter):
    """Keeps `(eps, delta)` for the longest prefix of a plan that fits, or what replaces it."""

    eps: float
    delta: float
    plan: tuple[Query, ...]

    kind: ClassVar[str] = "plan"

    def __post_init__(self) -> None:
        eps, delta = moderate_target(self.eps, self.delta)
        plan = tuple(named(q) for q in as_list(self.plan, "plan"))
        checks.require(len(plan) > 0, "plan", "a non-empty list of queries", self.plan)
        for query in plan:
            if isinstance(query, Mechanism) and ADD_REMOVE not in query.supported:
                known = " and ".join(query.supported) or "no relation"
                raise ArgumentError(
                    "plan must consist of queries with a pair for add-remove, got"
                    f" {described(query)}, which has one for {known} only; plan a bound such as"
                    " PureDp instead, and ask for the query itself"
                )
        checks.set_fields(self, eps=eps, delta=delta, plan=plan)
        super().__post_init__()

    @cached_property
    def kinds(self) -> tuple[Pld, ...]:
        """The different queries on the plan."""
        return tuple(dict.fromkeys(loss_of(q) for q in self.plan))

    @cached_property
    def kept(self) -> int:
        """The length of the longest prefix that fits."""
        losses = [loss_of(q) for q in self.plan]
        whole = approximate_dp(self.eps, self.delta)

        def fits(n: int) -> bool:
            return _total(_tally(losses[:n])) <= whole

        low, high = 0, len(losses)
        if fits(high):
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def initial(self) -> Planned:
        kept = _tally([loss_of(q) for q in self.plan[: self.kept]])
        return Planned(self.fingerprint, tuple(kept.get(kind, 0) for kind in self.kinds))

    def own(self, state: Any) -> State:
        state = super().own(state)
        whole = self.initial().left
        if (
            not isinstance(state, Planned)
            or len(state.left) != len(whole)
            or not all(0 <= n <= most for n, most in zip(state.left, whole, strict=True))
        ):
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def _budget(self, left: tuple[int, ...]) -> Pld:
        return _total(dict(zip(self.kinds, left, strict=True)))

    def remaining_in(self, state: State) -> Pld:
        """The composition of what is left of the plan."""
        assert isinstance(state, Planned)
        return self._budget(state.left)

    def spent_in(self, state: State) -> Pld:
        """The composition of what was taken off the plan."""
        assert isinstance(state, Planned)
        whole = self.initial().left
        return self._budget(tuple(a - b for a, b in zip(whole, state.left, strict=True)))

    def amounts_in(self, state: State, left: Any) -> Amounts:
        assert isinstance(state, Planned)
        own = left == self.remaining_in(state)
        return (("planned queries", Fraction(sum(state.left))),) if own else ()

    @property
    def guarantee(self) -> Pld:
        """The composition of the plan, as far as it was kept."""
        return self._budget(self.initial().left)

    def _decide(self, state: Planned, query: Query, relation: str | None) -> Decision:
        loss = loss_of(query, relation)
        if loss.is_identity:
            return make_decision(self, state, state, identity(), query, relation)
        left = self._after(state.left, loss)
        if left is None:
            why = "is not covered by what is left of the plan"
            return make_decision(self, state, None, None, query, relation, why)
        taken = tuple(a - b for a, b in zip(state.left, left, strict=True))
        return make_decision(
            self, state, Planned(state.of, left), self._budget(taken), query, relation
        )

    def _after(self, left: tuple[int, ...], loss: Pld) -> tuple[int, ...] | None:
        """What is left after a query, or None if the plan does not cover it."""
        for i, kind in enumerate(self.kinds):
            if left[i] and kind == loss:
                return _less(left, i, 1)
        covering = [
            i
            for i, kind in enumerate(self.kinds)
            if left[i] and _is_comparable(loss, kind) and _below(loss, kind)
        ]
        if covering:
            least = min(covering, key=lambda i: float(self.kinds[i].delta(0.0)))
            return _less(left, least, 1)
        if not _below(loss, self._budget(left)):
            return None
        found: list[tuple[float, int, int]] = []
        comparable = [
            i
            for i, kind in enumerate(self.kinds)
            if not (loss.gaussian and kind.gaussian is None)
            and _is_listed(dict(zip(self.kinds, self._alike(left, i), strict=True)))
        ]
        for i in comparable:
            kind = self.kinds[i]
            taken = self._least(self._alike(left, i), i, loss)
            if taken is not None:
                found.append((taken * float(kind.delta(0.0)) ** 2, i, taken))
        if found:
            _, i, taken = min(found)
            return _less(left, i, taken)
        for i in comparable:
            alike = self._alike(left, i)
            if _below(loss, self._budget(alike)):
                return tuple(n - gone for n, gone in zip(left, alike, strict=True))
        return None

    def _alike(self, left: tuple[int, ...], i: int) -> tuple[int, ...]:
        """What is left of the Gaussians on the plan if the kind `i` is one, else of the others."""
        noise = self.kinds[i].gaussian is None
        return tuple(
            n if (kind.gaussian is None) == noise else 0
            for n, kind in zip(left, self.kinds, strict=True)
        )

    def _least(self, left: tuple[int, ...], i: int, loss: Pld) -> int | None:
        """The least number of one kind that a query may take off; None if all do not suffice."""
        whole = self._budget(left)

        def suffices(n: int) -> bool:
            return _below(self._budget(_less(left, i, n)) + loss, whole)

        low, high = 0, 1
        while not suffices(min(high, left[i])):
            if high >= left[i]:
                return None
            low, high = high, 2 * high
        high = min(high, left[i])
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return high

    def _need(self, decision: Decision) -> str:
        needed = needed_alone(loss_of(decision.query, decision._relation), self.delta)
        return f"{decision._why_not} ({alone_words(needed, self.delta)})"


def _less(left: tuple[int, ...], i: int, n: int) -> tuple[int, ...]:
    return (*left[:i], left[i] - n, *left[i + 1 :])


def _tally(losses: list[Pld]) -> dict[Pld, int]:
    counts: dict[Pld, int] = {}
    for loss in losses:
        counts[loss] = counts.get(loss, 0) + 1
    return counts


def _total(counts: dict[Pld, int]) -> Pld:
    return sum((n * kind for kind, n in counts.items() if n), identity())


def _is_single(kind: Pld) -> bool:
    return kind.gaussian is None and list(kind.terms.values()) == [1]


def _is_comparable(loss: Pld, kind: Pld) -> bool:
    """Whether it can be proven that a query lies below one on the plan."""
    if loss.gaussian and kind.gaussian is None:
        # At one point: below (eps, delta)-DP.
        return _is_single(kind) and isinstance(next(iter(kind.terms)), RandomizedResponse)
    return _is_single(kind) or _is_listed({kind: 1})


def _is_listed(counts: dict[Pld, int]) -> bool:
    """Whether these are Gaussians, or have few enough outcomes together to write them all out."""
    outcomes = 1.0
    for kind, n in counts.items():
        for factor, each in kind.terms.items():
            copies, atoms = n * each, factor.atom_count
            if copies == 0:
                continue
            if atoms is None:
                return False
            coin = isinstance(factor, RandomizedResponse) and factor.delta == 0.0
            outcomes *= copies + 1.0 if coin else float(atoms) ** min(copies, 64)
            if outcomes > MOST_OUTCOMES:
                return False
    return True


@lru_cache(maxsize=4096)
def _below(low: Pld, high: Pld) -> bool:
    # Most of what is refused is refuted at once; the order looks for where, which may take long.
    if low.gaussian and not high.gaussian and high.renyi(math.inf) < math.inf:
        return False
    if float(low.delta_bounds(0.0).lo) > float(high.delta_bounds(0.0).hi):
        return False
    return low <= high
