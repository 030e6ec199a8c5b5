"""What was asked of a budget, the newest first, with the reasons that were given."""

from __future__ import annotations

from typing import Any

from residuum.ledger.ledger import Ledger
from residuum.records import Record
from residuum.service.pages.told import told

AT_ONCE = 20
"""Records on one page."""

_SAID = {
    "create": "created",
    "hold": "reserved",
    "commit": "committed",
    "cancel": "cancelled",
    "expire": "expired",
    "refresh": "new window",
    "retire": "closed",
    "recover": "recovered",
}


def one_page(ledger: Ledger, name: str, last: int, back: int) -> dict[str, Any]:
    """So many pages back from the newest record."""
    newest = last - back * AT_ONCE
    oldest = max(0, newest - AT_ONCE + 1)
    found: tuple[Record, ...] = ()
    if newest >= 0:
        after = oldest - 1 if oldest > 0 else None
        found = ledger.history(name, after=after, limit=newest - oldest + 1)
    return {
        "entries": [entry(record) for record in reversed(found)],
        "newer": back - 1 if back > 0 else None,
        "older": back + 1 if oldest > 0 else None,
        "last": last,
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
        "query": told(body.get("mechanism")),
        "reason": reason,
        "key": body.get("key"),
    }
