"""What a filter answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from residua.filters.balance import Balance
from residua.filters.query import Query
from residua.filters.state import State

if TYPE_CHECKING:
    from residua.filters.base import Filter


@dataclass(frozen=True, eq=False)
class Decision:
    """Whether a query was admitted, and what the filter's state is then.

    A refusal leaves the state as it was. `cost`, `reason`, `largest`, `remaining` and
    `balance` are worked out when they are asked for.
    """

    admitted: bool
    state: State
    query: Query
    _filter: Filter = field(repr=False)
    _before: State = field(repr=False)
    _price: Any = field(repr=False)
    _relation: str | None = field(repr=False)
    _why_not: str = field(repr=False)
    checked: bool = field(default=False, repr=False)
    """Whether this answers a check, which spends nothing: the reason says what would be."""

    def __bool__(self) -> bool:
        """Whether it was admitted."""
        return self.admitted

    _cost: ClassVar[Any] = None
    """What `cost` is, once that was worked out."""

    @property
    def cost(self) -> Any:
        """What the query takes, in the filter's own unit, rounded up.

        None where no finite amount would do.
        """
        if self._cost is None and self._price is not None:
            object.__setattr__(self, "_cost", self._filter._cost_value(self._price))
        return self._cost

    @cached_property
    def cost_words(self) -> str:
        """What an admitted query costs in words: what is shown as left is less by so much."""
        return self._filter.cost_words(self)

    @cached_property
    def reason(self) -> str:
        """What was asked, what it needs, what is left, and what would fit."""
        return self._filter._reason(self)

    def refused(self, left: str | None, advice: str) -> str:
        """The reason of a refusal, for who knows more than the filter: what is left (if not None)
        and what would fit where other budgets and open holds have a say."""
        return self._filter._reason(self, left, advice)

    @property
    def outcome(self) -> str:
        """The first words of the reason."""
        outcome = "admitted" if self.admitted else "refused"
        return f"would be {outcome}" if self.checked else outcome

    @cached_property
    def largest(self) -> Query | None:
        """The query of this kind with the least noise that the state before would admit.

        None where the kind has no noise to turn, or no amount of it would do.
        """
        return self._filter._largest(self._before, self.query, self._relation)

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The components of a union that this query stops for good; empty for other filters."""
        return self._filter.stops_of(self) if self.admitted else ()

    @cached_property
    def remaining(self) -> Any:
        """What is left after this decision."""
        return self._filter.remaining_in(self.state)

    _last: ClassVar[Query | None] = None
    """The query that the session admitted last before this one."""

    def _follows(self, last: Query | None) -> None:
        """Say which query was admitted last before this one; for sessions."""
        object.__setattr__(self, "_last", last)

    @cached_property
    def balance(self) -> Balance:
        """What is left after this decision, said as for every other filter."""
        own = self.admitted and isinstance(self.query, Query)
        last = self.query if own else self._last
        return self._filter.balance_in(self.state, last, relation=self._relation)


def make_decision(
    filter: Filter,
    before: State,
    after: State | None,
    price: Any,
    query: Query,
    relation: str | None,
    why_not: str = "",
) -> Decision:
    """Make the decision of a filter on a query; for implementations of filters.

    Args:
        filter: the filter that decides.
        before: its state when the query came.
        after: the state that follows; None for a refusal, which leaves the state as it was.
        price: what the query takes, in the filter's own form; None if no finite amount would do.
        query: what was asked.
        relation: the neighbouring relation under which it was asked.
        why_not: why a refused query is refused, to be read after it; empty if the price says so.
    """
    state = before if after is None else after
    return Decision(after is not None, state, query, filter, before, price, relation, why_not)
