"""Decisions: the answers of a filter."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from residua.errors import TooExpensive
from residua.filters.balance import Balance
from residua.filters.query import Query, describe
from residua.filters.state import State
from residua.work_limit import OPERATIONS, attempt

if TYPE_CHECKING:
    from residua.filters.base import Filter


NOTHING_FITS = "nothing of this kind fits"
"""The advice of a refusal that has nothing to recommend."""
COARSER = "a coarser description, fewer parts or a larger scale would take less"
"""The advice where deciding takes more than the limit."""


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
    is_too_expensive: bool = field(default=False, repr=False)
    """Whether it was refused because the decision takes more work than the limit."""
    spare: int = field(default=OPERATIONS, repr=False)
    """The part of the limit that the decision has left."""
    checked: bool = field(default=False, repr=False)
    """Whether this answers a check, which spends nothing: the reason says what would be."""

    def __bool__(self) -> bool:
        """Whether it was admitted."""
        return self.admitted

    _cost: ClassVar[Any] = None
    """The value of `cost`, once that was worked out."""

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
        """Why a query was refused, to be read after it: what it needs, or why nothing will do."""
        if self.is_too_expensive:
            return self._why_not
        found = attempt("this", OPERATIONS // 8, lambda: self._filter._need(self))
        return found if isinstance(found, str) else "does not fit what is left"

    @cached_property
    def advice(self) -> str:
        """The advice of a refusal: the query that would fit."""
        if self.is_too_expensive:
            return COARSER
        fit = self._largest_or_not
        if isinstance(fit, TooExpensive):
            return "what would fit takes too much work to find"
        return NOTHING_FITS if fit is None else f"{describe(fit)} would fit"

    def refused(self, left: str | None, advice: str) -> str:
        """The reason of a refusal, for callers that know more than the filter.

        That is what is left (if not None) and what would fit, given other budgets and open holds.
        """
        return self._filter._reason(self, left, advice)

    @property
    def outcome(self) -> str:
        """The first words of the reason."""
        outcome = "admitted" if self.admitted else "refused"
        return f"would be {outcome}" if self.checked else outcome

    @cached_property
    def largest(self) -> Query | None:
        """The query of this kind with the least noise that the state before would admit.

        None where the kind has no noise to turn, no amount of it would do, or it takes too much
        work to find: it is looked for under what the decision has left of the limit on work.
        """
        found = self._largest_or_not
        return None if isinstance(found, TooExpensive) else found

    @cached_property
    def _largest_or_not(self) -> Query | TooExpensive | None:
        if self.is_too_expensive:
            return None

        def search() -> Query | None:
            filter, before, relation = self._filter, self._before, self._relation
            found = filter._largest(before, self.query, relation)
            if found is None or not isinstance(self.query, Query):
                return found
            # What is recommended must also be cheap enough to decide.
            return found if filter._decide_within(before, found, relation).admitted else None

        return attempt("this", self.spare, search)

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The components of a union that this query stops for good; empty for other filters."""
        return self._filter.stops_of(self) if self.admitted else ()

    @cached_property
    def remaining(self) -> Any:
        """What is left after this decision."""
        return self._filter.remaining_in(self.state)

    def _leave(self, spare: int) -> None:
        """Set what the decision left of the limit on work; for filters."""
        object.__setattr__(self, "spare", spare)

    _last: ClassVar[Query | None] = None
    """The query that the session admitted last before this one."""

    def _follows(self, last: Query | None) -> None:
        """Set the query that was admitted last before this one; for sessions."""
        object.__setattr__(self, "_last", last)

    @cached_property
    def balance(self) -> Balance:
        """What is left after this decision, in the form common to all filters."""
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


def too_expensive(
    filter: Filter, before: State, query: Query, relation: str | None, why: str
) -> Decision:
    """The refusal of a query that takes more work to decide than the limit."""
    why_not = f"is too expensive to decide: {why}"
    return Decision(False, before, query, filter, before, None, relation, why_not, True)
