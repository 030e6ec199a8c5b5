"""The row of a budget during a transaction: its columns, its head record, and changes to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from residua.errors import BrokenRecord
from residua.filters.amounts import State
from residua.filters.base import Filter
from residua.filters.codec import from_json as filter_from_json
from residua.ledger.domain import clock
from residua.ledger.domain.set_aside import Held, without_hold
from residua.records import NOTHING_BEFORE, Record, canonical, digest, state_after, written
from residua.sizes import sized_cache

_CACHED = 1024
"""The size of a cache; small, since the garbage collector visits every value in it."""


@sized_cache(maxsize=_CACHED)
def parse_filter(text: str) -> Filter:
    """The filter with this description as JSON; one object for all callers."""
    return filter_from_json(text)


class Declared(NamedTuple):
    """The last declaration of a table: its version, the number of its record, and its state."""

    version: int
    seq: int
    removed: bool


class Head(NamedTuple):
    """The parts of a head record that a transaction needs."""

    state_text: str
    time: str
    retires: bool


_CREATION_FIELDS = ("parent", "partition", "data", "relation", "unit", "window")
"""The fields that are chosen when a budget is created, beside its filter."""
RETIRING = ("retire", "recover")
"""The types of records after which a budget is closed for good."""
ENDING = ("commit", "cancel", "expire")
"""The types of records after which a hold is over."""


@sized_cache(maxsize=_CACHED)
def parse_state(filter_text: str, state_text: str) -> State:
    """The state of a filter from its JSON."""
    return parse_filter(filter_text).state_from_json(state_text)


@sized_cache(maxsize=_CACHED)
def _parse_head(text: str) -> Head:
    """The head from the text of a record whose hash was checked."""
    record = Record(text)
    return Head(canonical(state_after(record)), record.time, record.type in RETIRING)


@dataclass
class BudgetRow:
    """A budget's row in a transaction; requests change it in place, and it is written back once."""

    id: int
    name: str
    parent: str | None
    partition: str | None
    data: str | None
    relation: str
    unit: str
    window: float | None
    created: str
    filter_text: str
    state_text: str
    time: str
    """The time of the head record."""
    window_ends: str | None = None
    head_seq: int = -1
    head_hash: str = NOTHING_BEFORE
    retired: bool = False
    generation: int = 0
    spent: bool = False
    children: str = ""
    """The kind of its children: empty, `quotas` or `partitions`."""
    holds: tuple[str, ...] = ()
    stored_hash: str = NOTHING_BEFORE
    """The hash of the head record in the store; `head_hash` includes records appended since."""
    declared: Mapping[str, Declared] = field(default_factory=dict)
    """The tables that are declared under it, by name. Not to be changed in place."""
    held: Held = ()
    """What the first open holds set aside, as the last record of the chain states it.

    It may cover fewer holds than are open: what another process wrote is computed and stated again.
    """

    @cached_property
    def filter(self) -> Filter:
        return parse_filter(self.filter_text)

    @property
    def state(self) -> State:
        return self.state_at(self.state_text)

    def state_at(self, text: str) -> State:
        """The state of this budget's filter from its JSON."""
        return parse_state(self.filter_text, text)

    @property
    def plain_state(self) -> Mapping[str, Any]:
        """The state as plain data."""
        found: Mapping[str, Any] = json.loads(self.state_text)
        return found

    def follow(self, record: Record, state_text: str) -> None:
        """Make a record the head, after which the committed state is `state_text`.

        A commit states what the other holds need after it; of other ends of a hold it follows.
        """
        self.head_seq, self.head_hash = record.seq, record.hash
        self.time, self.state_text = record.time, state_text
        type, id = record.type, record.hold
        if type in RETIRING:
            self.retired = True
        elif type == "refresh":
            self.generation = record.body["generation"]
        elif type == "table":
            body = record.body
            last = Declared(body["version"], record.seq, body["declaration"] is None)
            self.declared = {**self.declared, body["table"]: last}
        if type in ("create", "refresh") and self.window is not None:
            self.window_ends = clock.boundary(self.created, self.window, record.time)
        if record.admitted is False:
            return
        if type == "hold" and id is not None and id not in self.holds:
            self.holds = (*self.holds, id)
        elif type in ENDING and id in self.holds:
            if type != "commit":
                self.held = without_hold(self.held, self.holds.index(id))
            self.holds = tuple([each for each in self.holds if each != id])
        self.spent = self.spent or record.admitted is True

    def next_place(self) -> str:
        """Where this budget's next record will be, as canonical JSON for the `group` of one."""
        name, prev = written(self.name), written(self.head_hash)
        return f'{{"budget":{name},"prev":{prev},"seq":{self.head_seq + 1}}}'


def _parse_flag(value: Any) -> bool:
    return bool(int(value))


_COLUMN_READERS: Mapping[str, Callable[[Any], Any]] = {
    "id": int,
    "window": lambda value: None if value is None else float(value),
    "head_seq": int,
    "retired": _parse_flag,
    "generation": int,
    "spent": _parse_flag,
    "holds": lambda text: tuple(json.loads(text)),
    "declared": lambda text: {name: Declared(*each) for name, each in json.loads(text).items()},
}
"""How to read columns that are not texts; a store may return another type."""
_COLUMN_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "retired": int,
    "spent": int,
    "holds": json.dumps,
    "declared": json.dumps,
}


def from_row(row: Mapping[str, Any], text: str) -> BudgetRow:
    """A budget from a row of `budgets` and the text of its head record."""
    if digest(text) != row["head_hash"]:
        raise BrokenRecord(
            f"record {row['name']!r} {row['head_seq']} was tampered with: it does not hash to the"
            " head"
        )
    head = _parse_head(text)
    fields = {name: _COLUMN_READERS.get(name, _identity)(value) for name, value in row.items()}
    filter_text = fields.pop("filter")
    entry = BudgetRow(
        **fields,
        filter_text=filter_text,
        state_text=head.state_text,
        time=head.time,
        stored_hash=row["head_hash"],
    )
    # The head record is authoritative, whatever the row says.
    entry.retired = entry.retired or head.retires
    return entry


def _identity(value: Any) -> Any:
    return value


def new_entry(id: int, name: str, created: str, fields: Mapping[str, Any]) -> BudgetRow:
    """A budget that has no record yet, from the fields of its first one."""
    return BudgetRow(
        id=id,
        name=name,
        created=created,
        time=created,
        filter_text=canonical(fields["filter"]),
        state_text=canonical(fields["state"]),
        **{each: fields[each] for each in _CREATION_FIELDS},
    )


def to_row(entry: BudgetRow, columns: Iterable[str]) -> dict[str, Any]:
    """The values of these columns of a budget's row."""
    row = {}
    for name in columns:
        value = getattr(entry, "filter_text" if name == "filter" else name)
        row[name] = _COLUMN_WRITERS.get(name, _identity)(value)
    return row
