"""A budget in a transaction: its row, its head record, and the changes that requests made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from residua.errors import BrokenRecord
from residua.filters.base import Filter
from residua.filters.codec import from_json as filter_from_json
from residua.filters.state import State
from residua.ledger.domain.set_aside import Held
from residua.records import NOTHING_BEFORE, Record, canonical, digest, state_after, written
from residua.sized_cache import sized_cache

_CACHED = 1024
"""Few: the garbage collector visits everything in a cache, which took a sixth of a spend."""


@sized_cache(maxsize=_CACHED)
def filter_of(text: str) -> Filter:
    """The filter that a description says; one object for all callers."""
    return filter_from_json(text)


class Head(NamedTuple):
    """The parts of a head record that a transaction needs."""

    state_text: str
    time: str
    retires: bool


_CHOSEN = ("parent", "partition", "data", "relation", "unit", "window")
"""What a budget is made with, beside its filter."""
RETIRING = ("retire", "recover")
"""Records after which a budget is closed for good."""


@sized_cache(maxsize=_CACHED)
def state_of(filter_text: str, state_text: str) -> State:
    """The state that a text says."""
    return filter_of(filter_text).state_from_json(state_text)


@sized_cache(maxsize=_CACHED)
def _head_of(text: str) -> Head:
    """The head that a record is; its hash was checked."""
    record = Record(text)
    return Head(canonical(state_after(record)), record.time, record.type in RETIRING)


@dataclass
class Entry:
    """A budget as the transaction sees it; changed in place, and written back once."""

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
    """The kind of its children: none, `quotas` or `partitions`."""
    holds: tuple[str, ...] = ()
    stored_hash: str = NOTHING_BEFORE
    """The hash of the head record in the store; `head_hash` has that of what was appended since."""
    held: Held = ()
    """For the first open holds what they need, as the chain states it last.

    As far as this process knows: what another one wrote is worked out and stated again.
    """
    _moved: dict[str, State] = field(init=False, default_factory=dict, repr=False, compare=False)
    """States that were written since the head, by their texts, and the state at the head."""

    @cached_property
    def filter(self) -> Filter:
        return filter_of(self.filter_text)

    @property
    def state(self) -> State:
        return self.state_at(self.state_text)

    def state_at(self, text: str) -> State:
        """The state of this budget's filter that a text describes."""
        found = self._moved.get(text)
        return state_of(self.filter_text, text) if found is None else found

    @property
    def plain_state(self) -> Mapping[str, Any]:
        """The state as plain data."""
        found: Mapping[str, Any] = json.loads(self.state_text)
        return found

    def moved(self, state: State) -> str:
        """The text of a state that is to follow; this entry need not parse it again."""
        text = self.filter.state_to_json(state)
        self._moved[text] = state
        return text

    def follow(self, head: Record, state_text: str) -> None:
        """The chain grew by a record, and the committed state is `state_text` then."""
        self.head_seq, self.head_hash = head.seq, head.hash
        self.time, self.state_text = head.time, state_text
        self._moved = {text: state for text, state in self._moved.items() if text == state_text}

    def place(self) -> str:
        """The group's entry for the record that this budget is about to get, canonical."""
        name, prev = written(self.name), written(self.head_hash)
        return f'{{"budget":{name},"prev":{prev},"seq":{self.head_seq + 1}}}'


def _flag(value: Any) -> bool:
    return bool(int(value))


_READ: Mapping[str, Callable[[Any], Any]] = {
    "id": int,
    "window": lambda value: None if value is None else float(value),
    "head_seq": int,
    "retired": _flag,
    "generation": int,
    "spent": _flag,
    "holds": lambda text: tuple(json.loads(text)),
}
"""How columns are read that are not texts; a store may have kept something else in them."""
_WRITTEN: Mapping[str, Callable[[Any], Any]] = {
    "retired": int,
    "spent": int,
    "holds": json.dumps,
}


def from_row(row: Mapping[str, Any], text: str) -> Entry:
    """An entry from a row of `budgets` and the text of its head record."""
    if digest(text) != row["head_hash"]:
        raise BrokenRecord(
            f"record {row['name']!r} {row['head_seq']} was tampered with: it does not hash to the"
            " head"
        )
    head = _head_of(text)
    fields = {name: _READ.get(name, _same)(value) for name, value in row.items()}
    filter_text = fields.pop("filter")
    entry = Entry(
        **fields,
        filter_text=filter_text,
        state_text=head.state_text,
        time=head.time,
        stored_hash=row["head_hash"],
    )
    # The record counts, whatever became of the row.
    entry.retired = entry.retired or head.retires
    return entry


def _same(value: Any) -> Any:
    return value


def new_entry(id: int, name: str, created: str, fields: Mapping[str, Any]) -> Entry:
    """An entry for a budget that has no record yet, by the fields of its first one."""
    return Entry(
        id=id,
        name=name,
        created=created,
        time=created,
        filter_text=canonical(fields["filter"]),
        state_text=canonical(fields["state"]),
        **{each: fields[each] for each in _CHOSEN},
    )


def to_row(entry: Entry, columns: Iterable[str]) -> dict[str, Any]:
    """Columns of the row of an entry."""
    row = {}
    for name in columns:
        value = getattr(entry, "filter_text" if name == "filter" else name)
        row[name] = _WRITTEN.get(name, _same)(value)
    return row
