"""The ledger's answers: frozen values that compute slow parts when they are read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from residua.errors import ArgumentError
from residua.filters.balance import Balance
from residua.filters.base import Filter
from residua.filters.query import Query, describe, plain_pld
from residua.ledger.domain import rules
from residua.ledger.domain.balances import available
from residua.ledger.domain.described_query import DescribedQuery
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld

if TYPE_CHECKING:
    from residua.ledger.api.ledger import Ledger


class Cap(NamedTuple):
    """The filter whose guarantee is promised of a budget, for how many windows, and its last query.

    The query is read when it is asked for; None before the first one.
    """

    filter: Filter
    windows: int
    last: Callable[[], Query | None]


@dataclass(frozen=True)
class BudgetSnapshots:
    """Where the budgets of a request stood after it, by name; what was asked; whom it named."""

    query: DescribedQuery
    named: tuple[str, ...]
    one: bool
    """Whether a single name was given, rather than a list."""
    lines: Mapping[str, tuple[str, ...]]
    """For each named budget, itself and the ancestors that it charges."""
    all: Mapping[str, rules.BudgetSnapshot]
    closed: frozenset[str] = frozenset()
    rule: rules.Fits = rules.spends
    """By which it was asked: to spend, or to hold."""
    caps: Mapping[str, Cap] = field(default_factory=dict, compare=False)
    """For each named budget, whose capacity is a guarantee, and what it admitted last."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the caps, which read the store: another process has none."""
        fields = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return {**fields, "caps": {}}

    @cached_property
    def remaining(self) -> Any:
        """What is left: of the named budget, or by name where several were named."""
        left = {
            name: None
            if self.closed & set(self.lines[name])
            else rules.remaining([self.all[member] for member in self.lines[name]])
            for name in self.named
        }
        return left[self.named[0]] if self.one else left

    @cached_property
    def remaining_data(self) -> Any:
        """The same as JSON data."""
        data = {}
        for name in self.named:
            left = self.remaining if self.one else self.remaining[name]
            own = self.all[self.lines[name][0]]
            held = rules.state_held(own)
            data[name] = None if left is None else plain(left, own.filter.left_words(held, left))
        return data[self.named[0]] if self.one else data

    @cached_property
    def balance(self) -> Any:
        """What is left, in the form common to all filters; by name where several were named."""
        found = {name: self._balance(name) for name in self.named}
        return found[self.named[0]] if self.one else found

    def _balance(self, name: str) -> Balance | None:
        members = self.lines[name]
        if self.closed & set(members):
            return None
        cap, line = self.caps[name], [self.all[member] for member in members]
        return available(line, cap.windows * cap.filter.guarantee, cap.last())

    @cached_property
    def largest(self) -> Mechanism | None:
        """The query of this kind with the least noise that all would admit now."""
        return rules.largest(tuple(self.all.values()), self.query, self.rule)

    @property
    def largest_soon(self) -> Mechanism | None:
        """The same, if that takes no longer than a refusal may take to word."""
        return rules.largest(tuple(self.all.values()), self.query, self.rule, rules.SEARCH_LIMIT)


class Remainder(Protocol):
    """What is left after a request; `BudgetSnapshots` of a ledger, or what a service said."""

    @property
    def remaining(self) -> Any: ...

    @property
    def remaining_data(self) -> Any: ...

    @property
    def balance(self) -> Any: ...

    @property
    def largest(self) -> Mechanism | None: ...

    @property
    def largest_soon(self) -> Mechanism | None: ...


@dataclass(frozen=True)
class Outcome:
    """What a request to a ledger gets: a decision, and what is left of the budgets."""

    admitted: bool
    reason: str
    remainder: Remainder = field(repr=False, compare=False, kw_only=True)
    """Where the budgets of the request stood after it."""

    def __bool__(self) -> bool:
        return self.admitted

    @property
    def remaining(self) -> Any:
        """What is left, rounded down: now for a check, else after the request."""
        return self.remainder.remaining

    @property
    def balance(self) -> Any:
        """The same in the form common to all filters; by name where several were named.

        None in an answer of a service, which works it out where a budget is shown.
        """
        return self.remainder.balance

    @property
    def largest(self) -> Mechanism | None:
        """The query of this kind with the least noise that would be admitted then."""
        return self.remainder.largest


@dataclass(frozen=True)
class Answer(Outcome):
    """The answer of a check. Nothing was spent, and nothing is promised for later."""

    binding: str | None


@dataclass(frozen=True)
class DurableOutcome(Outcome):
    """A decision that is on record."""

    seq: int
    key: str
    replayed: bool
    head: str
    binding: str | None
    budgets: Mapping[str, tuple[int, str]]
    """For every budget that was charged or checked, the record's number and hash."""


@dataclass(frozen=True)
class Receipt(DurableOutcome):
    """A durable decision. An admitted one that is not `replayed` permits one run."""


@dataclass(frozen=True)
class Reservation(DurableOutcome):
    """A hold on budget for a mechanism that has not started; refused where not `admitted`."""

    id: str
    expires: str
    ledger: Ledger | None = field(repr=False, compare=False)
    """Which commits or cancels it; None where the caller does that."""

    def commit(self, key: str | None = None) -> Receipt:
        """Debit what is held. Only then, and only once, may the mechanism start."""
        return self._owner.commit(self.id, key)

    def cancel(self, reason: str = "cancelled") -> None:
        """Let the hold go: the mechanism was not started and never will be."""
        self._owner.cancel(self.id, reason)

    @property
    def _owner(self) -> Ledger:
        if self.ledger is None:
            raise ArgumentError(
                f"reservation {self.id!r} has no ledger: commit or cancel it by its id"
            )
        return self.ledger


@dataclass(frozen=True)
class Hold:
    """An open reservation, for the report of ages."""

    id: str
    budgets: tuple[str, ...]
    mechanism: str
    by: str
    made: str
    expires: str
    age: float
    """Seconds since it was made, by the database's time."""
    overdue: bool


R = TypeVar("R", bound=Outcome)


def with_remainder(receipt: R, remainder: Remainder) -> R:
    """The same with another account of what was left, and without the ledger that made it."""
    alone: dict[str, Any] = {"ledger": None} if isinstance(receipt, Reservation) else {}
    return dataclasses.replace(receipt, remainder=remainder, **alone)


def plain(value: Any, text: str | None = None) -> Any:
    """A remaining budget or a query as JSON data, and in words under `text`."""
    if value is None:
        return None
    if isinstance(value, Mechanism):
        return {**value.to_dict(), "text": text or describe(value)}
    if isinstance(value, Pld):
        return {**plain_pld(value), "text": text or describe(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out: dict[str, Any] = {"kind": _snake(type(value).__name__)}
        for each in dataclasses.fields(value):
            item = getattr(value, each.name)
            out[each.name] = plain(item) if isinstance(item, Pld) else item
        return {**out, "text": text or str(value)}
    return {"kind": type(value).__name__, "text": text or repr(value)}


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
