"""Check that a ledger would have written these records, before importing them from an export.

Hashes show that an export is whole, not that a ledger wrote it: anyone with the last record can add
others to it. So every state must follow from the one before it. It moves by what was admitted, to
where the filter decides; it starts again with a window that was due; the open holds are stated as
they follow it; and nothing is asked of a budget that is closed. What concerns several chains is
left to the verifier (`recover.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from residua.errors import ResiduaError
from residua.ledger.domain import clock, rules
from residua.ledger.domain.budget_row import Entry, state_of
from residua.ledger.domain.described_query import Asked, from_text
from residua.ledger.domain.rules import Standing
from residua.ledger.domain.set_aside import Held, SetAside, set_aside_in
from residua.ledger.operations.requests import stated_holds, tables_of
from residua.ledger.operations.unit_of_work import Page
from residua.ledger.recovery.export_fields import wrong
from residua.records import Record, canonical, state_after

_ASKED = ("spend", "commit", "hold")


def retraced(page: Page, entry: Entry, record: Record, held: Mapping[str, Asked]) -> bool:
    """Whether this process decides as the next record says; raises if no process could.

    `held` has the queries of the open holds, in the order in which they were made. Where decisions
    rest on rounded numbers, another machine may have decided otherwise, and then it takes a proof.
    """
    body, type = record.body, record.type
    moves = type in ("spend", "commit") and body["admitted"]
    if entry.retired:
        raise wrong(record, f"a {type} follows, and the budget is retired")
    if type == "create":
        return canonical(body["state"]) == _first(entry) and _has_tables(page, entry, record)
    if type == "refresh":
        due = entry.window is not None and clock.is_over(entry.window_ends, body["time"])
        if not due or body["generation"] != entry.generation + 1:
            raise wrong(record, "a new window begins that was not due")
        if entry.holds:
            raise wrong(record, f"a new window begins while {len(entry.holds)} holds are open")
        return canonical(body["state"]) == _first(entry) and _has_tables(page, entry, record)
    if canonical(body["before"]) != entry.state_text:
        raise wrong(record, "the state before is not what the records so far leave")
    if not moves and body["before"] != body["after"]:
        raise wrong(record, f"a {type} moves the committed state")
    if type in ("commit", "cancel", "expire") and body["hold"] not in entry.holds:
        raise wrong(record, f"a {type} of {body['hold']!r}, which is not held")
    if type == "hold" and body["hold"] in entry.holds:
        raise wrong(record, f"a hold {body['hold']!r}, which is held already")
    if type not in _ASKED:
        return True
    same = not moves or _decided(entry, body) == canonical(state_after(record))
    return _states_holds(page, entry, record, held) and same and _has_tables(page, entry, record)


def _has_tables(page: Page, entry: Entry, record: Record) -> bool:
    """Whether a record names the tables of the state that it leads to."""
    body = record.body
    if body.get("before") == state_after(record):
        if body["tables"] != {}:
            raise wrong(record, "tables are named, and the committed state does not move")
        return True
    return canonical(body["tables"]) == _text(
        tables_of(page, entry, canonical(state_after(record)))
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)


def _states_holds(page: Page, entry: Entry, record: Record, held: Mapping[str, Asked]) -> bool:
    """Whether a record states what follows with the open holds as it follows here."""
    body = record.body
    open_: list[Asked] = [each for id, each in held.items() if id != body.get("hold")]
    if record.type == "hold":
        open_.append(from_text(canonical(body["mechanism"])))
    most = len(open_) if body["admitted"] else 0
    least = int(most > 0 and record.type == "hold")
    stated = len(body["holds"])
    if not least <= stated <= most:
        raise wrong(record, f"holds must have {least} to {most} states of open holds, got {stated}")
    if not body["admitted"]:
        return True
    ends = record.type == "commit" and body["hold"]
    stays: tuple[Any, ...] = entry.held
    if ends in entry.holds:
        at = entry.holds.index(ends)
        stays = stays[:at] + stays[at + 1 :]
    stays = stays[: most - stated]
    needed = _worked_out(entry, body, open_, stays)
    entry.held = needed or ()
    if needed is None or needed[: most - stated] != stays:
        return False
    text = canonical(body["after"])
    return canonical(body["holds"]) == stated_holds(page, entry, text, needed[most - stated :])


def _worked_out(
    entry: Entry, body: Any, open_: Sequence[Asked], stays: tuple[Any, ...]
) -> Held | None:
    """What each open hold needs, in the way that the record says; None where one is refused here.

    `stays` is what was stated before of those that this record does not mention.
    """
    try:
        state = state_of(entry.filter_text, canonical(body["after"]))
        standing = Standing(entry.filter, state, tuple(open_), entry.relation, entry.unit)
        place = _component(body["holds"], stays)
        if place is None:
            return rules.fold(standing, state, open_)
        for part in entry.filter.additive_parts(state):
            if part.place == place[0]:
                return set_aside_in(part, open_, entry.relation)
    except ResiduaError:
        pass
    return None


def _component(stated: Sequence[Any], stays: tuple[Any, ...]) -> tuple[int | None] | None:
    """The place of the component in which amounts are set aside; None where states are stated."""
    if stated:
        return (stated[0].get("component"),) if "takes" in stated[0] else None
    return (stays[0].place,) if stays and isinstance(stays[0], SetAside) else None


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
