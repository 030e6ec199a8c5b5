"""Requests to the committer, and what all of them share.

A request names budgets, and perhaps a hold and a key. `run` decides on the page and then writes to
it; whatever it raises, it raises before it has written anything.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, cast

from residua.errors import ArgumentError, KeyReused
from residua.filters import amounts
from residua.filters.amounts import State
from residua.filters.decision import NOTHING_FITS
from residua.ledger.domain.budget_row import BudgetRow
from residua.ledger.domain.described_query import DescribedQuery, from_text
from residua.ledger.domain.receipts import (
    BudgetSnapshots,
    Cap,
    Receipt,
    Reservation,
)
from residua.ledger.domain.rules import BudgetDecision, BudgetSnapshot, Fits, spends
from residua.ledger.domain.rules import holds as holds_
from residua.ledger.domain.set_aside import SetAside
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.storage.rows import KeyRow
from residua.records import Canonical, Record, canonical, digest, state_after

LEDGER = "ledger"
"""The principal of overdue changes."""


@dataclass(frozen=True, kw_only=True)
class Request(ABC):
    """A request to the committer."""

    principal: str
    names: tuple[str, ...] = ()
    """The budgets that it names."""
    hold: str | None = None
    """The reservation that it names."""
    key: str | None = None
    """The caller's key, or one that was made for this request."""
    fresh: bool = False
    """Whether the key was made for this request, so that it cannot have been used before."""

    creates: ClassVar[bool] = False
    """Whether it adds a budget."""
    releases: ClassVar[bool] = False
    """Whether it releases all holds of its budgets."""

    @abstractmethod
    def run(self, work: UnitOfWork) -> Any:
        """Decide, then write to the page."""


def outcome(
    record: Record,
    budgets: Mapping[str, tuple[int, str]],
    left: BudgetSnapshots,
    replayed: bool = False,
) -> Receipt | Reservation:
    """What a caller gets for the record of its request."""
    fields: dict[str, Any] = {
        "admitted": record.admitted is True,
        "reason": str(record.reason),
        "seq": record.seq,
        "key": str(record.key),
        "replayed": replayed,
        "head": record.hash,
        "binding": record.binding,
        "budgets": budgets,
        "remainder": left,
    }
    if record.type != "hold":
        return Receipt(**fields)
    id, expires = record.body["hold"], record.body["expires"]
    return Reservation(**fields, id=id, expires=expires, ledger=None)


def request_hash(verb: str, names: Sequence[str], fields: Mapping[str, Any]) -> str:
    """The hash that distinguishes requests under the same key."""
    return digest(canonical({"verb": verb, "budgets": sorted(names), **fields}))


def charged(work: UnitOfWork, names: Sequence[str]) -> list[BudgetRow]:
    """Every budget that a spend on these charges, each once. Raises where one cannot be spent."""
    found: dict[str, BudgetRow] = {}
    for name in names:
        for entry in work.open_line(name):
            if entry.children == "partitions":
                raise ArgumentError(
                    f"budget must not be {entry.name!r}, which is divided into partitions: name"
                    " every partition that the query reads"
                )
            found[entry.name] = entry
    return list(found.values())


def check_relation(query: DescribedQuery, assumed: bool) -> None:
    """Raise where it is not known under which relation a bound holds."""
    kind = query.undeclared
    if kind is not None and not assumed:
        raise ArgumentError(
            f"assume_budget_relation must be true or a relation declared: {kind} is known only"
            " by a bound, got False"
        )


def check_holds_provable(
    entry: BudgetRow, decided: BudgetDecision, holds: Sequence[DescribedQuery]
) -> None:
    """Raise where an open hold could not be proven in the state in which it would be committed.

    Another filter decides there where one was committed to. `holds` are those that are open then.
    Nothing is set aside for a hold that could not be proven.
    """
    if decided.held and isinstance(decided.held[0], SetAside):
        return
    states = cast(tuple[State, ...], (decided.state, *decided.held))[decided.kept :]
    for state, query in zip(states, holds[decided.kept :], strict=False):
        decides = entry.filter.deciding_filter(state, query.query, entry.relation)
        if decides is entry.filter:
            continue
        why = query.unprovable(decides, entry.relation)
        if why is not None:
            raise ArgumentError(
                f"query must leave the open holds of {entry.name!r} verifiable, but {query} could"
                f" not be verified after it: {why}; nothing was spent"
            )


def binding(
    decisions: Mapping[str, BudgetDecision], entries: Sequence[BudgetRow], *, checked: bool = False
) -> tuple[str | None, str]:
    """The budget that refuses, if any does, and the reason to record; several: it is named.

    Where a request was only checked, the reason says what would be.
    """
    would_be = "would be " if checked else ""
    for name, decided in decisions.items():
        if not decided.admitted:
            shown = f"budget {name!r}: " if len(entries) > 1 else ""
            return name, shown + would_be + decided.reason
    name, decided = next(iter(decisions.items()))
    # Of an admission each budget records its own reason, which needs no name.
    shown = f"budget {name!r}: " if checked and len(entries) > 1 else ""
    return None, shown + would_be + decided.reason


def relation_refusals(
    query: DescribedQuery, entries: Sequence[BudgetRow]
) -> dict[str, BudgetDecision]:
    """Refusals of budgets under another relation, or for another unit, than the query declares."""
    found = {}
    for entry in entries:
        why = query.contradicts(entry.relation, entry.unit)
        if why is not None:
            found[entry.name] = BudgetDecision(
                False, entry.state, f"refused: {why}; {NOTHING_FITS}"
            )
    return found


def append_group(
    work: UnitOfWork,
    type: str,
    by: str,
    entries: Sequence[BudgetRow],
    fields: Mapping[str, Any],
    after: Mapping[str, str],
    held: Mapping[str, Canonical] = MappingProxyType({}),
    reasons: Mapping[str, str] | None = None,
) -> dict[str, Record]:
    """Append a record to every budget of a group, each naming all; states become `after`.

    `held` has what the record of a budget says of its open holds, `reasons` those that differ
    between the budgets.
    """
    in_order = sorted(entries, key=lambda entry: entry.name)
    group = Canonical("[" + ",".join([entry.next_place() for entry in in_order]) + "]")
    made = {}
    for entry in in_order:
        before = entry.state_text
        state_text = after.get(entry.name, before)
        own = {
            **fields,
            "group": group,
            "before": Canonical(before),
            "after": Canonical(state_text),
        }
        if reasons is not None:
            own["reason"] = reasons[entry.name]
        if "mechanism" in own:
            own["relation"] = entry.relation
            own["tables"] = {} if state_text == before else tables_of(work, entry, state_text)
            own["holds"] = held.get(entry.name, [])
        made[entry.name] = work.append(entry, type, by, own, state_text)
    return made


def stated_holds(
    work: UnitOfWork, entry: BudgetRow, state_text: str, held: Sequence[State | SetAside]
) -> Canonical:
    """What a record states of open holds.

    What each sets aside, or the state that follows the committed one with it and those before it.
    """
    if held and isinstance(held[0], SetAside):
        return Canonical(canonical([_set_aside(cast(SetAside, each)) for each in held]))
    states = cast(Sequence[State], held)
    common = {name: canonical(value) for name, value in json.loads(state_text).items()}
    tables = tables_of(work, entry, state_text)
    found = []
    for state in states:
        text = entry.filter.state_to_json(state)
        plain: dict[str, Any] = json.loads(text)
        own = {name: value for name, value in plain.items() if canonical(value) != common[name]}
        others = tables_of(work, entry, text)
        if others != tables:
            own["tables"] = others
        found.append(own)
    return Canonical(canonical(found))


def _set_aside(hold: SetAside) -> dict[str, Any]:
    takes = [amounts.text(each) for each in hold.takes]
    return {"takes": takes} if hold.place is None else {"component": hold.place, "takes": takes}


def tables_of(work: UnitOfWork, entry: BudgetRow, state_text: str) -> dict[str, str]:
    """Hashes of the tables that a verifier needs beside the state; their contents get stored."""
    return hashes_of(work, entry.filter.tables(entry.state_at(state_text)))


def hashes_of(work: UnitOfWork, content: Mapping[str, bytes]) -> dict[str, str]:
    """The same of these contents."""
    hashes = {name: digest(data) for name, data in content.items()}
    work.add_tables({hashes[name]: data for name, data in content.items()})
    return hashes


def held_now(entries: Sequence[BudgetRow]) -> str | None:
    """The open holds of these, to remember what was left."""
    held = {entry.name: list(entry.holds) for entry in entries if entry.holds}
    return canonical(held) if held else None


def snapshots_now(
    work: UnitOfWork,
    query: DescribedQuery,
    named: Sequence[str],
    one: bool,
    entries: Sequence[BudgetRow],
    rule: Fits = spends,
) -> BudgetSnapshots:
    """What is left of the budgets, for a caller that asked by a rule."""
    lines = {name: tuple([e.name for e in work.line(name)]) for name in named}
    all_ = {entry.name: work.snapshot(entry) for entry in entries}
    closed = frozenset([entry.name for entry in entries if entry.retired])
    caps = caps_of(work, {name: work.entry(name).head_seq for name in named})
    return BudgetSnapshots(query, tuple(named), one, lines, all_, closed, rule, caps)


def caps_of(work: UnitOfWork, heads: Mapping[str, int]) -> dict[str, Cap]:
    """For each of these, whose capacity is a guarantee for it, and what it admitted last.

    `heads` has the number of the record up to which that counts.
    """
    found = {}
    for name, head in heads.items():
        root = work.cap(name)
        last = work.last_query(name, head)
        found[name] = Cap(root.filter, root.generation + 1, last)
    return found


def replay(
    work: UnitOfWork, request: Request, request_text: str, one: bool, named: Sequence[str] = ()
) -> Receipt | Reservation | None:
    """The earlier decision under the request's key, or None."""
    key = request.key
    row = work.keys.get((request.principal, key)) if key is not None else None
    if row is None:
        return None
    if row.request != request_text:
        raise KeyReused(
            f"key {key!r} was already used by {request.principal!r} for another request; nothing"
            " was decided"
        )
    return replayed(work, row, request.names or named, one)


def replayed(
    work: UnitOfWork, row: KeyRow, named: Sequence[str], one: bool
) -> Receipt | Reservation:
    """The decision at a place, once more."""
    record = work.record_at(row.budget, row.seq)
    members = [each["budget"] for each in record.body["group"]]
    found: dict[str, Record] = {}
    for each in record.body["group"]:
        other = _of_group(work, record, each["budget"], each["seq"])
        if other is not None:
            found[each["budget"]] = other
    held: dict[str, list[str]] = json.loads(row.held) if row.held else {}
    work.load_holds(id for ids in held.values() for id in ids if id not in work.holds)
    snapshots = {}
    for name in members:
        entry = work.entry(name)
        text = canonical(state_after(found[name])) if name in found else entry.state_text
        state = entry.state_at(text)
        holds = tuple(work.holds[id].query for id in held.get(name, ()))
        snapshots[name] = BudgetSnapshot(entry.filter, state, holds, entry.relation, entry.unit)
    work.replayed.update(members)
    named = tuple(named) or tuple(members)
    lines = {name: tuple(e.name for e in work.line(name)) for name in named}
    query = from_text(canonical(record.body["mechanism"]))
    rule = holds_ if record.type == "hold" else spends
    lost = frozenset(members) - found.keys()
    heads = {
        name: found[name].seq if name in found else work.entry(name).head_seq for name in named
    }
    return outcome(
        found.get(named[0], record),
        {name: (each.seq, each.hash) for name, each in found.items()},
        BudgetSnapshots(query, named, one, lines, snapshots, lost, rule, caps_of(work, heads)),
        True,
    )


def _of_group(work: UnitOfWork, record: Record, name: str, seq: int) -> Record | None:
    """The record that a budget got together with this one; None where a recovery lost it."""
    if record.budget == name:
        return record
    entry = work.entry(name)
    if entry.retired and entry.head_seq < seq:
        return None
    found = work.record_at(name, seq)
    return None if entry.retired and found.body.get("group") != record.body["group"] else found
