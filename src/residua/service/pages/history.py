"""The history of a budget, newest first, with the reasons that were given."""

from __future__ import annotations

from typing import Any

from residua.ledger.api.ledger import Ledger
from residua.records import Record
from residua.service.pages.labels import filter_told, told

AT_ONCE = 20
"""Records on one page."""
IN_STORE = 500
"""Records read from the store at once, where only refusals are wanted."""
MOST_SEEN = 20_000
"""Records looked at for one page of refusals."""

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
        "query": filter_told(body["filter"])
        if record.type == "create"
        else told(body.get("mechanism")),
        "reason": reason,
        "key": body.get("key"),
    }
