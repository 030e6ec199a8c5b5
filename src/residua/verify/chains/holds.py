"""Check that the open holds of a budget still fit after each request.

A ledger admits a spend, a hold or a commit only if all holds that are open then could be committed
one after another, in the order in which they were made (`residua.ledger.domain.rules`). Its record
says how in one of two ways; what it does not mention of the first holds is as it was stated last.

* Where costs add up, in a filter or in one live component of a union, each hold *sets aside* an
  amount that is proven to suffice for it whatever is left. The holds fit if the sum of these
  amounts is left, which is compared exactly; a component that admits them all stays live.
* Elsewhere the record gives the committed state after each hold. Every one is checked as a spend
  is, from the committed state on: no rule of a filter is needed beside the one that checks a step.

Cancels and expiries only make room. A hold
expires when its time is over, or where a new window or the loss of a budget ends it. Whatever ends
a hold ends it in all its budgets: a commit of some of them would leave the others uncharged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from residua.records import Record, canonical
from residua.sizes import MOST_HOLDS
from residua.verify.chains.chain import REQUEST_TYPES, Chain, members_of
from residua.verify.descriptions.configurations import Unreadable, amount


class Following(NamedTuple):
    """An open hold, and the state that committing it would lead to."""

    hold: Record
    state: Mapping[str, Any]
    tables: Any
    """The tables of that state by their hashes; None where the committed state has the same."""
    stated: bool
    """Whether this record states it, and not an earlier one."""


class SetAside(NamedTuple):
    """An open hold, and what it sets aside."""

    hold: Record
    component: Any
    """The place of the component of a union; None for a filter by itself."""
    takes: tuple[Any, ...]


class Sum(NamedTuple):
    """What the open holds set aside together, and those of which this record states it."""

    component: Any
    total: tuple[Fraction, ...]
    stated: tuple[SetAside, ...]


class Holds:
    """The open holds along a chain, in the order in which they were made."""

    def __init__(self) -> None:
        self._open: dict[str, Record] = {}
        self._states: dict[str, Following] = {}
        """The last statement on the open holds, where it gives states."""
        self._taken: dict[str, SetAside] = {}
        """The last statement on the open holds, where it gives amounts."""
        self._total: tuple[Fraction, ...] = ()
        """The sum of these."""

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
            over = self._taken.pop(id, None)
            if over is not None:
                self._add(over, -1)

    def after(self, record: Record) -> list[Following] | Sum:
        """The last record's statement on the holds that are open after it.

        Raises `ValueError` where it does not say it as a ledger does.
        """
        if record.type not in REQUEST_TYPES or record.body["admitted"] is not True:
            if record.body.get("holds", []) != []:
                raise ValueError("a refusal states what open holds need")
            return []
        stated = record.body["holds"]
        count = len(self._open)
        if count > MOST_HOLDS:
            raise ValueError(f"{count} holds are open, at most {MOST_HOLDS} may be")
        if not isinstance(stated, list) or len(stated) > count:
            raise ValueError(
                f"holds must have states of the last of {count} open holds, got {stated!r:.60}"
            )
        if _are_amounts(stated) if stated else self._taken:
            return self._sum(stated)
        self._taken, self._total = {}, ()
        return self._following(record, stated)

    def _sum(self, stated: list[Any]) -> Sum:
        """The sum of what is set aside, if all of it is in one component."""
        last = list(islice(reversed(self._open), len(stated)))[::-1]
        made = {id: _set_aside(self._open[id], own) for id, own in zip(last, stated, strict=True)}
        if len(made) == len(self._open):
            self._taken, self._total = {}, ()
        kept = len(self._taken) - sum(id in self._taken for id in made)
        if kept + len(made) != len(self._open):
            raise ValueError("holds lacks what an open hold sets aside, which none has stated")
        first = next(iter((self._taken or made).values()))
        for each in made.values():
            if (each.component, len(each.takes)) != (first.component, len(first.takes)):
                raise ValueError(
                    f"holds must set amounts aside in one component, {first.component!r:.60},"
                    f" got {each.component!r:.60}"
                )
        self._states = {}
        for id, each in made.items():
            if id in self._taken:
                self._add(self._taken[id], -1)
            self._taken[id] = each
            self._add(each, 1)
        return Sum(first.component, self._total, tuple(made.values()))

    def _add(self, each: SetAside, sign: int) -> None:
        takes = [sign * amount(value) for value in each.takes]
        known = self._total or (Fraction(0),) * len(takes)
        self._total = tuple(a + b for a, b in zip(known, takes, strict=True))

    def _following(self, record: Record, stated: list[Any]) -> list[Following]:
        open_ = list(self._open)
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


def _are_amounts(stated: list[Any]) -> bool:
    return all(isinstance(own, Mapping) and "takes" in own for own in stated)


def _set_aside(hold: Record, own: Mapping[str, Any]) -> SetAside:
    takes, component = own["takes"], own.get("component")
    if not own.keys() <= {"takes", "component"} or ("component" in own and component is None):
        raise ValueError(f"a hold must have takes, and may have a component, got {own!r:.60}")
    if not isinstance(takes, list) or not takes:
        raise ValueError(f"takes must be a list of amounts, got {takes!r:.60}")
    try:
        for value in takes:
            amount(value)
    except Unreadable as error:
        raise ValueError(f"takes of a hold: {error}") from None
    return SetAside(hold, component, tuple(takes))


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
                    chain.add_problem(
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
        chain.add_problem(
            record.seq, f"the {kind} names {name!r}, which is not a budget of the hold"
        )
    for name in sorted(_names(hold) - _names(record)):
        over = name in lost or (lost and (name, id) in ended)
        if kind != "expire" or not over:
            chain.add_problem(
                record.seq, f"the {kind} lacks {name!r}, which is a budget of the hold"
            )
    expires = hold.body["expires"]
    early = kind == "expire" and isinstance(expires, str) and record.time < expires
    if early and not lost and not _ended(record, chains):
        chain.add_problem(record.seq, f"a hold expires before its time is over at {expires}")


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
