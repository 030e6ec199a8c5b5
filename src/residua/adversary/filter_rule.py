"""Any filter as a rule over a finite catalogue: its pure `decide` is the rule.

A refusal is a pass. The worst case of this rule is what the filter really lets through; it must
lie below the filter's `guarantee`.

A filter that can commit is asked to as well, where the catalogue has commits: to a batch, which is
run at once, or to another filter, which releases nothing by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from residua import checks
from residua.adversary.rule import Rule, as_queries
from residua.errors import ArgumentTypeError
from residua.filters.base import Filter
from residua.filters.potential.renyi_commit import Commit, Potential
from residua.filters.query import Query, loss_of
from residua.filters.state import State
from residua.pld.constructors import identity
from residua.pld.pld import Pld


@dataclass(frozen=True, eq=False)
class FilterRule(Rule):
    """What a filter admits of a catalogue; states are the filter's."""

    filter: Filter
    catalogue: Sequence[Query | Commit]

    def __post_init__(self) -> None:
        if not isinstance(self.filter, Filter):
            raise ArgumentTypeError(f"filter must be a Filter, got {checks.shown(self.filter)}")
        given = list(self.catalogue) if isinstance(self.catalogue, list | tuple) else None
        commits = [item for item in given or () if isinstance(item, Commit)]
        rest = self.catalogue if given is None else [q for q in given if q not in commits]
        asked = () if commits and not rest else as_queries(rest)
        object.__setattr__(self, "catalogue", (*asked, *commits))

    @cached_property
    def queries(self) -> tuple[tuple[Query, Pld], ...]:
        """Each query with its loss; a mechanism is asked as such."""
        found: dict[Pld, Query] = {}
        for query in self.catalogue:
            if not isinstance(query, Commit):
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
        if isinstance(state, Potential) and not state.committed:
            for commit in self.catalogue:
                if isinstance(commit, Commit):
                    decision = self.filter.decide(state, commit)  # type: ignore[arg-type]
                    if decision.admitted:
                        to = commit.to
                        batch = identity() if isinstance(to, Filter) else loss_of(to)
                        yield batch, decision.state


def as_rule(filter: Any, catalogue: Sequence[Query | Commit]) -> FilterRule:
    """The rule of a filter over a catalogue of queries (and of commits, where it takes them)."""
    return FilterRule(filter, catalogue)
