"""Any filter as a rule over a finite catalogue: its pure `decide` is the rule.

A refusal is a pass. The worst case of this rule is what the filter really lets through; it must
lie below the filter's `guarantee`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from residuum import checks
from residuum.adversary.rule import Rule, as_queries
from residuum.errors import ArgumentTypeError
from residuum.filters.filter import Filter
from residuum.filters.query import Query, loss_of
from residuum.filters.state import State
from residuum.pld.value import Pld


@dataclass(frozen=True, eq=False)
class FilterRule(Rule):
    """What a filter admits of a catalogue; states are the filter's."""

    filter: Filter
    catalogue: Sequence[Query]

    def __post_init__(self) -> None:
        if not isinstance(self.filter, Filter):
            raise ArgumentTypeError(f"filter must be a Filter, got {checks.shown(self.filter)}")
        object.__setattr__(self, "catalogue", as_queries(self.catalogue))

    @cached_property
    def queries(self) -> tuple[tuple[Query, Pld], ...]:
        """Each query with its loss; a mechanism is asked as such."""
        found: dict[Pld, Query] = {}
        for query in self.catalogue:
            found.setdefault(loss_of(query), query)
        return tuple((query, loss) for loss, query in found.items() if not loss.is_identity)

    @property
    def start(self) -> State:
        return self.filter.initial()

    def _allowed(self, state: State) -> Iterable[tuple[Pld, Hashable]]:
        for query, loss in self.queries:
            decision = self.filter.decide(state, query)
            if decision.admitted:
                yield loss, decision.state


def as_rule(filter: Any, catalogue: Sequence[Query]) -> FilterRule:
    """The rule of a filter over a catalogue of queries."""
    return FilterRule(filter, catalogue)
