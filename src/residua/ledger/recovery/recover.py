"""After a restored backup: re-apply what was exported, or retire what may have lost spends.

A store behind its anchor has lost spends that were acknowledged, and what they cost cannot be known
from it. Records of an export that continue a chain are taken over as they are, with their keys and
holds. That nothing comes after them is known from the anchor; without one it cannot be known, and
the operator must vouch for the last record of each budget. A budget that is still behind then, or
that nobody vouches for, is retired as fully spent by a `recover` record; one that the store does
not even know gets a chain that says so, so that its name cannot be used again. Every other chain
that was added to or vouched for says so by a `resume` record. Then the ledger is a new incarnation
with a new anchor. A ledger without budgets becomes the one whose export it is given: its store was
lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sqlalchemy import Connection, select

from residua import checks
from residua.errors import (
    ArgumentTypeError,
    BrokenRecord,
    LedgerError,
    OutcomeUnknown,
    ReadOnlyLedger,
    StoreUnavailable,
)
from residua.ledger.domain import clock
from residua.ledger.domain.budget_row import RETIRING, BudgetRow
from residua.ledger.domain.receipts import Receipt, Reservation
from residua.ledger.operations.budgets import write_off
from residua.ledger.operations.committer import Committer
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.recovery.anchor_check import check_marked
from residua.ledger.recovery.export import Exported, chain, read_export, table
from residua.ledger.recovery.export_validation import check_fields, naming
from residua.ledger.recovery.projections import Derivation
from residua.ledger.storage import schema
from residua.ledger.storage.anchor import Anchored, behind, newer, next_incarnation
from residua.ledger.storage.schema import HOME, UNANCHORED, facts_in, set_fact
from residua.ledger.storage.store import TRIES, Again, CommitUnknown, Lost
from residua.records import Record, follows

_B = schema.budgets
_ID = re.compile("[0-9a-f]{32}")
"""The form of a ledger's id, which names files."""

Heads = Mapping[str, tuple[int | None, str]]


@dataclass(frozen=True)
class Recovered:
    """The result of a recovery."""

    applied: int
    """Records that were taken over."""
    retired: tuple[str, ...]
    """Budgets that were retired as fully spent."""


def recover(
    committer: Committer, by: str, export: Any = None, retire: bool = False, heads: Any = None
) -> Recovered:
    """Make a ledger that lost spends writable again; what was done."""
    if committer.anchor is None:
        raise LedgerError("a ledger that was opened without an anchor cannot be recovered")
    if committer.read_only:
        raise ReadOnlyLedger(
            f"{committer.store.place} was opened read-only: open it for writing to recover it"
        )
    if committer.was_closed:
        raise StoreUnavailable(f"{committer.store.place} is closed: open it again")
    vouched = _read_heads(heads)
    given = None if export is None else read_export(export)
    try:
        return _retry(committer, by, given, vouched, retire)
    finally:
        committer.anchor.belong(committer.ledger)


def _retry(
    committer: Committer, by: str, given: Exported | None, vouched: Heads, retire: bool
) -> Recovered:
    where = committer.store.place
    for left in range(TRIES - 1, -1, -1):
        try:
            done = _Recovery(committer, by, given, vouched).run(retire)
            break
        except Again as error:
            if isinstance(error, Lost) or not left:
                raise StoreUnavailable(
                    f"{where} became unavailable or was busy ({error}); nothing was recovered"
                ) from error
        except CommitUnknown as error:
            raise OutcomeUnknown(
                f"{where} became unavailable while committing ({error}); it is unknown whether"
                " the ledger was recovered: run the same recovery again"
            ) from error
    committer.ledger = done.ledger
    try:
        _start_anchor(committer, done)
    except ReadOnlyLedger as error:
        committer.closed = error
        raise
    except (OSError, LedgerError, Again, CommitUnknown) as error:
        committer.closed = ReadOnlyLedger(
            f"the recovery of {where} is stored, but the anchor {committer.anchor} could not be"
            f" started ({error}): recover it again"
        )
        raise StoreUnavailable(str(committer.closed)) from error
    return done.result


def _start_anchor(committer: Committer, done: _Recovery) -> None:
    incarnation, heads = done.incarnation, done.heads
    assert committer.anchor is not None
    with committer.store.reading() as connection:
        _check_present(committer, connection, incarnation)
    committer.anchor.start(
        Anchored(committer.ledger, incarnation, heads),
        lambda marks: check_marked(committer.store, done.work.entries, done.said, marks),
    )
    with committer.store.writing() as connection:
        committer.store.lock_schema(connection)
        _check_present(committer, connection, incarnation)
        set_fact(connection, UNANCHORED, None)
        committer.store.commit(connection, lambda other: UNANCHORED not in facts_in(other))
    committer.incarnation, committer.anchored, committer.closed = incarnation, heads, None
    committer.anchor.incarnation = incarnation
    committer.others.clear()
    committer.pending_marks.clear()


def _check_present(committer: Committer, connection: Connection, incarnation: str) -> None:
    """Raise if another recovery has finished since: then that one begins the anchor."""
    if facts_in(connection).get("incarnation") != incarnation:
        raise ReadOnlyLedger(
            f"another process has recovered {committer.store.place} since then; open it again"
        )


def _anchor_contents(committer: Committer) -> Anchored | None:
    assert committer.anchor is not None
    try:
        said = committer.anchor.read()
    except BrokenRecord:
        return None
    except OSError as error:
        raise StoreUnavailable(f"the anchor {committer.anchor} cannot be read: {error}") from error
    return said


def _read_heads(heads: Any) -> Heads:
    """The last record of budgets, as a receipt has it or as a caller says."""
    if heads is None:
        return {}
    if isinstance(heads, Receipt | Reservation):
        return dict(heads.budgets)
    found: dict[str, tuple[int | None, str]] = {}
    for name, mark in heads.items() if isinstance(heads, Mapping) else [("", heads)]:
        named = isinstance(heads, Mapping) and isinstance(name, str)
        match mark:
            case str() if named:
                found[checks.label("heads", name)] = (None, mark)
            case [int(seq), str(hash)] if named:
                found[checks.label("heads", name)] = (seq, hash)
            case _:
                raise ArgumentTypeError(
                    "heads must be a receipt, or map budgets to a hash or to a number and a hash,"
                    f" got {checks.shown(heads)}"
                )
    return found


class _Recovery:
    """One try, in one transaction."""

    def __init__(self, committer: Committer, by: str, given: Exported | None, vouched: Heads):
        self.committer, self.by = committer, by
        self.given, self.vouched = given, vouched
        self.said: Anchored | None = None
        self.heads: dict[str, tuple[int, str]] = {}
        self.ledger = committer.ledger
        self.incarnation = ""
        self.result = Recovered(0, ())
        self._applied: dict[str, int] = {}
        self._firsts: dict[str, int] = {}
        """The number of the first record of each budget that was taken over."""
        self._begun = ""
        """The incarnation of the anchor that was begun with the store, before it was another's."""

    def run(self, retire: bool) -> _Recovery:
        store = self.committer.store
        with store.writing() as connection:
            store.lock_schema(connection)
            facts = facts_in(connection)
            names = connection.execute(select(_B.c.name).order_by(_B.c.name)).scalars().all()
            # Whatever these are by now: a recovery may have been cut, and is done again.
            self.ledger = facts.get("ledger", "")
            assert self.committer.anchor is not None
            self.committer.anchor.belong(self.ledger)
            if not names:
                self._adopt(connection)
            self.work = work = UnitOfWork(
                connection, store, self.ledger, facts.get("incarnation", "")
            )
            work.open(names, lock=True)
            # Not before: another recovery may have begun it again since.
            self.said = self._own_anchor_contents(facts)
            self._trust(facts, store.identity(connection))
            lacking = self._reapply()
            if self.ledger != facts["ledger"] and self._is_ahead():
                self.trusted = False
            lost = self._lost(lacking)
            if lost and not retire:
                shown = "; ".join(f"{name!r}: {why}" for name, why in list(lost.items())[:3])
                raise ReadOnlyLedger(
                    f"{len(lost)} budget{'s' * (len(lost) > 1)} may still lack spends ({shown}):"
                    " give an export that has them, vouch for the last record of each (heads), or"
                    " retire them as fully spent"
                )
            for name, why in lost.items():
                write_off(work, name, why, self.by)
            for name in work.entries:
                self._resume(name)
            said = "" if self.said is None else self.said.incarnation
            known = [facts["incarnation"], said]
            if self.ledger != facts["ledger"]:
                # It is unknown how many the lost store had, but not more than one a second.
                known.append(f"{int(clock.moment(work.now).timestamp())}-")
            self.incarnation = next_incarnation(*known)
            set_fact(connection, "incarnation", self.incarnation)
            set_fact(connection, UNANCHORED, said or self._begun or None)
            set_fact(connection, HOME, store.identity(connection) or None)
            self._check_whole()
            work.flush()
            store.commit(connection, self._is_committed)
        self.heads = {name: (each.head_seq, each.head_hash) for name, each in work.entries.items()}
        self.result = Recovered(sum(self._applied.values()), tuple(lost))
        return self

    def _own_anchor_contents(self, facts: Mapping[str, str]) -> Anchored | None:
        """The anchor's contents for this ledger; an anchor of another ledger is not replaced."""
        said = _anchor_contents(self.committer)
        if said is None or said.ledger == self.ledger:
            return said
        if not said.marks and (
            said.ledger == facts["ledger"] or said.incarnation == facts.get(UNANCHORED)
        ):
            # It was begun with this store, which has become another ledger's: now, or by a
            # recovery that was cut before it began the anchor.
            self._begun = said.incarnation
            return None
        raise ReadOnlyLedger(
            f"the anchor {self.committer.anchor} belongs to another ledger, {said.ledger}, and this"
            f" is {self.ledger}: if that ledger was lost, recover its export into a ledger without"
            " budgets; otherwise use another anchor"
        )

    def _adopt(self, connection: Connection) -> None:
        """Become the ledger of an export, where there is nothing yet that could be lost."""
        chains = {} if self.given is None else self.given.chains
        found = {record.body["ledger"] for records in chains.values() for record in records}
        if len(found) != 1 or found == {self.ledger}:
            return
        (other,) = found
        if not _ID.fullmatch(other):
            raise BrokenRecord(f"the ledger id of the export is invalid: {checks.shown(other)}")
        said = _anchor_contents(self.committer)
        if said is not None and said.ledger == self.ledger and said.marks:
            raise ReadOnlyLedger(
                f"{self.committer.store.place} has lost its own budgets, which the anchor"
                f" {self.committer.anchor} knows, and cannot become the ledger {other}: recover it,"
                " or give the export to a new ledger"
            )
        self.ledger = other
        set_fact(connection, "ledger", other)
        assert self.committer.anchor is not None
        self.committer.anchor.belong(other)

    def _is_committed(self, connection: Connection) -> bool:
        return facts_in(connection).get("incarnation") == self.incarnation

    def _trust(self, facts: Mapping[str, str], home: str) -> None:
        """Whether the anchor knows everything that was acknowledged, or at least of some budgets.

        One of an older incarnation does not. A file of one machine may not know what others did;
        where the database was moved or restored, it counts for what it knows to the last record.
        """
        own = facts["incarnation"]
        said = None if self.said is None else self.said.incarnation
        self.trusted = said is not None and (
            said in (own, facts.get(UNANCHORED)) or newer(said, own)
        )
        anchor, store = self.committer.anchor, self.committer.store
        shared = anchor is not None and anchor.shared
        if self.ledger != facts["ledger"]:
            # The store was lost. Of one that several machines wrote to, a file knows only a part.
            self.trusted = said is not None and (shared or not store.locks_rows)
        self.exact = not shared and facts.get(HOME, home) != home

    def _is_ahead(self) -> bool:
        """Whether there are records that the anchor does not know: then it was not the last one."""
        marks = {} if self.said is None else self.said.marks
        return any(
            entry.head_seq > marks.get(name, (-1, ""))[0]
            for name, entry in self.work.entries.items()
        )

    # -- records ------------------------------------------------------------------------

    def _reapply(self) -> dict[str, str]:
        """Take over what continues the chains; the budgets that lack what it was written with."""
        if self.given is None:
            return {}
        work, derived = self.work, Derivation(self.work)
        top = max((entry.id for entry in work.entries.values()), default=0)
        for name, records in self.given.chains.items():
            _check(work.ledger, name, records)
            known = work.entries.get(name)
            seq = -1 if known is None else known.head_seq
            if known is not None:
                _check_same(work.connection, known, records)
            new = records[seq + 1 :]
            for record in new:
                check_fields(record)
            work.load_keys([(r.body["by"], r.key) for r in new if r.key is not None])
            work.load_holds(r.body["hold"] for r in new if "hold" in r.body)
            for record in new:
                top += record.type == "create"
                with naming(record):
                    derived.apply(record, top)
            if name in derived.doubted:
                self._prove(name, records, derived.doubted[name])
            if new:
                self._applied[name], self._firsts[name] = len(new), seq + 1
        derived.finish()
        work.add_tables(self.given.tables)
        return derived.missing()

    def _check_whole(self) -> None:
        """Raise where the verifier finds fault with what was taken over, before it is written.

        It looks at all chains together: groups, holds, families and retirements. Without the
        packages that it needs, this is left to the verifier of the ledger.
        """
        if not self._applied:
            return
        try:
            verifier = import_module("residua.verify.verification")
        except ModuleNotFoundError:
            return
        work, connection = self.work, self.work.connection
        new = work.appended()
        chains = {
            name: [*chain(lambda: nullcontext(connection), entry.id), *new.get(name, ())]
            for name, entry in work.entries.items()
        }
        for problem in verifier.check_records(
            chains, lambda hash: work.table(hash) or table(connection, hash)
        ):
            entry = self.work.entries[problem.budget]
            first = self._firsts.get(problem.budget)
            # What was wrong in the store before is not for a recovery to judge.
            if first is not None and (problem.seq is None or problem.seq >= first):
                where = entry.head_seq if problem.seq is None else problem.seq
                raise BrokenRecord(
                    f"the export of {entry.name!r} at number {where}: {problem.what}"
                )

    def _prove(self, name: str, records: Sequence[Record], first: int) -> None:
        """Raise unless the verifier proves each step from a number on."""
        assert self.given is not None
        tables, connection = self.given.tables, self.work.connection
        try:
            verifier = import_module("residua.verify")
        except ModuleNotFoundError as error:
            raise BrokenRecord(
                f"the export of {name!r} at number {first} is not what its filter decides here, and"
                f" {error.name} is missing to have it proven: install residua[verify]"
            ) from error
        report = verifier.verify_records(
            {name: records},
            tables=lambda hash: tables.get(hash) or table(connection, hash),
            since={name: first - 1} if first else None,
        )
        for step in report.steps:
            if step.verdict != "proven":
                raise BrokenRecord(
                    f"the export of {name!r} at number {step.seq} is not what its filter decides"
                    f" here, and the verifier has not proven it: {step.verdict}, {step.reason}"
                )

    def _lost(self, lost: dict[str, str]) -> dict[str, str]:
        """The budgets that may still lack spends, unless they were retired for it before."""
        work = self.work
        if self.said is not None:
            heads = {name: _head(entry) for name, entry in work.entries.items()}
            lost |= behind(self.said.marks, heads, lambda name, seq: work.record_at(name, seq).hash)
        for name in self.vouched:
            if name not in work.entries:
                lost.setdefault(name, "a record was vouched for, but nothing of the budget is left")
        for name, entry in work.entries.items():
            if name in self.vouched and not self._ends_with(entry, *self.vouched[name]):
                lost.setdefault(
                    name, f"it ends with record {entry.head_seq}, but another one was vouched for"
                )
            elif name not in self.vouched and not self._anchored(entry):
                lost.setdefault(
                    name,
                    f"records after {entry.head_seq} may be lost: the anchor does not rule it out,"
                    " and its last record was not vouched for",
                )
        return {name: why for name, why in lost.items() if not _is_given_up(work, name)}

    def _anchored(self, entry: BudgetRow) -> bool:
        """Whether the anchor tells that nothing was acknowledged after the head."""
        if self.said is None or not self.trusted:
            return False
        return not self.exact or self.said.marks.get(entry.name) == _head(entry)

    def _ends_with(self, entry: BudgetRow, number: int | None, wanted: str) -> bool:
        """Whether a record is the last one, but for those of a recovery that is done again."""
        seq, hash = _head(entry)
        while hash != wanted:
            record = self.work.record_at(entry.name, seq)
            if record.type != "resume":
                return False
            seq, hash = seq - 1, record.prev
        return number in (None, seq)

    def _resume(self, name: str) -> None:
        """Record in a chain that goes on what was done, and how it is known to be complete."""
        entry, applied = self.work.entries[name], self._applied.get(name, 0)
        anchored = self._anchored(entry)
        if entry.retired or (anchored and not applied):
            return
        if anchored:
            known = f"the anchor {self.committer.anchor} knows of no later one"
        else:
            seq, hash = _head(entry)
            known = f"{self.by!r} vouches for number {seq}, {hash}, as the last one"
        state = entry.plain_state
        fields = {
            "reason": f"recovered: {applied} records were taken over; {known}",
            "before": state,
            "after": state,
        }
        self.work.append(entry, "resume", self.by, fields, entry.state_text)


def _check_same(connection: Connection, entry: BudgetRow, records: Sequence[Record]) -> None:
    """Raise where a chain of the store is not what an export has of it, as far as both go."""
    for seq, (mine, theirs) in enumerate(
        zip(chain(lambda: nullcontext(connection), entry.id), records, strict=False)
    ):
        if isinstance(mine, bytes) or mine.hash != theirs.hash:
            raise BrokenRecord(
                f"the export of {entry.name!r} is not the store's chain at number {seq}: one of"
                " them was changed (a ledger without budgets can be given the export of one that"
                " is damaged)"
            )


def _head(entry: BudgetRow) -> tuple[int, str]:
    return entry.head_seq, entry.head_hash


def _check(ledger: str, name: str, records: Sequence[Record]) -> None:
    before: Record | None = None
    for record in records:
        wrong = follows(before, record)
        if wrong is not None:
            raise BrokenRecord(f"the export of {name!r} at number {record.seq}: {wrong}")
        if record.body["ledger"] != ledger:
            raise BrokenRecord(f"the export is of another ledger, {record.body['ledger']}")
        before = record


def _is_given_up(work: UnitOfWork, name: str) -> bool:
    """Whether nothing can be spent from it, by its last record."""
    entry = work.entries.get(name)
    if entry is None or not entry.retired:
        return False
    return work.record_at(name, entry.head_seq).type in RETIRING
