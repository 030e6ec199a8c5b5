"""After a restored backup: re-apply what was exported, or retire what may have lost spends.

A store behind its anchor has lost spends that were acknowledged, and what they cost cannot be known
from it. Records of an export that continue a chain are taken over as they are, with their keys and
holds. A budget that is still behind then is retired, as fully spent, by a `recover` record; one
that the store does not even know gets a chain that says so, so that its name cannot be used again.
Then the ledger is a new incarnation with a new anchor.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update

from residuum.errors import BrokenRecord, LedgerError, ReadOnlyLedger
from residuum.filters.pure import PureFilter
from residuum.ledger import schema
from residuum.ledger.anchor import Anchored
from residuum.ledger.derive import apply
from residuum.ledger.entry import new_entry
from residuum.ledger.export import Exported, read_export
from residuum.ledger.gate import Gate
from residuum.ledger.holding import let_go
from residuum.ledger.page import Page
from residuum.ledger.requests import LEDGER
from residuum.records import Record, follows
from residuum.version import __version__

_B, _R = schema.budgets, schema.records


@dataclass(frozen=True)
class Recovered:
    """What a recovery did."""

    applied: int
    """Records that were taken over."""
    retired: tuple[str, ...]
    """Budgets that were retired as fully spent."""


def recover(gate: Gate, by: str, export: Any = None, retire: bool = False) -> Recovered:
    """Make a ledger that lost spends writable again; what was done."""
    if gate.anchor is None:
        raise LedgerError("a ledger that was opened without an anchor cannot be recovered")
    try:
        said = gate.anchor.read()
    except BrokenRecord:
        said = None
    given = None if export is None else read_export(export)
    with gate.store.writing() as connection:
        page = Page(connection, gate.store, gate.ledger, gate.incarnation)
        gate.store.lock_schema(connection)
        names = connection.execute(select(_B.c.name).order_by(_B.c.name)).scalars().all()
        page.open(names, lock=True)
        applied = 0 if given is None else _reapply(page, gate.ledger, given)
        lost = _lost(page, said, given)
        if lost and not retire:
            shown = "; ".join(f"{name!r}: {why}" for name, why in list(lost.items())[:3])
            raise ReadOnlyLedger(
                f"{len(lost)} budgets may still lack spends ({shown}): give an export that has"
                " them, or retire these budgets as fully spent"
            )
        for name, why in lost.items():
            _retire(page, name, why, by)
        incarnation = uuid.uuid4().hex
        connection.execute(
            update(schema.meta).where(schema.meta.c.name == "incarnation").values(value=incarnation)
        )
        page.flush()
        gate.store.commit(connection, lambda _: False)
    heads = {name: (entry.head_seq, entry.head_hash) for name, entry in page.entries.items()}
    gate.anchor.start(Anchored(gate.ledger, incarnation, heads))
    gate.incarnation, gate.anchored, gate.closed = incarnation, heads, None
    gate.others.clear()
    return Recovered(applied, tuple(lost))


def _reapply(page: Page, ledger: str, given: Exported) -> int:
    applied = 0
    top = max((entry.id for entry in page.entries.values()), default=0)
    for name, records in given.chains.items():
        _check(ledger, name, records)
        known = page.entries.get(name)
        seq = -1 if known is None else known.head_seq
        if known is not None and seq < len(records) and records[seq].hash != known.head_hash:
            raise BrokenRecord(f"the export of {name!r} is not the store's chain at number {seq}")
        wanted = [(r.body["by"], r.key) for r in records[seq + 1 :] if r.key is not None]
        page.load_keys(wanted)
        page.load_holds(r.body["hold"] for r in records[seq + 1 :] if "hold" in r.body)
        for record in records[seq + 1 :]:
            top += record.type == "create"
            apply(page, record, top)
            applied += 1
    page.add_tables(given.tables)
    return applied


def _check(ledger: str, name: str, records: Sequence[Record]) -> None:
    before: Record | None = None
    for record in records:
        wrong = follows(before, record)
        if wrong is not None:
            raise BrokenRecord(f"the export of {name!r} at number {record.seq}: {wrong}")
        if record.body["ledger"] != ledger:
            raise BrokenRecord(f"the export is of another ledger, {record.body['ledger']}")
        before = record


def _lost(page: Page, said: Anchored | None, given: Exported | None) -> dict[str, str]:
    """The budgets that may still lack spends, unless they were retired for it before."""
    lost: dict[str, str] = {}
    if said is None or said.ledger != page.ledger:
        for name, entry in page.entries.items():
            records = [] if given is None else given.chains.get(name, [])
            if len(records) <= entry.head_seq:
                lost[name] = f"without an anchor nobody knows what came after {entry.head_seq}"
    else:
        for name, (seq, head) in said.marks.items():
            entry_ = page.entries.get(name)
            if entry_ is None:
                lost[name] = f"number {seq} was acknowledged, and nothing of it is left"
            elif entry_.head_seq < seq:
                lost[name] = f"number {seq} was acknowledged, the store ended with its predecessors"
            elif page.record_at(name, seq).hash != head:
                lost[name] = f"number {seq} was acknowledged as {head[:12]}…, and is another one"
    return {name: why for name, why in lost.items() if not _given_up(page, name)}


def _given_up(page: Page, name: str) -> bool:
    entry = page.entries.get(name)
    if entry is None or not entry.retired:
        return False
    return page.record_at(name, entry.head_seq).type in ("recover", "retire")


def _retire(page: Page, name: str, why: str, by: str) -> None:
    if name not in page.entries:
        _gravestone(page, name, by)
    entry = page.entries[name]
    for id in entry.holds:
        row = page.holds[id]
        row.members = tuple(member for member in row.members if member in page.entries)
        members = [page.entries[member] for member in row.members]
        let_go(page, row, members, "expire", LEDGER, f"budget {name!r} is retired")
    entry.retired = True
    state = entry.plain_state
    fields: Mapping[str, Any] = {
        "reason": f"fully spent: {why}",
        "before": state,
        "after": state,
    }
    page.append(entry, "recover", by, fields, entry.state_text)


def _gravestone(page: Page, name: str, by: str) -> None:
    """A chain for a budget of which only the name is known."""
    nothing = PureFilter(0.0)
    fields = {
        "filter": nothing.to_dict(),
        "library": __version__,
        "neighbouring": "add-remove",
        "unit": "person",
        "data": None,
        "parent": None,
        "partition": None,
        "window": None,
        "shares_data": False,
        "tables": {},
        "state": json.loads(nothing.state_to_json(nothing.initial())),
    }
    top = max((entry.id for entry in page.entries.values()), default=0)
    entry = new_entry(top + 1, name, page.now, fields)
    page.add(entry)
    page.append(entry, "create", by, fields, entry.state_text)
