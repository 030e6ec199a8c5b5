"""What a transaction has read and is about to write.

The gate reads everything that a batch of requests needs, lets each request decide on it in turn and
then writes once. A request changes the page only after it has decided, so one that fails leaves the
page as it was for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from residuum.errors import ReadOnlyLedger, RetiredBudget, UnknownBudget
from residuum.ledger import schema
from residuum.ledger.asked import Asked, from_text
from residuum.ledger.entry import Entry, from_row, to_row
from residuum.ledger.migrate import check_facts
from residuum.ledger.prepared import Prepared
from residuum.ledger.rules import Standing
from residuum.ledger.store import Store
from residuum.records import Record, record

_B, _R, _K, _H = schema.budgets, schema.records, schema.keys, schema.holds

_BUDGETS = (
    select(_B, _R.c.text)
    .join(_R, (_R.c.budget_id == _B.c.id) & (_R.c.seq == _B.c.head_seq))
    .where(_B.c.name.in_(bindparam("names", expanding=True)))
)
_BUDGET_ONE = Prepared(
    select(_B, _R.c.text)
    .join(_R, (_R.c.budget_id == _B.c.id) & (_R.c.seq == _B.c.head_seq))
    .where(_B.c.name == bindparam("name"))
)
_KEYS = select(_K).where(
    _K.c.principal == bindparam("who"), _K.c.key.in_(bindparam("which", expanding=True))
)
_KEY_ONE = Prepared(
    select(_K).where(_K.c.principal == bindparam("who"), _K.c.key == bindparam("which"))
)
_HOLDS = select(_H).where(_H.c.id.in_(bindparam("ids", expanding=True)))
_CHANGING = (
    "head_seq", "head_hash", "retired", "generation", "spent", "children", "holds", "window_ends",
)  # fmt: skip
_UPDATE = Prepared(
    update(_B)
    .where(_B.c.id == bindparam("of"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGING})
)
_RECORD = Prepared(insert(_R), *(column.name for column in _R.columns))
_KEY = Prepared(insert(_K), *(column.name for column in _K.columns))
_BUDGET, _HOLD = insert(_B), insert(_H)
_END_HOLD = (
    update(_H)
    .where(_H.c.id == bindparam("of"))
    .values(status=bindparam("new_status"), ended_by=bindparam("new_ended_by"))
)
_TABLE, _TABLES = insert(schema.tables), select(schema.tables.c.hash)


_AT_ONCE = 500


@dataclass
class HoldRow:
    """A reservation, open or ended."""

    id: str
    principal: str
    key: str
    members: tuple[str, ...]
    mechanism: str
    assumed: bool
    made: str
    expires: str
    status: str
    ended_by: str | None = None

    @property
    def asked(self) -> Asked:
        return from_text(self.mechanism)


@dataclass(frozen=True)
class KeyRow:
    """Where the decision on a key is recorded."""

    request: str
    budget: str
    seq: int
    held: str | None


class Page:
    """The working set of one transaction."""

    def __init__(self, connection: Connection, store: Store, ledger: str, incarnation: str):
        self.connection = connection
        self.store = store
        self.ledger = ledger
        self.incarnation = incarnation
        self.now = ""
        self.entries: dict[str, Entry] = {}
        self.keys: dict[tuple[str, str], KeyRow] = {}
        self.holds: dict[str, HoldRow] = {}
        self._records: list[tuple[Entry, Record]] = []
        self._changed: dict[str, Entry] = {}
        self._made: dict[str, Entry] = {}
        self._keys_made: list[dict[str, Any]] = []
        self._holds_made: list[HoldRow] = []
        self._holds_ended: list[HoldRow] = []
        self._tables: dict[str, bytes] = {}
        self.replayed: set[str] = set()
        """Budgets whose records are answered for again."""

    # -- reading ------------------------------------------------------------------------

    def look(self) -> None:
        """Read `meta` and the time. Raises where the ledger became another one."""
        rows = self.connection.exec_driver_sql(self.store.facts_and_time).all()
        facts = {row[0]: row[1] for row in rows}
        check_facts(self.store, facts)
        if (facts["ledger"], facts["incarnation"]) != (self.ledger, self.incarnation):
            raise ReadOnlyLedger(
                f"{self.store.place} was recovered or replaced since it was opened: open it again"
            )
        self.now = rows[0][2]

    def load(self, names: Iterable[str]) -> None:
        """Read budgets with everything above them, afresh."""
        wanted = set(names)
        while wanted:
            found = [from_row(row) for row in self._rows(sorted(wanted))]
            self.entries.update((each.name, each) for each in found)
            wanted = {each.parent for each in found if each.parent} - set(self.entries)
        ids = {id for entry in self.entries.values() for id in entry.holds}
        self.load_holds(ids)

    def _rows(self, names: Sequence[str]) -> Iterator[Any]:
        if len(names) == 1:
            yield from _BUDGET_ONE.run(self.connection, {"name": names[0]})
            return
        for start in range(0, len(names), _AT_ONCE):
            some = {"names": names[start : start + _AT_ONCE]}
            yield from self.connection.execute(_BUDGETS, some).all()

    def load_holds(self, ids: Iterable[str]) -> None:
        """Read reservations."""
        wanted = sorted(set(ids))
        if not wanted:
            return
        for row in self.connection.execute(_HOLDS, {"ids": wanted}):
            members = tuple(row.members.split("\n"))
            self.holds[row.id] = HoldRow(
                row.id, row.principal, row.key, members, row.mechanism, bool(row.assumed),
                row.made, row.expires, row.status, row.ended_by,
            )  # fmt: skip

    def load_keys(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Read what was decided under keys."""
        by: dict[str, set[str]] = {}
        for principal, key in wanted:
            by.setdefault(principal, set()).add(key)
        for principal, which in by.items():
            if len(which) == 1:
                rows = _KEY_ONE.run(self.connection, {"who": principal, "which": min(which)})
            else:
                asked = {"who": principal, "which": sorted(which)}
                rows = self.connection.execute(_KEYS, asked)
            for row in rows:
                self.keys[row.principal, row.key] = KeyRow(
                    row.request, row.budget, row.seq, row.held
                )

    def record_at(self, budget: str, seq: int) -> Record:
        """A stored record, or one that is about to be."""
        for entry, made in self._records:
            if entry.name == budget and made.seq == seq:
                return made
        found = self.connection.execute(
            select(_R.c.text)
            .join(_B, _B.c.id == _R.c.budget_id)
            .where(_B.c.name == budget, _R.c.seq == seq)
        ).scalar_one()
        return Record(found)

    def known_tables(self, hashes: Iterable[str]) -> set[str]:
        """Which tables are stored already."""
        wanted = sorted(set(hashes))
        rows = self.connection.execute(_TABLES.where(schema.tables.c.hash.in_(wanted)))
        return {row.hash for row in rows}

    # -- what requests ask --------------------------------------------------------------

    def entry(self, name: str) -> Entry:
        """A budget by its name."""
        try:
            return self.entries[name]
        except KeyError:
            raise UnknownBudget(f"there is no budget {name!r}") from None

    def children(self, name: str) -> Sequence[Any]:
        """What the store has of the budgets under this one."""
        c = _B.c
        columns = c.name, c.children, c.filter, c.generation, c.window_ends, c.retired
        return self.connection.execute(select(*columns).where(c.parent == name)).all()

    def line(self, name: str) -> list[Entry]:
        """A budget and the ancestors that a spend on it charges.

        A quota charges what is above it; a partition does not charge the whole it is a part of.
        """
        entry = self.entry(name)
        charged = [entry]
        while entry.parent is not None:
            above = self.entry(entry.parent)
            if entry.partition is None:
                charged.append(above)
            entry = above
        return charged

    def open_line(self, name: str) -> list[Entry]:
        """The same; raises where one of them is retired."""
        charged = self.line(name)
        for entry in charged:
            if entry.retired:
                raise RetiredBudget(f"budget {entry.name!r} is retired: nothing can be spent")
        return charged

    def standing(self, entry: Entry) -> Standing:
        """Where a budget stands."""
        held = tuple(self.holds[id].asked for id in entry.holds)
        return Standing(entry.filter, entry.state, held, entry.neighbouring)

    # -- what requests do ---------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """A new budget."""
        self.entries[entry.name] = entry
        self._made[entry.name] = entry

    def append(
        self, entry: Entry, type: str, by: str, fields: Mapping[str, Any], state_text: str
    ) -> Record:
        """Append a record to a chain; the committed state is `state_text` then."""
        made = record(
            type,
            {
                "ledger": self.ledger,
                "budget": entry.name,
                "seq": entry.head_seq + 1,
                "prev": entry.head_hash,
                "time": max(self.now, entry.time),
                "by": by,
            },
            fields,
        )
        self.adopt(entry, made, state_text)
        return made

    def adopt(self, entry: Entry, made: Record, state_text: str) -> None:
        """A record becomes the head of a chain."""
        entry.head_seq = made.seq
        entry.head_hash = made.hash
        entry.time = str(made.body["time"])
        entry.state_text = state_text
        self._records.append((entry, made))
        self._changed[entry.name] = entry

    def add_key(self, principal: str, key: str, row: KeyRow) -> None:
        """Say where the decision on a key is."""
        self.keys[principal, key] = row
        self._keys_made.append(
            {"principal": principal, "key": key, "request": row.request, "budget": row.budget,
             "seq": row.seq, "held": row.held}
        )  # fmt: skip

    def set_held(self, principal: str, key: str, held: str | None) -> None:
        """The holds that were open after the decision on a key that this page adds."""
        row = self._keys_made[-1]
        assert (row["principal"], row["key"]) == (principal, key)
        row["held"] = held
        self.keys[principal, key] = replace(self.keys[principal, key], held=held)

    def add_hold(self, row: HoldRow) -> None:
        """A new reservation, last in line with all its members."""
        self.new_hold(row)
        for name in row.members:
            entry = self.entries[name]
            entry.holds = (*entry.holds, row.id)

    def new_hold(self, row: HoldRow) -> None:
        """A row for a reservation."""
        self.holds[row.id] = row
        self._holds_made.append(row)

    def close_hold(self, row: HoldRow, status: str, ended_by: str | None) -> None:
        """The row of a reservation that is over."""
        row.status, row.ended_by = status, ended_by
        self._holds_ended.append(row)

    def end_hold(self, row: HoldRow, status: str, ended_by: str | None) -> None:
        """A reservation is over."""
        self.close_hold(row, status, ended_by)
        for name in row.members:
            entry = self.entries[name]
            entry.holds = tuple(id for id in entry.holds if id != row.id)
            self._changed[name] = entry

    def touch(self, entry: Entry) -> None:
        """An entry's row changed without a record of its own."""
        self._changed[entry.name] = entry

    def add_tables(self, made: Mapping[str, bytes]) -> None:
        """Contents that records name by their hash."""
        self._tables.update(made)

    # -- writing ------------------------------------------------------------------------

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._records)

    def heads(self) -> dict[str, tuple[int, str]]:
        """The heads to anchor: of chains that grew, and of those answered for again."""
        names = {*self._changed, *self.replayed}
        return {n: (self.entries[n].head_seq, self.entries[n].head_hash) for n in sorted(names)}

    def last(self) -> tuple[int, int, str]:
        """The last record, by which to find out whether a commit landed."""
        entry, made = self._records[-1]
        return entry.id, made.seq, made.hash

    def flush(self) -> None:
        """Write everything, in an order in which two processes cannot wait for each other."""
        run = self.connection.execute
        if self._tables:
            known = self.known_tables(self._tables)
            new = [{"hash": h, "content": c} for h, c in sorted(self._tables.items())]
            new = [row for row in new if row["hash"] not in known]
            if new:
                run(_TABLE, new)
        if self._made:
            run(_BUDGET, [to_row(each) for each in self._made.values()])
        old = [each for name, each in sorted(self._changed.items()) if name not in self._made]
        if old:
            _UPDATE.run(self.connection, [_update(each) for each in old])
        if self._records:
            rows = [_record_row(entry, made) for entry, made in self._records]
            _RECORD.run(self.connection, rows)
        if self._keys_made:
            made = sorted(self._keys_made, key=lambda row: (row["principal"], row["key"]))
            _KEY.run(self.connection, made)
        ended = [each for each in self._holds_ended if each not in self._holds_made]
        if self._holds_made:
            run(_HOLD, [_hold_row(each) for each in self._holds_made])
        if ended:
            run(_END_HOLD, [_hold_end(each) for each in ended])


def _update(entry: Entry) -> dict[str, Any]:
    row = to_row(entry)
    return {"of": entry.id, **{f"new_{name}": row[name] for name in _CHANGING}}


def _record_row(entry: Entry, made: Record) -> dict[str, Any]:
    return {"budget_id": entry.id, "seq": made.seq, "hash": made.hash, "text": made.text}


def _hold_row(row: HoldRow) -> dict[str, Any]:
    return {
        "id": row.id, "principal": row.principal, "key": row.key,
        "members": "\n".join(row.members), "mechanism": row.mechanism,
        "assumed": int(row.assumed), "made": row.made, "expires": row.expires,
        "status": row.status, "ended_by": row.ended_by,
    }  # fmt: skip


def _hold_end(row: HoldRow) -> dict[str, Any]:
    return {"of": row.id, "new_status": row.status, "new_ended_by": row.ended_by}


def names_of(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Their names."""
    return tuple(each.name for each in entries)
