"""Calls as values, so that a caller can run several of them in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from residua import checks
from residua.errors import ArgumentTypeError
from residua.ledger.domain import arguments
from residua.ledger.domain.described_query import asked
from residua.ledger.domain.receipts import Reservation, reservation_of
from residua.ledger.operations.holding import Cancel, Commit, Reserve
from residua.ledger.operations.requests import Done, Request
from residua.ledger.operations.spending import Spend
from residua.records import LONGEST_HOLD

if TYPE_CHECKING:
    from residua.ledger.api.ledger import Ledger


@dataclass(frozen=True)
class Call:
    """A verb of the ledger (`spend`, `reserve`, `commit`, `cancel`) with its arguments."""

    verb: str
    arguments: Mapping[str, Any]
    principal: str | None = None
    """For whom, where not for the principal of the ledger."""


def spend(
    principal: str,
    budgets: Any,
    query: Any,
    key: str | None = None,
    assume_budget_relation: bool = False,
) -> Spend:
    """A spend, its arguments checked."""
    names, one = arguments.names(budgets)
    assumed = checks.flag("assume_budget_relation", assume_budget_relation)
    return Spend(principal, names, one, asked(query), arguments.key(key), assumed, key is None)


def reserve(
    principal: str,
    budgets: Any,
    query: Any,
    key: str | None = None,
    ttl: float = 3600.0,
    assume_budget_relation: bool = False,
) -> Reserve:
    """A reservation, its arguments checked."""
    names, one = arguments.names(budgets)
    assumed = checks.flag("assume_budget_relation", assume_budget_relation)
    seconds = checks.positive("ttl", ttl)
    checks.require(seconds <= LONGEST_HOLD, "ttl", "at most 7 days", ttl)
    under = arguments.key(key)
    return Reserve(principal, names, one, asked(query), under, assumed, key is None, seconds)


def commit(principal: str, hold: str, key: str | None = None) -> Commit:
    """A commit, its arguments checked."""
    under = None if key is None else arguments.key(key)
    return Commit(principal, arguments.label("hold", hold), under)


def cancel(principal: str, hold: str, reason: str) -> Cancel:
    """A cancellation, its arguments checked."""
    return Cancel(principal, arguments.label("hold", hold), arguments.reason(reason))


_VERBS: dict[str, Callable[..., Request]] = {
    "spend": spend,
    "reserve": reserve,
    "commit": commit,
    "cancel": cancel,
}


def request_of(call: Call, principal: str) -> Request:
    """The request to the committer that a call makes."""
    verb = checks.one_of("verb", call.verb, tuple(_VERBS))
    who = principal if call.principal is None else arguments.label("principal", call.principal)
    try:
        return _VERBS[verb](who, **call.arguments)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise ArgumentTypeError(f"arguments of {verb}: {error}") from None


def answer(ledger: Ledger, done: Any) -> Any:
    """The answer that the caller of a method gets."""
    if not isinstance(done, Done):
        return done
    return _reservation(ledger, done) if done.record.type == "hold" else done.receipt


def _reservation(ledger: Ledger, done: Done) -> Reservation:
    record = done.record
    return reservation_of(
        done.standings,
        ledger,
        id=record.body["hold"],
        admitted=record.admitted is True,
        reason=str(record.reason),
        expires=record.body["expires"],
        seq=record.seq,
        key=str(record.key),
        replayed=done.replayed,
        head=record.hash,
        binding=record.binding,
        budgets=done.budgets,
    )
