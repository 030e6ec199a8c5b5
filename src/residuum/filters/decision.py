"""What a filter answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from residuum.filters.query import Query
from residuum.filters.state import State


@dataclass(frozen=True, eq=False)
class Decision:
    """Whether a query was admitted, and what the filter's state is then.

    `cost` is what the query takes, in the filter's own unit, rounded up; None where no finite
    amount would do. A refusal leaves the state as it was. `reason`, `largest` and `remaining` are
    worked out when they are asked for.
    """

    admitted: bool
    state: State
    cost: Any
    query: Query
    _explain: Callable[[Decision], str] = field(repr=False)
    _largest: Callable[[Decision], Query | None] = field(repr=False)
    _remaining: Callable[[State], Any] = field(repr=False)

    def __bool__(self) -> bool:
        """Whether it was admitted."""
        return self.admitted

    @cached_property
    def reason(self) -> str:
        """What was asked, what it needs, what is left, and what would fit."""
        return self._explain(self)

    @cached_property
    def largest(self) -> Query | None:
        """The query of this kind with the least noise that the state before would admit.

        None where the kind has no noise to turn, or no amount of it would do.
        """
        return self._largest(self)

    @cached_property
    def remaining(self) -> Any:
        """What is left after this decision."""
        return self._remaining(self.state)
