"""Decisions: the answers of a filter."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from residua.errors import TooExpensive
from residua.filters.amounts import State
from residua.filters.balance import Balance
from residua.filters.query import Query, describe
from residua.work_limit import OPERATIONS, attempt

if TYPE_CHECKING:
    from residua.filters.base import Filter


NOTHING_FITS = "nothing of this kind fits"
"""The advice of a refusal that has nothing to recommend."""
TRY_COARSER = "a coarser description, fewer parts or a larger scale would take less"
"""The advice if deciding takes more than the limit on work."""

_SEARCH, _DECISIONS = OPERATIONS // 4, 8
"""Operations of a search for what would fit: so many, or so many times those of the decision."""


@dataclass(frozen=True, eq=False)
class Decision:
    """Whether a query was admitted, and what the filter's state is then.

    A refusal leaves the state as it was. `cost`, `reason`, `largest`, `remaining` and
    `balance` are computed when they are first read.
    """

    admitted: bool
    state: State
    query: Query
    _filter: Filter = field(repr=False)
    _before: State = field(repr=False)
    _price: Any = field(repr=False)
    _relation: str | None = field(repr=False)
    _why_not: str = field(repr=False)
    is_too_expensive: bool = field(default=False, repr=False)
    """Whether the query was refused because deciding takes more work than the limit."""
    work_left: int = field(default=OPERATIONS, repr=False)
    """Operations that the decision has left of the limit on work."""
    is_check: bool = field(default=False, repr=False)
    """Whether this answers a check, which spends nothing: the reason says what would be."""

    def __bool__(self) -> bool:
        """Whether it was admitted."""
        return self.admitted

    _cost: ClassVar[Any] = None
    """The value of `cost` after the first read."""

    @property
    def cost(self) -> Any:
        """The cost of the query, in the filter's own unit, rounded up.

        None where no finite amount would do.
        """
        if self._cost is None and self._price is not None:
            object.__setattr__(self, "_cost", self._filter._cost_value(self._price))
        return self._cost

    @cached_property
    def cost_words(self) -> str:
        """The cost of an admitted query in words: the decrease of what is shown as left."""
        return self._filter.cost_words(self)

    @cached_property
    def reason(self) -> str:
        """The query, what it needs, what is left, and what would fit."""
        return self._filter._reason(self)

    @cached_property
    def need(self) -> str:
        """Why a query was refused: words that follow its description in the reason."""
        if self.is_too_expensive:
            return self._why_not
        need = attempt("this", OPERATIONS // 8, lambda: self._filter._need(self))
        return need if isinstance(need, str) else "does not fit what is left"

    @cached_property
    def advice(self) -> str:
        """The advice of a refusal: the query that would fit."""
        if self.is_too_expensive:
            return TRY_COARSER
        largest = self._largest_or_error
        if isinstance(largest, TooExpensive):
            return "what would fit takes too much work to find"
        return NOTHING_FITS if largest is None else f"{describe(largest)} would fit"

    def refusal_reason(self, left: str | None, advice: str) -> str:
        """The reason of a refusal, for callers that know of other budgets and open holds.

        Args:
            left: what those leave, in words; None for what the filter itself has left.
            advice: what would fit given those.
        """
        return self._filter._reason(self, left, advice)

    @property
    def outcome(self) -> str:
        """The first words of the reason."""
        outcome = "admitted" if self.admitted else "refused"
        return f"would be {outcome}" if self.is_check else outcome

    @cached_property
    def largest(self) -> Query | None:
        """The query of this kind with the least noise that the state before would admit.

        A search that takes too much work ends with the last query that it found to fit. None if
        there was none by then, the kind has no noise parameter, or no amount of noise is enough.
        """
        largest = self._largest_or_error
        return None if isinstance(largest, TooExpensive) else largest

    @cached_property
    def _largest_or_error(self) -> Query | TooExpensive | None:
        if self.is_too_expensive:
            return None

        def search() -> Query | TooExpensive | None:
            filter, before, relation = self._filter, self._before, self._relation
            within = max(_SEARCH, _DECISIONS * (OPERATIONS - self.work_left))
            largest = filter._largest(before, self.query, relation, within)
            if not isinstance(largest, Query) or not isinstance(self.query, Query):
                return largest
            # What is recommended must also be cheap enough to decide.
            return largest if filter._decide_within(before, largest, relation).admitted else None

        return attempt("this", self.work_left, search)

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The components of a union that this query stops for good; empty for other filters."""
        return self._filter.stops_of(self) if self.admitted else ()

    @cached_property
    def remaining(self) -> Any:
        """What is left after this decision."""
        return self._filter.remaining_in(self.state)

    def _set_work_left(self, operations: int) -> None:
        """Set the operations that deciding has left of the limit; for filters."""
        object.__setattr__(self, "work_left", operations)

    _previous_query: ClassVar[Query | None] = None
    """The query that the session admitted last before this one."""

    def _set_previous_query(self, previous: Query | None) -> None:
        """Set the query that was admitted last before this one; for sessions."""
        object.__setattr__(self, "_previous_query", previous)

    @cached_property
    def balance(self) -> Balance:
        """What is left after this decision, in the form common to all filters."""
        is_last = self.admitted and isinstance(self.query, Query)
        last = self.query if is_last else self._previous_query
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
        query: the query that was decided.
        relation: the neighbouring relation under which it was decided.
        why_not: why a query is refused, as words that follow its description; empty if the price
            says so.
    """
    state = before if after is None else after
    return Decision(after is not None, state, query, filter, before, price, relation, why_not)


def too_expensive(
    filter: Filter, before: State, query: Query, relation: str | None, why: str
) -> Decision:
    """The refusal of a query that takes more work to decide than the limit."""
    why_not = f"is too expensive to decide: {why}"
    return Decision(False, before, query, filter, before, None, relation, why_not, True)
