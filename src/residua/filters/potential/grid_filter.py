"""What filters on potentials have in common: the target, the check, and the answer.

The guarantee is `R_{eps,delta}` by the theorem of `grid.py`. A query is admitted if some potential
may follow it; which one does is up to the filter, and depends on public history alone.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.base import Filter
from residua.filters.decision import Decision, make_decision
from residua.filters.describe import as_mechanism
from residua.filters.losses import response_eps
from residua.filters.noise import largest_response
from residua.filters.potential.grid import Grid, grid_for, step_of
from residua.filters.query import Query, loss_of
from residua.filters.state import State
from residua.filters.target import target
from residua.mechanisms.codec import parsed_json
from residua.pld.constructors import approximate_dp, pure_dp
from residua.pld.pld import Pld


class GridFilter(Filter):
    """A filter for `(eps, delta)` whose states have potentials."""

    eps: float
    delta: float

    remaining_is_a_query: ClassVar[bool] = True

    @cached_property
    def grid(self) -> Grid:
        return grid_for(self.eps, self.delta)

    @abstractmethod
    def potential(self, state: Any) -> Floats | None:
        """The potential of a state; None before anything was admitted."""

    @abstractmethod
    def whole(self, state: Any) -> int:
        """The highest level, in parts, of the menu that a state is on or can leave for."""

    def admits(self, state: Any, query: Query, relation: str | None = None) -> bool:
        """Whether a state covers a query (and then nothing)."""
        loss = loss_of(query, relation)
        if loss.is_identity:
            return True
        if loss.is_infinite:
            return False
        return step_of(self.grid, loss).allowed(self.potential(state), self.grid.zero)

    def tables(self, state: State) -> dict[str, bytes]:
        """The potential of a state: a line of JSON, then doubles, least significant byte first.

        The line names the grid and the highest level of the menu; the doubles stand at the points
        of the grid, from left to right.
        """
        own = self.own(state)
        potential = self.potential(own)
        if potential is None:
            return {}
        line: dict[str, float] = {"cells": self.grid.cells, "half": self.grid.half, "v": 1}
        line |= {"delta": self.delta, "eps": self.eps, "whole": self.whole(own)}
        head = json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return {"potential": head.encode() + b"\n" + potential.astype("<f8").tobytes()}

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`.

        To the last of them, so that a refusal does not recommend more than is said to be left.
        """

        return largest_response(self.eps, lambda eps: self.admits(state, pure_dp(eps)))

    @property
    def most_eps(self) -> float:
        return self.eps

    def _answer(
        self, before: State, after: State | None, cost: Any, query: Query, relation: str | None
    ) -> Decision:
        why_not = "" if after is not None else "exceeds what is left"
        return make_decision(self, before, after, cost, query, relation, why_not)

    def _need(self, decision: Decision) -> str:
        """With what the query needs by itself, unless that is no more than what is left."""
        needed = needed_alone(decision, self.delta)
        if needed <= self.eps:
            left = response_eps(self.remaining_in(decision._before))
            if left is not None and needed <= left:
                return decision._why_not
        return f"{decision._why_not} ({alone_words(needed, self.delta)})"


Counts = tuple[tuple[Pld, int], ...]
"""Queries, and how many of each."""


def needed_alone(decision: Decision, delta: float) -> float:
    """The `eps` that the query of a decision would need by itself at this `delta`."""
    loss = loss_of(decision.query, decision._relation)
    ends = (loss,) if loss.is_symmetric else (loss, loss.reverse())
    return max(float(one.epsilon(delta)) for one in ends)


def alone_words(eps: float, delta: float) -> str:
    """The same in words."""
    if not eps < math.inf:
        return f"no eps covers it at delta {delta:g}"
    return f"by itself it needs eps {amounts.shown(eps, up=True)} at delta {delta:g}"


def named(query: Query) -> Query:
    """A query by its description, where it has one: what is written down reads back the same."""
    try:
        return as_mechanism(query)
    except ArgumentError:
        return query


def counted(counts: dict[Pld, int]) -> Counts:
    """Counts without zeros, as a value."""
    return tuple((query, n) for query, n in counts.items() if n > 0)


def grid_target(eps: Any, delta: Any) -> tuple[float, float]:
    """Check a target that a grid can carry."""
    e, d = target(eps, delta)
    checks.require(1e-3 <= e <= 100.0, "eps", "between 0.001 and 100", eps)
    checks.require(d >= 1e-30, "delta", "at least 1e-30 and below 1", delta)
    return e, d


def state_fields(filter: Filter, given: Any, needed: set[str]) -> dict[str, Any]:
    """The fields of a state as JSON, strictly: of this kind, none missing, none unknown."""
    fields = parsed_json("state", given)
    if not isinstance(fields, dict):
        raise ArgumentTypeError(f"state must be a JSON object, got {checks.shown(given)}")
    fields = dict(fields)
    kind = fields.pop("kind", None)
    if kind != filter.kind:
        raise ArgumentError(f"kind must be {filter.kind!r}, got {checks.shown(kind)}")
    for name in needed - set(fields):
        raise ArgumentError(f"state needs the field {name!r}, got only {sorted(fields)!r}")
    for name in set(fields) - needed:
        raise ArgumentError(f"state of {filter.kind} got the unknown field {name!r}")
    if not isinstance(fields["of"], str):
        raise ArgumentTypeError(f"of must be a text, got {checks.shown(fields['of'])}")
    return fields
