"""Requests to the committer, from the arguments of a caller, which are checked."""

from __future__ import annotations

from typing import Any

from residua import checks
from residua.ledger.domain import arguments
from residua.ledger.domain.described_query import describe_query
from residua.ledger.operations.spending import Cancel, Commit, Reserve, Spend
from residua.records import LONGEST_HOLD


def spend(
    principal: str, budgets: Any, query: Any, key: Any = None, assume_budget_relation: bool = False
) -> Spend:
    """A spend, its arguments checked."""
    return Spend(**_fields(principal, budgets, query, key, assume_budget_relation))


def reserve(
    principal: str,
    budgets: Any,
    query: Any,
    key: Any = None,
    ttl: float = 3600.0,
    assume_budget_relation: bool = False,
) -> Reserve:
    """A reservation, its arguments checked."""
    fields = _fields(principal, budgets, query, key, assume_budget_relation)
    seconds = checks.positive("ttl", ttl)
    checks.require(seconds <= LONGEST_HOLD, "ttl", "at most 7 days", ttl)
    return Reserve(**fields, ttl=seconds)


def _fields(principal: str, budgets: Any, query: Any, key: Any, assumed: bool) -> dict[str, Any]:
    """The fields that a spend and a reservation share."""
    names, one = arguments.names(budgets)
    checks.flag("assume_budget_relation", assumed)
    return {
        "principal": principal, "names": names, "one": one, "query": describe_query(query),
        "key": arguments.key(key), "fresh": key is None, "assumed": assumed,
    }  # fmt: skip


def commit(principal: str, hold: str, key: str | None = None) -> Commit:
    """A commit, its arguments checked."""
    held = arguments.label("hold", hold)
    return Commit(principal=principal, hold=held, key=arguments.key(key), fresh=key is None)


def cancel(principal: str, hold: str, reason: str) -> Cancel:
    """A cancellation, its arguments checked."""
    held = arguments.label("hold", hold)
    return Cancel(principal=principal, hold=held, reason=arguments.reason(reason))
