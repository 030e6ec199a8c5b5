"""The rule of a plan: a fixed multiset of queries, to be asked in any order.

Its value is the composition of the plan, whatever the order and whatever is left out: the budget
that is left is the composition of the queries that are left, and taking one of them out leaves
exactly that.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from residua.adversary.rule import Rule, as_catalogue, as_queries
from residua.filters.query import Query, loss_of
from residua.pld.pld import Pld


@dataclass(frozen=True)
class PlanRule(Rule):
    """Ask each query of the plan at most as often as it is in it; states are counts left."""

    plan: Sequence[Query]

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan", as_queries(self.plan))

    @cached_property
    def losses(self) -> tuple[Pld, ...]:
        return as_catalogue(self.plan)

    @property
    def start(self) -> tuple[int, ...]:
        every = [loss_of(query) for query in self.plan]
        return tuple(every.count(loss) for loss in self.losses)

    def _allowed(self, state: tuple[int, ...]) -> Iterable[tuple[Pld, Hashable]]:
        for i, loss in enumerate(self.losses):
            if state[i] > 0:
                yield loss, (*state[:i], state[i] - 1, *state[i + 1 :])
