"""A budget in a transaction: its row, its head record, and the changes that requests made."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


class BudgetRow(NamedTuple):
    """A row of `budgets`, with the text of the head record."""

    id: int
    name: str
    parent: str | None
    partition: str | None
    data: str | None
    relation: str
    unit: str
    window: float | None
    window_ends: str | None
    created: str
    filter: str
    head_seq: int
    head_hash: str
    retired: int
    generation: int
    spent: int
    children: str
    holds: str
    text: str


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
    window_ends: str | None
    created: str
    filter_text: str
    head_seq: int
    head_hash: str
    retired: bool
    generation: int
    spent: bool
    children: str
    """The kind of its children: none, `quotas` or `partitions`."""
    holds: tuple[str, ...]
    state_text: str
    time: str
    """The time of the head record."""
    stored_hash: str
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


def from_row(row: BudgetRow) -> Entry:
    """An entry from a row of `budgets` with the text of its head record."""
    if digest(row.text) != row.head_hash:
        raise BrokenRecord(
            f"record {row.name!r} {row.head_seq} was tampered with: it does not hash to the head"
        )
    head = _head_of(row.text)
    return Entry(
        id=int(row.id),
        name=row.name,
        parent=row.parent,
        partition=row.partition,
        data=row.data,
        relation=row.relation,
        unit=row.unit,
        window=None if row.window is None else float(row.window),
        window_ends=row.window_ends,
        created=row.created,
        filter_text=row.filter,
        head_seq=int(row.head_seq),
        head_hash=row.head_hash,
        # The record counts, whatever became of the row.
        retired=head.retires or bool(int(row.retired)),
        generation=int(row.generation),
        spent=bool(int(row.spent)),
        children=row.children,
        holds=() if row.holds == "[]" else tuple(json.loads(row.holds)),
        state_text=head.state_text,
        time=head.time,
        stored_hash=row.head_hash,
    )


def new_entry(id: int, name: str, created: str, fields: Mapping[str, Any]) -> Entry:
    """An entry for a budget that has no record yet."""
    return Entry(
        id=id,
        name=name,
        parent=fields["parent"],
        partition=fields["partition"],
        data=fields["data"],
        relation=fields["relation"],
        unit=fields["unit"],
        window=fields["window"],
        window_ends=None,
        created=created,
        filter_text=canonical(fields["filter"]),
        head_seq=-1,
        head_hash=NOTHING_BEFORE,
        retired=False,
        generation=0,
        spent=False,
        children="",
        holds=(),
        state_text=canonical(fields["state"]),
        time=created,
        stored_hash=NOTHING_BEFORE,
    )


def to_row(entry: Entry) -> dict[str, Any]:
    """The row of an entry."""
    return {
        "id": entry.id,
        "name": entry.name,
        "parent": entry.parent,
        "partition": entry.partition,
        "data": entry.data,
        "relation": entry.relation,
        "unit": entry.unit,
        "window": entry.window,
        "window_ends": entry.window_ends,
        "created": entry.created,
        "filter": entry.filter_text,
        "head_seq": entry.head_seq,
        "head_hash": entry.head_hash,
        "retired": int(entry.retired),
        "generation": entry.generation,
        "spent": int(entry.spent),
        "children": entry.children,
        "holds": json.dumps(entry.holds) if entry.holds else "[]",
    }
