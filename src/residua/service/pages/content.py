"""The parts of a budget's page: what is left of it, and its history, newest first.

Queries and filters are in the library's words, from the JSON that records keep.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from residua.errors import ResiduaError, TooExpensive
from residua.filters.balance import Balance, detail_words, percent, share_words
from residua.filters.codec import from_dict as filter_from_dict
from residua.filters.query import describe
from residua.ledger.api.ledger import Ledger
from residua.ledger.api.views import Budget
from residua.ledger.operations.early_decisions import QUICK_ANSWER
from residua.mechanisms.codec import from_dict
from residua.records import Record
from residua.service.api.routes.budgets import AT_ONCE as IN_STORE
from residua.service.api.routes.budgets import MOST_SEEN
from residua.service.api.values import BUDGET_FIELDS
from residua.work_limit import attempt

AT_ONCE = 20
"""Records on one page."""

_SAID = {
    "create": "created",
    "hold": "reserved",
    "commit": "committed",
    "cancel": "cancelled",
    "expire": "expired",
    "refresh": "new window",
    "retire": "retired",
    "recover": "written off",
    "resume": "recovered",
    "table": "table declared",
}


def one_page(ledger: Ledger, name: str, last: int, back: int) -> dict[str, Any]:
    """So many pages back from the newest record: `newer` and `older` say what to ask for next."""
    newest = last - back * AT_ONCE
    oldest = max(0, newest - AT_ONCE + 1)
    found: tuple[Record, ...] = ()
    if newest >= 0:
        after = oldest - 1 if oldest > 0 else None
        found = ledger.history(name, after=after, limit=newest - oldest + 1)
    return {
        "entries": [entry(record) for record in reversed(found)],
        "newer": f"page={back - 1}" if back > 0 else None,
        "older": f"page={back + 1}" if oldest > 0 else None,
        "refused": False,
    }


def refusals(ledger: Ledger, name: str, last: int, before: int | None) -> dict[str, Any]:
    """The newest refusals before a record; those of long ago are on the next page."""
    end = last + 1 if before is None else min(before, last + 1)
    start = end
    found: list[Record] = []
    while start > 0 and len(found) <= AT_ONCE and end - start < MOST_SEEN:
        stop, start = start, max(0, start - IN_STORE)
        after = start - 1 if start > 0 else None
        seen = ledger.history(name, after=after, limit=stop - start)
        found += [record for record in reversed(seen) if record.admitted is False]
    entries = found[:AT_ONCE]
    more = len(found) > AT_ONCE or start > 0
    following = entries[-1].seq if len(found) > AT_ONCE else start
    return {
        "entries": [entry(record) for record in entries],
        "newer": "only=refused" if before is not None and before <= last else None,
        "older": f"only=refused&before={following}" if more else None,
        "refused": True,
    }


def entry(record: Record) -> dict[str, Any]:
    """A record as a line of the history."""
    body = record.body
    outcome = {True: "admitted", False: "refused", None: ""}[body.get("admitted")]
    reason = str(body.get("reason") or "")
    return {
        "seq": record.seq,
        "time": str(body["time"]),
        "by": str(body["by"]),
        "type": record.type,
        "said": _SAID.get(record.type, outcome),
        "admitted": body.get("admitted"),
        "mechanism": body.get("mechanism"),
        "query": filter_words(body["filter"])
        if record.type == "create"
        else query_words(body.get("mechanism")),
        "reason": reason,
        "key": body.get("key"),
    }


def filter_words(filter: Mapping[str, Any]) -> str:
    """A filter as one would write it in Python; its JSON where that is all there is."""
    try:
        return repr(filter_from_dict(filter))
    except ResiduaError:
        return json.dumps(filter, sort_keys=True)[:400]


def query_words(mechanism: Mapping[str, Any] | str | None) -> str:
    """A query as one would write it in Python; its JSON where that is all there is."""
    if mechanism is None:
        return ""
    if isinstance(mechanism, str):
        mechanism = json.loads(mechanism)
        assert isinstance(mechanism, Mapping)
    try:
        return describe(from_dict(mechanism))
    except ResiduaError:
        return json.dumps(mechanism, sort_keys=True)[:400]


_QUICK = ("pure", "basic", "approximate_zcdp", "gdp", "gdp_residue")
"""Filters whose balance takes a few milliseconds: a list does not try the others."""


def row(budget: Budget) -> dict[str, Any]:
    """A budget for a list; without what is left, where that takes time to work out."""
    out: dict[str, Any] = {
        "name": budget.name,
        "filter": repr(budget.filter),
        **{name: getattr(budget, name) for name in BUDGET_FIELDS},
        "holds": len(budget.holds),
        "left": None,
    }
    alone = not budget.holds and budget.parent is None
    if budget.retired or (budget.filter.kind in _QUICK and alone):
        found = attempt("this", QUICK_ANSWER, lambda: left(budget, budget.balance))
        out["left"] = None if isinstance(found, TooExpensive) else found
    return out


def left(budget: Budget, balance: Balance | None) -> dict[str, Any]:
    """What is left, as a share and in words; `share` is None for a budget that is retired."""
    if balance is None:
        return {"share": None, "text": None, "capacity": budget.capacity_words}
    return {
        "share": balance.share,
        "percent": percent(balance.share),
        "percent_words": share_words(balance),
        "text": balance.text,
        "details": detail_words(balance.details),
    }
