"""A budget in a transaction's hands: its row, its head record, and what a request made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from residuum.errors import BrokenRecord
from residuum.filters.codec import from_json as filter_from_json
from residuum.filters.filter import Filter
from residuum.filters.state import State
from residuum.records import NOTHING_BEFORE, Record, canonical, digest, state_after


@lru_cache(maxsize=1024)
def filter_of(text: str) -> Filter:
    """The filter that a description says; one object for all who ask."""
    return filter_from_json(text)


_STATES: dict[tuple[str, str], State] = {}
_MOST = 4096


def state_of(filter_text: str, state_text: str) -> State:
    """The state that a text says."""
    found = _STATES.get((filter_text, state_text))
    if found is None:
        found = filter_of(filter_text).state_from_json(state_text)
        _remember(filter_text, state_text, found)
    return found


def _remember(filter_text: str, state_text: str, state: State) -> None:
    if len(_STATES) >= _MOST:
        _STATES.clear()
    _STATES[filter_text, state_text] = state


@dataclass
class Entry:
    """A budget as the transaction sees it; changed in place, and written back once."""

    id: int
    name: str
    parent: str | None
    partition: str | None
    data: str | None
    neighbouring: str
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
    """What is under it: nothing, `quotas` or `partitions`."""
    holds: tuple[str, ...]
    state_text: str
    time: str
    """Of the head record."""

    @property
    def filter(self) -> Filter:
        return filter_of(self.filter_text)

    @property
    def state(self) -> State:
        return state_of(self.filter_text, self.state_text)

    @property
    def plain_state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = json.loads(self.state_text)
        return state

    def moved(self, state: State) -> str:
        """The text of a state that is to follow, remembered so that it need not be read again."""
        text = self.filter.state_to_json(state)
        _remember(self.filter_text, text, state)
        return text

    def place(self) -> dict[str, Any]:
        """What a group says of the record that this budget is about to get."""
        return {"budget": self.name, "seq": self.head_seq + 1, "prev": self.head_hash}


def from_row(row: Any) -> Entry:
    """An entry from a row of `budgets` with the text of its head record."""
    text: str = row.text
    if digest(text) != row.head_hash:
        raise BrokenRecord(
            f"record {row.name!r} {row.head_seq} was tampered with: it does not hash to the head"
        )
    head = Record(text)
    return Entry(
        id=row.id,
        name=row.name,
        parent=row.parent,
        partition=row.partition,
        data=row.data,
        neighbouring=row.neighbouring,
        unit=row.unit,
        window=row.window,
        window_ends=row.window_ends,
        created=row.created,
        filter_text=row.filter,
        head_seq=row.head_seq,
        head_hash=row.head_hash,
        retired=bool(row.retired),
        generation=row.generation,
        spent=bool(row.spent),
        children=row.children,
        holds=tuple(json.loads(row.holds)),
        state_text=canonical(state_after(head)),
        time=str(head.body["time"]),
    )


def new_entry(id: int, name: str, created: str, fields: Mapping[str, Any]) -> Entry:
    """An entry for a budget that has no record yet."""
    return Entry(
        id=id,
        name=name,
        parent=fields["parent"],
        partition=fields["partition"],
        data=fields["data"],
        neighbouring=fields["neighbouring"],
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
    )


def to_row(entry: Entry) -> dict[str, Any]:
    """The row of an entry."""
    return {
        "id": entry.id,
        "name": entry.name,
        "parent": entry.parent,
        "partition": entry.partition,
        "data": entry.data,
        "neighbouring": entry.neighbouring,
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
        "holds": json.dumps(entry.holds),
    }
