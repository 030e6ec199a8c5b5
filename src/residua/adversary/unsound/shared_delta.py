"""A union whose components share one `delta`: an unsound promise, for demonstration.

The rule is that of a union of filters: a query is admitted if a live component admits it, and the
components that do not are stopped for good. What is wrong is the promise. The analyst looks at
answers before choosing which component goes on, so the deltas of all components add up; the
largest of them is not enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from residua import checks
from residua.adversary.filter_rule import FilterRule
from residua.errors import ArgumentTypeError
from residua.filters.union.union import UnionFilter
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld


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
