"""That the open holds of a budget still fit after each record that asks for something.

A ledger admits a spend, a hold or a commit only if all holds that are open then could be committed
one after another, in the order in which they were made (`residua.ledger.domain.rules`). Its record
states the committed state after each of them, so that every one is checked as a spend is: no rule
of a filter is needed beside the one that checks a step. Cancels and expiries only make room. A hold
expires when its time is over, or where a new window or the loss of a budget ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from residua.records import Record, canonical
from residua.verify.chains.chain import ASKING, Chain


class Following(NamedTuple):
    """An open hold, and the state that committing it would lead to."""

    hold: Record
    state: Mapping[str, Any]
    tables: Any
    """The tables of that state by their hashes; None where the committed state has the same."""


class Holds:
    """The open holds along a chain, in the order in which they were made."""

    def __init__(self) -> None:
        self._open: dict[str, Record] = {}

    def follow(self, record: Record) -> None:
        """Take the next record of the chain."""
        id = canonical(record.body.get("hold"))
        if record.body.get("admitted", True) is not True:
            return
        if record.type == "hold":
            self._open.setdefault(id, record)
        elif record.type in ("commit", "cancel", "expire"):
            self._open.pop(id, None)

    def after(self, record: Record) -> list[Following]:
        """What the last record says of the holds that are open after it.

        Raises `ValueError` where it does not say it as a ledger does.
        """
        if record.type not in ASKING:
            return []
        stated = record.body["holds"]
        open_ = list(self._open.values()) if record.body["admitted"] is True else []
        if not isinstance(stated, list) or len(stated) != len(open_):
            raise ValueError(
                f"holds must have a state for each of {len(open_)} open holds, got {stated!r:.60}"
            )
        return list(_following(record.body["after"], open_, stated))


def _following(after: Any, open_: list[Record], stated: list[Any]) -> Iterator[Following]:
    for hold, own in zip(open_, stated, strict=True):
        if not isinstance(own, Mapping) or not isinstance(after, Mapping):
            raise ValueError(f"a state of holds must be an object, got {own!r:.60}")
        fields = {name: value for name, value in own.items() if name != "tables"}
        for name, value in fields.items():
            if name not in after or canonical(after[name]) == canonical(value):
                raise ValueError(
                    f"a state of holds has the field {name!r}, which must be in `after` with a"
                    f" different value, got {value!r:.60}"
                )
        yield Following(hold, {**after, **fields}, own.get("tables"))


def check_expiries(chains: Mapping[str, Chain]) -> None:
    """That holds expire when their time is over, unless a budget of theirs lets all of them go."""
    for chain in chains.values():
        ends = {
            canonical(record.body["hold"]): record.body["expires"]
            for record in chain.records
            if record.type == "hold" and record.body["admitted"] is True
        }
        for record in chain.records:
            if record.type != "expire":
                continue
            expires = ends.get(canonical(record.body["hold"]))
            if isinstance(expires, str) and record.time < expires and not _ended(record, chains):
                chain.wrong(record.seq, f"a hold expires before its time is over at {expires}")


def _ended(record: Record, chains: Mapping[str, Chain]) -> bool:
    """Whether all holds of a budget ended with this one, as a new window or recovery does."""
    group = record.body["group"]
    for member in group if isinstance(group, list) else ():
        name = member.get("budget") if isinstance(member, Mapping) else None
        chain = chains.get(name) if isinstance(name, str) else None
        if chain is None or type(member.get("seq")) is not int:
            continue
        start = member["seq"] if chain.whole and member["seq"] > 0 else 0
        some = islice(chain.records, start, None)
        later = (each.type for each in some if each.seq > member["seq"])
        if next((kind for kind in later if kind != "expire"), None) in ("refresh", "recover"):
            return True
    return False
