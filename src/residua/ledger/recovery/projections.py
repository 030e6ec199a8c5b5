"""Rows from records: what `budgets`, `keys` and `holds` say follows from the chains alone.

Recovery re-applies lost records with it; a test rebuilds whole ledgers. Records of one request are
in several chains. The row of a budget follows its records, as when they were written; keys and
holds belong to the whole group, and are written once all chains are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from residua.errors import BrokenRecord
from residua.ledger.domain.budget_row import RETIRING
from residua.ledger.domain.described_query import DescribedQuery, from_text
from residua.ledger.operations.spending import committed_at
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.recovery.export_validation import is_reproduced, wrong
from residua.ledger.storage.rows import HoldRow, KeyRow
from residua.records import Record, canonical, state_after

_ASKED = ("spend", "commit", "hold")
_ENDED = {"commit": "committed", "cancel": "cancelled", "expire": "expired"}


class Derivation:
    """Records on their way into rows: `apply` them chain by chain, then `finish`."""

    def __init__(self, work: UnitOfWork):
        self.work = work
        self._held: dict[tuple[str, int], tuple[str, ...]] = {}
        """Open holds of a budget after each of its records that has a group."""
        self._asked: dict[tuple[str, str], Record] = {}
        self._made: dict[str, Record] = {}
        self._ended: dict[str, Record] = {}
        self._grouped: dict[tuple[str, int], Record] = {}
        self._closed: list[Record] = []
        """The records that retired budgets."""
        self._times: dict[str, str] = {}
        """When each hold was made, by the latest of its budgets."""
        self.doubted: dict[str, int] = {}
        """For each budget, the first record that this process decides differently."""

    def apply(self, record: Record, id: int) -> None:
        """Take over a record that is the next of its chain; a new budget gets the number `id`."""
        work, body = self.work, record.body
        if record.type == "create":
            parent = body["parent"]
            if parent is not None and parent not in work.entries:
                raise BrokenRecord(
                    f"the export of {record.budget!r} cannot be taken over without that of"
                    f" {parent!r}, which is above it and must come first"
                )
            entry = work.create(id, record.budget, body["time"], body)
        else:
            entry = work.entry(record.budget)
        held = {id: self._query(id) for id in entry.holds}
        if not is_reproduced(work, entry, record, held):
            self.doubted.setdefault(entry.name, record.seq)
        work.adopt(entry, record, canonical(state_after(record)))
        self._follow(record)
        if "group" in body:
            self._held[entry.name, record.seq] = entry.holds
            self._grouped[entry.name, record.seq] = record

    def _query(self, id: str) -> DescribedQuery:
        """The query of a hold, from the store or an applied record."""
        made = self._made.get(id)
        return self.work.holds[id].query if made is None else from_text(_mechanism(made))

    def _follow(self, record: Record) -> None:
        body, type = record.body, record.type
        admitted = body.get("admitted", True)
        if type in _ASKED:
            self._asked.setdefault((body["by"], body["key"]), record)
        if type == "hold" and admitted:
            id = body["hold"]
            self._made.setdefault(id, record)
            self._times[id] = max(body["time"], self._times.get(id, ""))
        elif type in _ENDED and admitted:
            # A recovery may have let it go where the record of its commit was lost.
            if type == "commit" or body["hold"] not in self._ended:
                self._ended[body["hold"]] = record
        elif type in RETIRING:
            self._closed.append(record)

    def missing(self) -> dict[str, str]:
        """Budgets that lack a record which the group of an applied one names, and which."""
        lacking: dict[str, str] = {}
        for record in self._grouped.values():
            for each in record.body["group"]:
                name, seq = each["budget"], each["seq"]
                entry = self.work.entries.get(name)
                if entry is None or entry.head_seq < seq:
                    lacking[name] = (
                        f"record {seq} was written together with records of other budgets"
                    )
        for record in self._closed:
            for name, seq in record.body["below"].items():
                entry = self.work.entries.get(name)
                if entry is None or entry.head_seq < seq:
                    above = record.budget
                    lacking[name] = f"record {seq} was written before {above!r} was retired"
        return lacking

    def _check_below(self) -> None:
        """Raise where a retirement does not name all budgets under it."""
        for record in self._closed:
            for name in self.work.heads_below(record.budget):
                if name not in record.body["below"]:
                    raise wrong(record, f"below must name {name!r}, which is under it")

    def finish(self) -> None:
        """Write holds and keys, as far as the store has none of that name."""
        work = self.work
        self._check_below()
        for id, record in self._made.items():
            if id not in work.holds:
                work.new_hold(self._hold(id, record))
        for id, record in self._ended.items():
            row = work.holds.get(id)
            if row is None:
                raise BrokenRecord(f"the export ends the reservation {id!r}, which does not exist")
            if row.status == "open":
                by = committed_at(dict(self._left(record)), self._open_after(record))
                work.close_hold(row, _ENDED[record.type], by if record.type == "commit" else None)
        for who, record in self._asked.items():
            if who not in work.keys:
                place = next(self._left(record))
                row_ = KeyRow(record.body["request"], *place, self._open_after(record))
                work.add_key(*who, row_)

    def _left(self, record: Record) -> Iterator[tuple[str, int]]:
        """Where the records of a group are that were not lost."""
        for each in record.body["group"]:
            name, seq = each["budget"], each["seq"]
            entry, other = self.work.entries.get(name), self._grouped.get((name, seq), record)
            lost = entry is None or entry.head_seq < seq
            if not lost and other.body["group"] == record.body["group"]:
                yield name, seq

    def _hold(self, id: str, record: Record) -> HoldRow:
        body = record.body
        return HoldRow(
            id, body["by"], body["key"], _members(record), _mechanism(record),
            body["assumed"], self._times[id], body["expires"], "open",
        )  # fmt: skip

    def _open_after(self, record: Record) -> str | None:
        """The holds that were open in the budgets of a group after it, as `held_now` writes it."""
        places = ((each["budget"], each["seq"]) for each in record.body["group"])
        held = {place[0]: list(ids) for place in places if (ids := self._held.get(place, ()))}
        return canonical(held) if held else None


def _mechanism(record: Record) -> str:
    return canonical(record.body["mechanism"])


def _members(record: Record) -> tuple[str, ...]:
    return tuple(each["budget"] for each in record.body["group"])
