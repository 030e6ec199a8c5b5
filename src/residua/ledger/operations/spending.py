"""Spend, reserve, commit, cancel and expire: all budgets or none, by the rule of `rules.py`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from residua import checks
from residua.errors import UnknownHold
from residua.ledger.domain import arguments, clock, rules
from residua.ledger.domain.budget_row import BudgetRow
from residua.ledger.domain.described_query import DescribedQuery, describe_query
from residua.ledger.domain.receipts import Receipt, Reservation
from residua.ledger.domain.rules import BudgetDecision
from residua.ledger.operations.requests import (
    LEDGER,
    Request,
    append_group,
    binding,
    charged,
    check_holds_provable,
    check_relation,
    held_now,
    outcome,
    relation_refusals,
    replay,
    replayed,
    request_hash,
    snapshots_now,
    stated_holds,
)
from residua.ledger.operations.tables import check_declared
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.storage.rows import HoldRow, KeyRow
from residua.records import LONGEST_HOLD, Canonical, Record


@dataclass(frozen=True, kw_only=True)
class Spend(Request):
    """A spend: decide and debit at once."""

    key: str
    one: bool
    """Whether a single budget was named, rather than a list."""
    query: DescribedQuery
    assumed: bool

    @classmethod
    def of(
        cls,
        principal: str,
        budgets: Any,
        query: Any,
        key: Any = None,
        assume_budget_relation: bool = False,
        **more: Any,
    ) -> Self:
        """The request that the arguments of a caller ask for, which are checked."""
        names, one = arguments.names(budgets)
        assumed = checks.flag("assume_budget_relation", assume_budget_relation)
        return cls(
            principal=principal, names=names, one=one, query=describe_query(query),
            key=arguments.key(key), fresh=key is None, assumed=assumed, **more,
        )  # fmt: skip

    @property
    def request(self) -> str:
        """The hash of the fields that distinguish it from other requests."""
        fields = {"mechanism": self.query.text, "assumed": self.assumed}
        return request_hash("spend", self.names, fields)

    def run(self, work: UnitOfWork) -> Receipt | Reservation:
        before = replay(work, self, self.request, self.one)
        if before is not None:
            return before
        entries, decisions = decide_all(work, self, rules.spend)
        made = _record(work, "spend", self, self.request, entries, decisions, {})
        return _done(work, self, self.request, entries, made)


def decide_all(
    work: UnitOfWork, asking: Spend, rule: rules.Rule
) -> tuple[list[BudgetRow], dict[str, BudgetDecision]]:
    """The budgets that a request charges, and what a rule says of each."""
    check_relation(asking.query, asking.assumed)
    entries = charged(work, asking.names)
    decisions = relation_refusals(asking.query, entries)
    if not decisions:
        snapshots = {entry.name: work.snapshot(entry) for entry in entries}
        decisions = work.rule(rules.judge, snapshots, rule, asking.query)
    return entries, decisions


def _record(
    work: UnitOfWork,
    type: str,
    asking: Spend,
    request: str,
    entries: Sequence[BudgetRow],
    decisions: Mapping[str, BudgetDecision],
    fields: Mapping[str, Any],
) -> dict[str, Record]:
    """Record a decision on every budget of a group; debit them all, or none."""
    refused_by, reason = binding(decisions, entries)
    admitted = refused_by is None
    after: dict[str, str] = {}
    held: dict[str, Canonical] = {}
    if admitted and type != "hold":
        after = {
            entry.name: entry.filter.state_to_json(decisions[entry.name].state) for entry in entries
        }
    for entry in entries if admitted else ():
        decided = decisions[entry.name]
        if len(decided.held) > decided.kept:
            open_ = [work.holds[id].query for id in entry.holds if id != fields.get("hold")]
            open_ += [asking.query] * (type == "hold")
            check_holds_provable(entry, decided, open_)
            text = after.get(entry.name, entry.state_text)
            held[entry.name] = stated_holds(work, entry, text, decided.held[decided.kept :])
    common = {
        "key": asking.key,
        "request": request,
        "mechanism": asking.query.written,
        "assumed": asking.assumed,
        "admitted": admitted,
        "binding": refused_by,
        "reason": reason,
        **fields,
    }
    # From here on nothing fails.
    # Each budget records what the query costs it.
    reasons = {name: decided.reason for name, decided in decisions.items()} if admitted else None
    made = append_group(work, type, asking.principal, entries, common, after, held, reasons)
    if admitted:
        for entry in entries:
            entry.held = decisions[entry.name].held
    return made


def _done(
    work: UnitOfWork,
    asking: Spend,
    request: str,
    entries: Sequence[BudgetRow],
    made: Mapping[str, Record],
    rule: rules.Fits = rules.spends,
) -> Receipt | Reservation:
    """The outcome of a request, once its holds are begun or over; its key is kept."""
    # The first of the group, as a recovery finds it.
    place = next(iter(made.values()))
    row = KeyRow(request, place.budget, place.seq, held_now(entries))
    work.add_key(asking.principal, asking.key, row)
    return outcome(
        made[asking.names[0]],
        {name: (each.seq, each.hash) for name, each in made.items()},
        snapshots_now(work, asking.query, asking.names, asking.one, entries, rule),
    )


@dataclass(frozen=True, kw_only=True)
class Reserve(Spend):
    """A hold for a mechanism that has not started."""

    ttl: float
    question: Mapping[str, Any] | None = None
    """The question that it is for, with the version of its table's declaration."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @classmethod
    def of(cls, *given: Any, ttl: float = 3600.0, **more: Any) -> Self:
        """The same as for a spend."""
        seconds = checks.positive("ttl", ttl)
        checks.require(seconds <= LONGEST_HOLD, "ttl", "at most 7 days", ttl)
        return super().of(*given, ttl=seconds, **more)

    @property
    def request(self) -> str:
        """The hash of the fields that distinguish it from other requests."""
        fields = {"mechanism": self.query.text, "assumed": self.assumed, "ttl": self.ttl}
        if self.question is not None:
            fields["question"] = self.question
        return request_hash("reserve", self.names, fields)

    def run(self, work: UnitOfWork) -> Receipt | Reservation:
        before = replay(work, self, self.request, self.one)
        if before is not None:
            return before
        entries, decisions = decide_all(work, self, rules.hold)
        asked = {} if self.question is None else {"question": self.question}
        if self.question is not None:
            check_declared(entries, self.question)
        made = max(work.now, *(entry.time for entry in entries))
        expires = clock.later(made, self.ttl)
        fields = {"hold": self.id, "expires": expires, **asked}
        records = _record(work, "hold", self, self.request, entries, decisions, fields)
        if all(decided.admitted for decided in decisions.values()):
            members = tuple(sorted(entry.name for entry in entries))
            work.new_hold(
                HoldRow(
                    self.id, self.principal, self.key, members, self.query.text, self.assumed,
                    made, expires, "open",
                )
            )  # fmt: skip
        return _done(work, self, self.request, entries, records, rules.holds)


@dataclass(frozen=True, kw_only=True)
class Commit(Request):
    """Debit a hold and permit its run."""

    hold: str
    key: str

    @classmethod
    def of(cls, principal: str, hold: str, key: str | None = None) -> Self:
        """The request that the arguments of a caller ask for, which are checked."""
        held = arguments.label("hold", hold)
        return cls(principal=principal, hold=held, key=arguments.key(key), fresh=key is None)

    def run(self, work: UnitOfWork) -> Receipt | Reservation:
        request = request_hash("commit", (), {"hold": self.hold})
        row = work.holds.get(self.hold)
        named = () if row is None else _leaves(work, row.members)
        before = replay(work, self, request, len(named) == 1, named)
        if before is not None:
            return before
        if row is not None and row.status == "committed" and row.ended_by is not None:
            budget, seq, kept = row.ended_by.split("\n")
            place = KeyRow("", budget, int(seq), kept or None)
            return replayed(work, place, named, len(named) == 1)
        row, entries = _open_hold(work, self.hold)
        for name in row.members:
            work.open_line(name)
        snapshots = {entry.name: work.snapshot(entry) for entry in entries}
        order = {entry.name: entry.holds.index(row.id) for entry in entries}
        decisions = work.rule(rules.judge_commit, snapshots, order)
        asking = Spend(
            principal=self.principal, names=named, one=len(named) == 1, key=self.key,
            query=row.query, assumed=row.assumed,
        )  # fmt: skip
        made = _record(work, "commit", asking, request, entries, decisions, {"hold": row.id})
        if all(decided.admitted for decided in decisions.values()):
            places = {name: each.seq for name, each in made.items()}
            work.close_hold(row, "committed", committed_at(places, held_now(entries)))
        return _done(work, asking, request, entries, made)


def _leaves(work: UnitOfWork, members: Sequence[str]) -> tuple[str, ...]:
    """The budgets of a group that are not there as the ancestors of others."""
    above = {entry.name for name in members for entry in work.line(name)[1:]}
    return tuple(sorted(name for name in members if name not in above))


def committed_at(places: Mapping[str, int], held: str | None) -> str:
    """Where a group's commit is found, and the holds that were open after it, for a hold's row."""
    name = min(places)
    return f"{name}\n{places[name]}\n{held or ''}"


@dataclass(frozen=True, kw_only=True)
class Cancel(Request):
    """Let a hold go: its mechanism never started."""

    hold: str
    reason: str

    @classmethod
    def of(cls, principal: str, hold: str, reason: str) -> Self:
        """The request that the arguments of a caller ask for, which are checked."""
        held = arguments.label("hold", hold)
        return cls(principal=principal, hold=held, reason=arguments.reason(reason))

    def run(self, work: UnitOfWork) -> None:
        row, entries = _open_hold(work, self.hold)
        release(work, row, entries, "cancel", self.principal, self.reason)


@dataclass(frozen=True, kw_only=True)
class Expire(Request):
    """Let a hold go whose time is over."""

    id: str

    def run(self, work: UnitOfWork) -> None:
        row = work.holds[self.id]
        if row.status == "open":
            entries = [work.entry(name) for name in row.members]
            release(work, row, entries, "expire", LEDGER, f"its time was over at {row.expires}")


def release(
    work: UnitOfWork, row: HoldRow, entries: list[BudgetRow], type: str, by: str, reason: str
) -> None:
    """Record that a hold is gone from every budget of its group. No state moves."""
    append_group(work, type, by, entries, {"hold": row.id, "reason": reason}, {})
    work.close_hold(row, "cancelled" if type == "cancel" else "expired", None)


def _open_hold(work: UnitOfWork, id: str) -> tuple[HoldRow, list[BudgetRow]]:
    """An open reservation and its budgets."""
    row = work.holds.get(id)
    if row is None:
        raise UnknownHold(f"there is no reservation {id!r}")
    if row.status != "open":
        raise UnknownHold(f"reservation {id!r} is not open: it was {row.status}")
    return row, [work.entry(name) for name in row.members]
