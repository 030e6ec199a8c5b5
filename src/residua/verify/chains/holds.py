"""Check that the open holds of a budget still fit after each record that requests something.

A ledger admits a spend, a hold or a commit only if all holds that are open then could be committed
one after another, in the order in which they were made (`residua.ledger.domain.rules`). Its record
states the committed state after the last of them; for the holds before these, the states that were
stated last count. So every one is checked as a spend is, from the committed state on: no rule of a
filter is needed beside the one that checks a step. Cancels and expiries only make room. A hold
expires when its time is over, or where a new window or the loss of a budget ends it. Whatever ends
a hold ends it in all its budgets: a commit of some of them would leave the others uncharged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from residua.records import Record, canonical
from residua.verify.chains.chain import ASKING, Chain
from residua.verify.chains.groups import members_of


class Following(NamedTuple):
    """An open hold, and the state that committing it would lead to."""

    hold: Record
    state: Mapping[str, Any]
    tables: Any
    """The tables of that state by their hashes; None where the committed state has the same."""
    stated: bool
    """Whether this record states it, and not an earlier one."""


class Holds:
    """The open holds along a chain, in the order in which they were made."""

    def __init__(self) -> None:
        self._open: dict[str, Record] = {}
        self._states: dict[str, Following] = {}
        """The last statement on the open holds."""

    def follow(self, record: Record) -> None:
        """Take the next record of the chain."""
        id = canonical(record.body.get("hold"))
        if record.body.get("admitted", True) is not True:
            return
        if record.type == "hold":
            self._open.setdefault(id, record)
        elif record.type in ("commit", "cancel", "expire"):
            self._open.pop(id, None)
            self._states.pop(id, None)

    def after(self, record: Record) -> list[Following]:
        """The last record's statement on the holds that are open after it.

        Raises `ValueError` where it does not say it as a ledger does.
        """
        if record.type not in ASKING:
            return []
        stated = record.body["holds"]
        open_ = list(self._open) if record.body["admitted"] is True else []
        if not isinstance(stated, list) or len(stated) > len(open_):
            raise ValueError(
                f"holds must have states of the last of {len(open_)} open holds, got {stated!r:.60}"
            )
        before, last = open_[: len(open_) - len(stated)], open_[len(open_) - len(stated) :]
        for id in before:
            if id not in self._states:
                raise ValueError(
                    f"holds lacks a state of the open hold {id}, which none has stated"
                )
        kept = [self._states[id]._replace(stated=False) for id in before]
        made = _following(record.body["after"], [self._open[id] for id in last], stated)
        found = [*kept, *made]
        self._states = dict(zip(open_, found, strict=True)) if open_ else self._states
        return found


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
        yield Following(hold, {**after, **fields}, own.get("tables"), True)


_ENDING = ("commit", "cancel", "expire")


def check_ends(chains: Mapping[str, Chain]) -> None:
    """Check that a hold is of one request, and ends in all its budgets at once, not too early."""
    made: dict[str, Record] = {}
    ended: set[tuple[str, str]] = set()
    for chain in chains.values():
        for record in chain.records:
            id = canonical(record.body.get("hold"))
            if record.type == "hold":
                first = made.setdefault(id, record)
                if _places(first) != _places(record):
                    chain.wrong(
                        record.seq,
                        f"the hold {record.body['hold']!r:.60} is that of another request, too",
                    )
            elif record.type in _ENDING and record.body.get("admitted", True) is True:
                ended.add((chain.name, id))
    for chain in chains.values():
        for record in chain.records:
            id = canonical(record.body.get("hold"))
            if record.type in _ENDING and id in made:
                _check_end(chain, record, made[id], chains, ended)


def _places(record: Record) -> tuple[tuple[str, int], ...]:
    return members_of(record.body["group"])


def _names(record: Record) -> set[str]:
    return {name for name, _ in _places(record)}


def _check_end(
    chain: Chain,
    record: Record,
    hold: Record,
    chains: Mapping[str, Chain],
    ended: set[tuple[str, str]],
) -> None:
    """Check that the end of a hold names the budgets of the hold, and that an expiry is due.

    A recovery ends the holds of a budget that lost records, in those of their budgets where they
    are still open.
    """
    id, kind = canonical(hold.body["hold"]), record.type
    lost = {name for name in _names(hold) if name in chains and chains[name].lost_from is not None}
    for name in sorted(_names(record) - _names(hold)):
        chain.wrong(record.seq, f"the {kind} names {name!r}, which is not a budget of the hold")
    for name in sorted(_names(hold) - _names(record)):
        over = name in lost or (lost and (name, id) in ended)
        if kind != "expire" or not over:
            chain.wrong(record.seq, f"the {kind} lacks {name!r}, which is a budget of the hold")
    expires = hold.body["expires"]
    early = kind == "expire" and isinstance(expires, str) and record.time < expires
    if early and not lost and not _ended(record, chains):
        chain.wrong(record.seq, f"a hold expires before its time is over at {expires}")


def _ended(record: Record, chains: Mapping[str, Chain]) -> bool:
    """Whether all holds of a budget ended with this one, as they do with its window."""
    for name, seq in _places(record):
        chain = chains.get(name)
        if chain is None:
            continue
        some = islice(chain.records, seq if chain.whole and seq > 0 else 0, None)
        later = (each.type for each in some if each.seq > seq)
        if next((kind for kind in later if kind != "expire"), None) == "refresh":
            return True
    return False
