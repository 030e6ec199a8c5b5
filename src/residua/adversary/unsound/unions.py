"""Unions that look safe and are not, for demonstration.

**Several budgets kept open at once.** Each of several rules keeps its own promise. Admitting what
*any* of them still admits lets the analyst look at answers first and then choose the budget: after
`L` the value is `L ⊕ sup_j V_j`, not `sup_j (L ⊕ V_j)`, and `⊕` does not distribute over `sup`.

**One shared delta.** The rule is that of a union of filters: a query is admitted if a live
component admits it, and the components that do not are stopped for good. What is wrong is the
promise: the analyst looks at answers before choosing which component goes on, so the deltas of all
components add up; the largest of them is not enough.

**Revived components.** A component that does not admit a query stays as it was, and may admit a
later one. The queries that it did not admit are paid for by the others alone, so no component knows
the whole loss, and the sum of their deltas bounds nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from residua import checks
from residua.adversary.rule import FilterRule, Rule, as_rule
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.query import Query
from residua.filters.union.union import UnionFilter
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld

_CLOSED = "closed"


@dataclass(frozen=True)
class SeveralBudgets(Rule):
    """Admits what any of the rules admits; a rule that would have refused is closed."""

    rules: Sequence[Rule]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        if not self.rules:
            raise ArgumentError("rules must hold at least one rule, got []")
        for i, rule in enumerate(self.rules):
            if not isinstance(rule, Rule):
                raise ArgumentTypeError(f"rules[{i}] must be a Rule, got {checks.shown(rule)}")

    @property
    def start(self) -> tuple[Hashable, ...]:
        return tuple(rule.start for rule in self.rules)

    def _allowed(self, state: tuple[Hashable, ...]) -> Iterable[tuple[Pld, Hashable]]:
        found: dict[Pld, list[Hashable]] = {}
        for i, (rule, own) in enumerate(zip(self.rules, state, strict=True)):
            if own == _CLOSED:
                continue
            for loss, after in rule.moves(own)[1:]:
                found.setdefault(loss, [_CLOSED] * len(state))[i] = after
        for loss, afters in found.items():
            yield loss, tuple(afters)


@dataclass(frozen=True, eq=False)
class SharedDelta(FilterRule):
    """A union over a catalogue that promises the largest `delta` of its components."""

    def __post_init__(self) -> None:
        if not isinstance(self.filter, UnionFilter):
            raise ArgumentTypeError(f"filter must be a union, got {checks.shown(self.filter)}")
        super().__post_init__()

    @property
    def promise(self) -> Pld:
        """What the rule claims, and does not keep."""
        assert isinstance(self.filter, UnionFilter) and self.filter.eps is not None
        return approximate_dp(self.filter.eps, max(self.filter.deltas))


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
