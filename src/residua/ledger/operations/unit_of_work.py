"""The unit of work: what a transaction has read and is about to write.

The committer reads everything that a batch of requests needs, lets each request decide on it in
turn and then writes once. A request changes the unit of work only after it has decided, so a
request that fails leaves it unchanged for the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, or_, select

from residua.errors import (
    BrokenRecord,
    ReadOnlyLedger,
    ResiduaError,
    RetiredBudget,
    UnknownBudget,
)
from residua.filters.query import Query
from residua.ledger.domain.budget_row import BudgetRow, new_entry, to_row
from residua.ledger.domain.described_query import from_text
from residua.ledger.domain.rules import BudgetDecision, BudgetSnapshot
from residua.ledger.domain.set_aside import Held
from residua.ledger.operations.early_decisions import EarlyDecisions
from residua.ledger.storage import rows, schema
from residua.ledger.storage.rows import HoldRow, KeyRow, Prepared, Question, listed
from residua.ledger.storage.schema import check_facts
from residua.ledger.storage.store import Store
from residua.records import Record, canonical, read, record

_B, _R = schema.budgets, schema.records
_AT_ONCE = 500
"""Names in one query: databases limit the parameters of a statement."""
_DIVIDED = "partitions"
"""The `children` of a budget whose children are partitions."""
_MOVING = ("spend", "commit")
"""Records that move a budget's state where they are admitted."""

HeldStates = Mapping[str, tuple[str, Held]]
"""By budget: the hash of a head, and `BudgetRow.held` as of then."""


class UnitOfWork:
    """The working set of one transaction."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        ledger: str,
        incarnation: str,
        held: HeldStates = MappingProxyType({}),
        early: EarlyDecisions | None = None,
    ):
        """`held` has what is known to be needed for open holds."""
        self.connection = connection
        self._held = held
        self._early = EarlyDecisions() if early is None else early
        self.within: int | None = None
        """Operations that the next decision may take; None: as many as it needs."""
        self.store = store
        self.ledger = ledger
        self.incarnation = incarnation
        self.now = ""
        self.entries: dict[str, BudgetRow] = {}
        self.keys: dict[tuple[str, str], KeyRow] = {}
        self.holds: dict[str, HoldRow] = {}
        self._records: list[tuple[BudgetRow, Record]] = []
        self._changed: dict[str, BudgetRow] = {}
        self._made: dict[str, BudgetRow] = {}
        self._keys_made: list[dict[str, Any]] = []
        self._holds_made: list[HoldRow] = []
        self._holds_ended: list[HoldRow] = []
        self._tables: dict[str, bytes] = {}
        self._partitions: dict[str, list[Any]] = {}
        self.replayed: set[str] = set()
        """Budgets whose records are answered for again."""

    # -- reading ------------------------------------------------------------------------

    def open(
        self,
        names: Iterable[str],
        keys: Iterable[tuple[str, str]] = (),
        lock: bool = False,
    ) -> None:
        """Read `meta`, the time, budgets with everything above them, and what keys decided.

        With a lock it is what they are once nobody else writes to these budgets. Raises where the
        ledger became another one.
        """
        wanted, wanted_keys = sorted(set(names)), set(keys)
        questions: list[Question] = self.store.locking(wanted) if lock else []
        first = len(questions)
        questions.append((self.store.facts_and_time, {}))
        if wanted:
            questions.append((rows.BUDGETS, {"names": listed(wanted)}))
        if wanted_keys:
            questions.append(_keys(wanted_keys))
        facts, *found = self.store.ask(self.connection, questions)[first:]
        self._look(facts)
        if wanted_keys:
            self._take_keys(found.pop(), wanted_keys)
        if wanted:
            self._take(found.pop())

    def _look(self, found: Sequence[tuple[Any, ...]]) -> None:
        facts = {name: value for name, value, _ in found}
        check_facts(self.store.place, facts)
        if (facts["ledger"], facts["incarnation"]) != (self.ledger, self.incarnation):
            raise ReadOnlyLedger(
                f"{self.store.place} was recovered or replaced since it was opened: open it again"
            )
        self.now = found[0][2]

    def load(self, names: Iterable[str]) -> None:
        """Read more budgets with everything above them, afresh."""
        wanted = sorted(set(names))
        if wanted:
            question = (rows.BUDGETS, {"names": listed(wanted)})
            self._take(self.store.ask(self.connection, [question])[0])

    def _take(self, found: Sequence[tuple[Any, ...]]) -> None:
        with readable("budgets"):
            entries = [rows.entry_of(row) for row in found]
        for each in entries:
            head, states = self._held.get(each.name, ("", ()))
            if head == each.head_hash:
                each.held = states
        self.entries.update((each.name, each) for each in entries)
        above = {each.parent for each in entries if each.parent} - set(self.entries)
        if above:
            self.load(above)
            return
        held = {id for entry in self.entries.values() for id in entry.holds}
        self.load_holds(held)
        if not held <= self.holds.keys():
            raise BrokenRecord("an open reservation is missing in the store")

    def load_holds(self, ids: Iterable[str]) -> None:
        """Read reservations."""
        wanted = sorted(set(ids))
        if wanted:
            question = (rows.HOLDS, {"ids": listed(wanted)})
            found = self.store.ask(self.connection, [question])[0]
            with readable("holds"):
                self.holds.update((row[0], rows.hold_of(row)) for row in found)

    def load_keys(self, keys: Iterable[tuple[str, str]]) -> None:
        """Read what was decided under keys."""
        wanted = set(keys)
        if wanted:
            self._take_keys(self.store.ask(self.connection, [_keys(wanted)])[0], wanted)

    def _take_keys(
        self, found: Sequence[tuple[Any, ...]], wanted: Collection[tuple[str, str]]
    ) -> None:
        with readable("keys"):
            for principal, key, request, budget, seq, held in found:
                if (principal, key) in wanted:
                    self.keys[principal, key] = KeyRow(request, budget, int(seq), held)

    def load_partitions(self, names: Iterable[str]) -> None:
        """Read the partitions of budgets, and theirs."""
        c = _B.c
        columns = c.name, c.parent, c.children, c.filter, c.generation, c.window_ends, c.retired
        divided = [n for n in names if n in self.entries and self.entries[n].children == _DIVIDED]
        while divided:
            some, divided = set(divided[:_AT_ONCE]), divided[_AT_ONCE:]
            self._partitions.update((name, []) for name in some)
            for row in self.connection.execute(select(*columns).where(c.parent.in_(some))):
                self._partitions[row.parent].append(row)
                if row.children == _DIVIDED and row.name not in self._partitions:
                    divided.append(row.name)

    def last_query(self, name: str, head: int) -> Callable[[], Query | None]:
        """A function that reads the last query that a budget admitted up to a record, if any."""
        store, id = self.store, self.entry(name).id
        return lambda: _last_query(store, id, head)

    def record_at(self, budget: str, seq: int) -> Record:
        """A stored record, or one that is about to be."""
        for entry, made in self._records:
            if entry.name == budget and made.seq == seq:
                return made
        found = self.connection.execute(
            select(_R.c.text)
            .join(_B, _B.c.id == _R.c.budget_id)
            .where(_B.c.name == budget, _R.c.seq == seq)
        ).scalar()
        if found is None:
            raise BrokenRecord(f"record {budget!r} {seq} is missing in the store")
        return read(found)

    # -- what requests ask --------------------------------------------------------------

    def entry(self, name: str) -> BudgetRow:
        """A budget by its name."""
        try:
            return self.entries[name]
        except KeyError:
            raise UnknownBudget(f"there is no budget {name!r}") from None

    def partitions(self, name: str) -> Sequence[Any]:
        """The partitions of a budget in the store, after `load_partitions`."""
        return self._partitions.get(name, ())

    def heads_below(self, name: str) -> dict[str, int]:
        """The number of the last record of every budget under this one, however deep.

        A writer to one of them locks everything above it, so they do not change while this
        budget is locked.
        """
        found: dict[str, int] = {}
        parents = [name]
        while parents:
            some = set(parents[:_AT_ONCE])
            query = select(_B.c.name, _B.c.head_seq).where(_B.c.parent.in_(some))
            heads = {row.name: int(row.head_seq) for row in self.connection.execute(query)}
            made = (each for each in self.entries.values() if each.parent in some)
            heads.update((each.name, each.head_seq) for each in made)
            parents = [*parents[_AT_ONCE:], *(each for each in heads if each not in found)]
            found.update(heads)
        return found

    def upward(self, name: str) -> Iterator[BudgetRow]:
        """A budget and everything above it."""
        entry = self.entry(name)
        yield entry
        for _ in self.entries:
            if entry.parent is None:
                return
            entry = self.entry(entry.parent)
            yield entry
        raise BrokenRecord(f"budget {name!r} is its own ancestor in the store")

    def line(self, name: str) -> list[BudgetRow]:
        """A budget and the ancestors that a spend on it charges.

        A quota charges what is above it; a partition does not charge the whole it is a part of.
        """
        own, *above = self.upward(name)
        below = [own, *above]
        charged = (each for each, part in zip(above, below, strict=False) if part.partition is None)
        return [own, *charged]

    def cap(self, name: str) -> BudgetRow:
        """The budget whose capacity is a guarantee for what this one spends."""
        return next(
            each for each in self.upward(name) if each.parent is None or each.partition is not None
        )

    def closed_by(self, name: str) -> BudgetRow | None:
        """Why a budget is closed, or None: it, or an ancestor, is retired.

        A whole closes its partitions, though they do not charge it.
        """
        return next((each for each in self.upward(name) if each.retired), None)

    def open_line(self, name: str) -> list[BudgetRow]:
        """The budgets that a spend charges; raises where the budget is closed."""
        closed = self.closed_by(name)
        if closed is not None:
            raise RetiredBudget(f"budget {closed.name!r} is retired: nothing can be spent")
        return self.line(name)

    def snapshot(self, entry: BudgetRow) -> BudgetSnapshot:
        """The snapshot of a budget."""
        holds = tuple([self.holds[id].query for id in entry.holds]) if entry.holds else ()
        return BudgetSnapshot(
            entry.filter, entry.state, holds, entry.relation, entry.unit, entry.held
        )

    def rule(
        self, judge: Callable[..., dict[str, BudgetDecision]], *arguments: Any
    ) -> dict[str, BudgetDecision]:
        """What `judge` rules; raises `Slow` where that takes too long."""
        return self._early.find(self.within, judge, *arguments)

    # -- what requests do ---------------------------------------------------------------

    def create(self, id: int, name: str, time: str, fields: Mapping[str, Any]) -> BudgetRow:
        """A new budget, from the fields of its first record."""
        entry = new_entry(id, name, time, fields)
        self.entries[name] = self._made[name] = entry
        if entry.parent is not None:
            parent = self.entry(entry.parent)
            parent.children = "quotas" if entry.partition is None else _DIVIDED
            self._changed[parent.name] = parent
        return entry

    def append(
        self, entry: BudgetRow, type: str, by: str, fields: Mapping[str, Any], state_text: str
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

    def adopt(self, entry: BudgetRow, made: Record, state_text: str) -> None:
        """Make a record the head of a chain."""
        entry.follow(made, state_text)
        self._records.append((entry, made))
        self._changed[entry.name] = entry

    def add_key(self, principal: str, key: str, row: KeyRow) -> None:
        """Add the place of the decision on a key."""
        self.keys[principal, key] = row
        self._keys_made.append({"principal": principal, "key": key, **asdict(row)})

    def new_hold(self, row: HoldRow) -> None:
        """A row for a reservation."""
        self.holds[row.id] = row
        self._holds_made.append(row)

    def close_hold(self, row: HoldRow, status: str, ended_by: str | None) -> None:
        """The row of a reservation that is over."""
        row.status, row.ended_by = status, ended_by
        self._holds_ended.append(row)

    def add_tables(self, made: Mapping[str, bytes]) -> None:
        """Contents that records name by their hash."""
        self._tables.update(made)

    def table(self, hash: str) -> bytes | None:
        """The content of a table that is about to be stored."""
        return self._tables.get(hash)

    def appended(self) -> dict[str, list[Record]]:
        """The records that are about to be stored, by budget."""
        found: dict[str, list[Record]] = {}
        for entry, made in self._records:
            found.setdefault(entry.name, []).append(made)
        return found

    # -- writing ------------------------------------------------------------------------

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._records)

    @cached_property
    def heads(self) -> dict[str, tuple[int, str]]:
        """The heads to anchor, in the end: of chains that grew, and those answered for again."""
        names = {*self._changed, *self.replayed}
        return {n: (self.entries[n].head_seq, self.entries[n].head_hash) for n in sorted(names)}

    @property
    def found_heads(self) -> dict[str, tuple[int, str]]:
        """The heads that its records were appended to, as the store had them."""
        first: dict[str, tuple[int, str]] = {}
        for entry, made in self._records:
            first.setdefault(entry.name, (made.seq - 1, entry.stored_hash))
        return first

    @property
    def held(self) -> HeldStates:
        """What is known to be needed for open holds, of the budgets that it changes."""
        return {name: (each.head_hash, each.held) for name, each in self._changed.items()}

    def last(self) -> tuple[int, int, str]:
        """The last record, by which to find out whether a commit landed."""
        entry, made = self._records[-1]
        return entry.id, made.seq, made.hash

    def flush(self) -> None:
        """Write everything, in an order in which two processes cannot wait for each other."""
        old = [each for name, each in sorted(self._changed.items()) if name not in self._made]
        ended = [each for each in self._holds_ended if each not in self._holds_made]
        tables = [{"hash": h, "content": c} for h, c in sorted(self._tables.items())]
        keys = sorted(self._keys_made, key=lambda row: (row["principal"], row["key"]))
        records = [
            {"budget_id": entry.id, "seq": made.seq, "hash": made.hash, "text": made.text}
            for entry, made in self._records
        ]
        writes: list[tuple[Prepared, list[dict[str, Any]]]] = [
            (rows.NEW_TABLES, tables),
            (
                rows.NEW_BUDGETS,
                [to_row(each, rows.NEW_BUDGETS.columns) for each in self._made.values()],
            ),
            (rows.CHANGED_BUDGETS, [rows.changed_budget(each) for each in old]),
            (rows.NEW_RECORDS, records),
            (rows.NEW_KEYS, keys),
            (rows.NEW_HOLDS, [rows.new_hold(each) for each in self._holds_made]),
            (rows.ENDED_HOLDS, [asdict(each) for each in ended]),
        ]
        self.store.put(self.connection, [(write, given) for write, given in writes if given])


def _keys(wanted: Collection[tuple[str, str]]) -> Question:
    """Decisions under keys of these principals; perhaps more than wanted."""
    principals, keys = (sorted(set(each)) for each in zip(*wanted, strict=True))
    return rows.KEYS, {"principals": listed(principals), "keys": listed(keys)}


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Rows that say what no ledger writes are an error of the store."""
    try:
        yield
    except ResiduaError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BrokenRecord(f"the {what} of the store cannot be read: {error!r}") from error


def _last_query(store: Store, id: int, head: int) -> Query | None:
    # In canonical JSON `admitted` comes first, and quotes inside of texts are escaped.
    moved = or_(*(_R.c.text.like(f'{{"admitted":true,%"type":"{type}",%') for type in _MOVING))
    query = select(_R.c.text).where(_R.c.budget_id == id, _R.c.seq <= head, moved)
    # A few: commitments of a Rényi budget, of which a window has one at most, are passed over.
    query = query.order_by(_R.c.seq.desc()).limit(8)
    with store.reading() as connection:
        found = connection.execute(query).scalars().all()
    for text in found:
        try:
            asked = from_text(canonical(json.loads(text)["mechanism"])).query
        except (ResiduaError, ValueError, KeyError, TypeError):
            return None  # Records that were tampered with are for the verifier to report.
        if isinstance(asked, Query):
            return asked
    return None
