"""A union whose components come back after they were stopped: an unsound rule, for demonstration.

A component that does not admit a query stays as it was, and may admit a later one. The queries
that it did not admit are paid for by the others alone, so no component knows the whole loss, and
the sum of their deltas bounds nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

from residua import checks
from residua.adversary.filter_rule import FilterRule, as_rule
from residua.adversary.rule import Rule
from residua.errors import ArgumentTypeError
from residua.filters.query import Query
from residua.filters.union.union import UnionFilter
from residua.pld.pld import Pld


@dataclass(frozen=True, eq=False)
class RevivedUnion(Rule):
    """Admits what any component admits; those that do not keep their state and stay live."""

    union: UnionFilter
    catalogue: tuple[Query, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.union, UnionFilter):
            raise ArgumentTypeError(f"union must be a union, got {checks.shown(self.union)}")

    @cached_property
    def rules(self) -> tuple[FilterRule, ...]:
        """The components by themselves."""
        return tuple(as_rule(each, self.catalogue) for each in self.union.filters)

    @property
    def start(self) -> tuple[Hashable, ...]:
        return tuple(rule.start for rule in self.rules)

    def _allowed(self, state: tuple[Hashable, ...]) -> Iterable[tuple[Pld, Hashable]]:
        found: dict[Pld, list[Hashable]] = {}
        for i, (rule, own) in enumerate(zip(self.rules, state, strict=True)):
            for loss, after in rule.moves(own)[1:]:
                found.setdefault(loss, list(state))[i] = after
        for loss, afters in found.items():
            yield loss, tuple(afters)

    @property
    def promise(self) -> Pld:
        """What the union keeps, and this rule does not."""
        return self.union.guarantee
