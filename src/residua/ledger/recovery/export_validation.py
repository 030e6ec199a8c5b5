"""Whether records are what a gate would have written, before they are taken over from an export.

Hashes show that an export is whole, not that a ledger wrote it: whoever has the last record can add
others to it. So every state must follow from the one before it. It moves by what was admitted, to
where the filter decides; it begins anew with a window that was due; and nothing is asked of a
budget that is closed.
"""

from __future__ import annotations

from typing import Any

from residua.errors import BrokenRecord, ResiduaError
from residua.ledger.domain import clock, rules
from residua.ledger.domain.budget_row import Entry
from residua.ledger.domain.described_query import from_text
from residua.records import Record, canonical, state_after

_ASKED = ("spend", "commit", "hold")


def retraced(entry: Entry, record: Record) -> bool:
    """Whether this process decides as the next record of a budget says; raises if nobody could.

    Where decisions rest on rounded numbers, another machine may have decided otherwise, and then
    it takes a proof.
    """
    body, type = record.body, record.type
    moves = type in ("spend", "commit") and body["admitted"] is True
    if type == "create":
        return canonical(body["state"]) == _first(entry)
    if entry.retired and type in (*_ASKED, "refresh"):
        raise _wrong(record, f"a {type} follows, and the budget is retired")
    if type == "refresh":
        due = entry.window is not None and clock.is_over(entry.window_ends, body["time"])
        if not due or body["generation"] != entry.generation + 1:
            raise _wrong(record, "a new window begins that was not due")
        return canonical(body["state"]) == _first(entry)
    if canonical(body["before"]) != entry.state_text:
        raise _wrong(record, "the state before is not what the records so far leave")
    if not moves and body["before"] != body["after"]:
        raise _wrong(record, f"a {type} moves the committed state")
    if type == "commit" and body["hold"] not in entry.holds:
        raise _wrong(record, f"a commit of {body['hold']!r}, which is not held")
    return not moves or _decided(entry, body) == canonical(state_after(record))


def _first(entry: Entry) -> str:
    return entry.filter.state_to_json(entry.filter.initial())


def _decided(entry: Entry, body: Any) -> str | None:
    """The state that follows what was asked; None where it is refused."""
    asked = from_text(canonical(body["mechanism"]))
    if asked.contradicts(entry.relation, entry.unit) is not None:
        return None
    try:
        decision = rules.decided(entry.filter, entry.state, asked.query, entry.relation)
    except ResiduaError:
        return None
    return entry.moved(decision.state) if decision.admitted else None


def _wrong(record: Record, what: str) -> BrokenRecord:
    return BrokenRecord(f"the export of {record.budget!r} at number {record.seq}: {what}")
