"""The ledger: budgets in a database, with one committer for every spend.

    ledger = rz.open_ledger("sqlite:///budgets.db")
    ledger.create_budget("census", rz.GdpResidueFilter(mu=1.0))
    receipt = ledger.spend("census", rz.laplace(scale=20.0), key="monday-17")

`docs/guarantee.md` states what it promises, and under which faults.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqlalchemy import select

from residua import checks
from residua.errors import StoreUnavailable, UnknownTable
from residua.ledger.api.guard import Guard
from residua.ledger.api.views import ANCHOR_STANDBYS, Budget, Status, by_data, promises, view
from residua.ledger.domain import arguments, clock, rules
from residua.ledger.domain.receipts import Answer, Hold, Receipt, Reservation
from residua.ledger.operations.budgets import Create, Refresh, Retire, new_filter
from residua.ledger.operations.committer import Committer
from residua.ledger.operations.early_decisions import Compute, here, quickly
from residua.ledger.operations.requests import Request, binding, snapshots_now
from residua.ledger.operations.spending import Cancel, Commit, Reserve, Spend, decide_all
from residua.ledger.operations.tables import Declare
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.recovery.anchor_check import why_closed
from residua.ledger.recovery.export import (
    Stored,
    chain,
    export,
    export_from,
    history,
    snapshot,
    table_in,
)
from residua.ledger.recovery.recover import Recovered, recover
from residua.ledger.storage import schema
from residua.ledger.storage.rows import DeclaredTable, declared_tables, hold_of
from residua.ledger.storage.store import Store, address_of, opened_to_read
from residua.mechanisms import relations
from residua.records import Record

if TYPE_CHECKING:
    from residua.data.declarations import Table

_B, _H = schema.budgets, schema.holds


class Ledger:
    """An open ledger, acting for one principal. Safe to share between threads."""

    def __init__(self, committer: Committer, principal: str = "local"):
        self._committer = committer
        self._compute: Compute = here
        self.principal = arguments.label("principal", principal)

    @property
    def id(self) -> str:
        """The ledger's id, made once."""
        return self._committer.ledger

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written, if so."""
        return None if self._committer.closed is None else str(self._committer.closed)

    def why_closed(self) -> str | None:
        """Why opening it for writing would give a read-only ledger, or None; looked up now."""
        return why_closed(self._committer)

    @property
    def store(self) -> Store:
        """The database behind it."""
        return self._committer.store

    def as_principal(self, name: str) -> Ledger:
        """The same ledger, acting for another principal. Keys belong to a principal."""
        other = copy.copy(self)
        other.principal = arguments.label("principal", name)
        return other

    def with_compute(self, compute: Compute) -> Ledger:
        """The same ledger, for which `compute(function, *arguments)` makes what may take long.

        Decisions are pure functions whose arguments and results can be pickled, so it may call them
        in another process. What it raises comes out of the call, and then nothing was spent.
        """
        other = copy.copy(self)
        other._compute = compute
        return other

    # -- budgets ------------------------------------------------------------------------

    def create_budget(
        self,
        name: str,
        filter: Any,
        relation: str | None = None,
        unit: str | None = None,
        parent: str | None = None,
        partition: str | None = None,
        data: str | None = None,
        window: float | None = None,
        shares_data: bool = False,
    ) -> Budget:
        """A new budget. Without a parent it is a cap; under one a quota, or a partition of it.

        Args:
            name: the name of the budget.
            filter: a filter, or its JSON.
            relation: the neighbouring relation; the parent's, or add-remove, by default.
            unit: whose privacy is protected; the parent's, or person, by default.
            parent: the budget of which it is a quota or a partition.
            partition: the label of a disjoint part of the parent's data.
            data: a label for the data set.
            window: seconds, at least 1, after which it starts again; a partition has that of its
                parent or none.
            shares_data: whether there may be a second cap on the same data.

        Raises:
            BudgetExists: there is a budget of this name, or another cap on the data.
        """
        above = arguments.optional(arguments.label, "parent", parent)
        request = Create(
            principal=self.principal,
            names=(arguments.new_label("name", name), *([] if above is None else [above])),
            new=quickly(self._compute, new_filter, filter),
            relation=None if relation is None else relations.relation(relation),
            unit=arguments.optional(arguments.new_label, "unit", unit),
            parent=above,
            partition=arguments.optional(arguments.new_label, "partition", partition),
            data=arguments.optional(arguments.new_label, "data", data),
            window=arguments.window(window),
            shares_data=checks.flag("shares_data", shares_data),
        )
        self._committer.submit(request)
        return self.budget(name)

    def budget(self, name: str) -> Budget:
        """The present state of a budget."""
        return view(self._committer.look([arguments.label("name", name)], partitions=True), name)

    def budgets(self) -> tuple[Budget, ...]:
        """The present state of all budgets, in the order of their creation."""
        with self.store.reading() as connection:
            names = list(connection.execute(select(_B.c.name).order_by(_B.c.id)).scalars())
        work = self._committer.look(names, partitions=True)
        return tuple(view(work, name) for name in names)

    def retire(self, name: str, reason: str) -> None:
        """Close a budget for good and release its open holds."""
        names = (arguments.label("name", name),)
        why = arguments.reason(reason)
        self._committer.submit(Retire(principal=self.principal, names=names, reason=why))

    def refresh(self, name: str) -> Budget:
        """Begin a new window if the old one is over. It happens by itself, too, when asked."""
        names = (arguments.label("name", name),)
        self._committer.submit(Refresh(principal=self.principal, names=names))
        return self.budget(name)

    # -- spending -----------------------------------------------------------------------

    def check(self, budgets: Any, query: Any, *, assume_budget_relation: bool = False) -> Answer:
        """Whether a spend would be admitted now. Nothing is written."""
        request = Spend.of(self.principal, budgets, query, None, assume_budget_relation)

        def rule(work: UnitOfWork) -> Answer:
            entries, decisions = decide_all(work, request, rules.spend)
            refused_by, reason = binding(decisions, entries, checked=True)
            left = snapshots_now(work, request.query, request.names, request.one, entries)
            return Answer(refused_by is None, reason, refused_by, remainder=left)

        return self._committer.look_and_rule(request.names, rule, self._compute)

    def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Receipt:
        """Debit a query, durably. Then run its mechanism once, if the receipt permits it.

        Args:
            budgets: the name of a budget, or names of several that are charged together.
            query: a mechanism, a PLD, or JSON.
            key: the caller's id; the same key gets the same receipt again, which permits no run.
            assume_budget_relation: whether to take a black box that declares no relation to be of
                the budget's; this is recorded.

        Returns:
            The receipt, also of a refusal, which spends nothing.

        Raises:
            KeyReused: the key came before with another request.
            OutcomeUnknown: the connection died; the same key tells the outcome.
        """
        request = Spend.of(self.principal, budgets, query, key, assume_budget_relation)
        receipt: Receipt = self._submit(request)
        return receipt

    def reserve(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        ttl: float = 3600.0,
        *,
        assume_budget_relation: bool = False,
        question: Mapping[str, Any] | None = None,
    ) -> Reservation:
        """Hold budget for a mechanism that has not started, for `ttl` seconds at most.

        Arguments and errors are as for `spend`; `question` is for sessions, which record it.
        """
        asked = self.principal, budgets, query, key, assume_budget_relation
        request = Reserve.of(*asked, ttl=ttl, question=question)
        held: Reservation = replace(self._submit(request), ledger=self)
        return held

    def commit(self, hold: str, key: str | None = None) -> Receipt:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        receipt: Receipt = self._submit(Commit.of(self.principal, hold, key))
        return receipt

    def _submit(self, request: Request) -> Any:
        return self._committer.submit(request, self._compute)

    def cancel(self, hold: str, reason: str = "cancelled") -> None:
        """Let a hold go whose mechanism was not started and never will be."""
        self._committer.submit(Cancel.of(self.principal, hold, reason))

    def guard(
        self,
        budgets: Any,
        mechanism: Any,
        key: str | None = None,
        *,
        ttl: float = 60.0,
        assume_budget_relation: bool = False,
    ) -> Guard:
        """A decorator and a context manager: hold, commit, and only then run, once.

        `mechanism` may be a function of the call's arguments that gives the description. It raises
        `Refused`, `AlreadySpent` for a key whose run was permitted before, and `MechanismFailed`,
        always in the same words, for whatever goes wrong inside.
        """
        return Guard(self, budgets, mechanism, key, ttl, assume_budget_relation)

    def holds(self) -> tuple[Hold, ...]:
        """The open reservations, oldest first, with their ages by the database's time."""
        with self.store.reading() as connection:
            work = UnitOfWork(
                connection, self.store, self._committer.ledger, self._committer.incarnation
            )
            work.open(())
            query = select(_H).where(_H.c.status == "open").order_by(_H.c.made, _H.c.id)
            found, now = [hold_of(row) for row in connection.execute(query)], work.now
        return tuple(
            Hold(
                row.id, row.members, row.mechanism, row.principal, row.made, row.expires,
                clock.age(row.made, now), row.expires <= now,
            )
            for row in found
        )  # fmt: skip

    # -- tables -------------------------------------------------------------------------

    def add_table(self, name: str, **declared: Any) -> Table:
        """Declare a table that analysts may ask about, or another version of its declaration.

        The arguments are those of `data.declarations.declare`.
        """
        from residua.data.declarations import declare

        return declare(self, name, **declared)

    def declare_table(
        self, name: str, budget: str, declaration: Mapping[str, Any] | None
    ) -> DeclaredTable:
        """Record a declaration as it is, or that the table is removed (None)."""
        self._submit(Declare.of(self.principal, name, budget, declaration))
        return self.declared_tables(removed=True)[name]

    def declared_tables(self, removed: bool = False) -> dict[str, DeclaredTable]:
        """The last declaration of each table, by name."""
        with self.store.reading() as connection:
            return declared_tables(connection, removed)

    def remove_table(self, name: str) -> None:
        """Answer nothing more about a table; its name cannot be used again."""
        found = self.declared_tables().get(arguments.label("table", name))
        if found is None:
            raise UnknownTable(f"there is no table {name!r}")
        self.declare_table(name, found.budget, None)

    # -- reading ------------------------------------------------------------------------

    def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> tuple[Record, ...]:
        """The records of a budget, oldest first.

        Args:
            name: the name of the budget.
            after: the number of the record after which they begin.
            limit: how many at most.
        """
        first = -1 if after is None else checks.count("after", after)
        most = None if limit is None else checks.count("limit", limit)
        entry = self._committer.look([arguments.label("name", name)]).entry(name)
        stored = Stored(entry.id, name, entry.head_seq)
        return history(self.store.reading, stored, first, most)

    def status(self) -> Status:
        """Budgets, open holds with their ages, what is promised of each data set, the store."""
        committer, facts = self._committer, self.store.facts()
        kept = {} if committer.anchor is None else committer.anchor.facts()
        if "standbys" in kept:
            facts[ANCHOR_STANDBYS] = kept["standbys"]
        budgets = self.budgets()
        detached = tuple(one.detached() for one in budgets if one.data and one.parent is None)
        return Status(
            ledger=committer.ledger,
            incarnation=committer.incarnation,
            store=facts,
            anchor=str(committer.anchor),
            read_only=self.read_only,
            budgets=budgets,
            holds=self.holds(),
            data=quickly(self._compute, by_data, detached),
            promises=promises(facts, self.read_only),
        )

    def verify(
        self,
        expect_head: Any = None,
        since: Any = None,
        jobs: int = 1,
        progress: Any = None,
        limit: float | None = None,
        total_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> Any:
        """Check every chain and re-prove every step, with arithmetic that shares nothing with this.

        The heads that the anchor knows are expected in any case.

        Args:
            expect_head: heads that are expected besides: a receipt, a hash, budgets with theirs, or
                a list of these.
            since: what an earlier report has proven: budgets with a number and a hash.
            jobs: the number of processes.
            progress: is called with the number of steps that are done, and of all.
            limit: seconds of counted work after which a step is left undecided (default: 60).
            total_limit: the same for all steps together (default: 3600).
            memory_limit: megabytes of counted memory for a step (default: 1024).

        Returns:
            The verifier's report.
        """
        options = {
            # Before the records are looked at: what others acknowledge meanwhile is not expected.
            "anchored": self._anchored(), "expect_head": expect_head, "since": since, "jobs": jobs,
            "progress": progress, "limit": limit, "total_limit": total_limit,
            "memory_limit": memory_limit,
        }  # fmt: skip
        if self._compute is here:
            return verify(self.store, options)
        return self._compute(verify_at, address_of(self.store), options)

    def _anchored(self) -> Any:
        """The heads that the anchor knows; None where there is none."""
        anchor = self._committer.anchor
        try:
            said = None if anchor is None else anchor.read()
        except OSError as error:
            raise StoreUnavailable(
                f"the anchor {anchor} cannot be read ({error.strerror}), so truncation would not be"
                " noticed: verify as a user who may read it, or give a copy as anchor"
            ) from error
        return None if said is None else dict(said.marks)

    def export(self, to: str | Path | IO[str]) -> int:
        """Write every record, and the tables they name, as JSON Lines; the number of lines."""
        if self._compute is here:
            return export(self.store, to)
        return self._compute(export_from, address_of(self.store), to)

    def recover(self, export: Any = None, retire: bool = False, heads: Any = None) -> Recovered:
        """After a restored backup: take over exported records, or retire what lost spends.

        Args:
            export: the path or the lines of an export that is newer than the backup.
            retire: whether to retire budgets that lost spends, as fully spent.
            heads: the last record of each budget, where the anchor is gone too: a receipt, or a
                hash (or a number and a hash) by name. The caller answers for them, on record.

        Raises:
            ReadOnlyLedger: budgets may still lack spends; nothing was changed.
        """
        flag = checks.flag("retire", retire)
        return recover(self._committer, self.principal, export, flag, heads)

    # -- closing ------------------------------------------------------------------------

    def close(self) -> None:
        """Close files and connections. It cannot spend afterwards; reading opens them again."""
        self._committer.was_closed = True
        self._committer.closed = StoreUnavailable(f"{self.store.place} is closed: open it again")
        self.store.close()
        if self._committer.anchor is not None:
            self._committer.anchor.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"open_ledger({str(self.store.place)!r}, principal={self.principal!r})"


def verify(store: Store, options: dict[str, Any]) -> Any:
    """The report on all chains of the verifier, which is loaded only now; it has these options."""
    verifier, reading = import_module("residua.verify"), store.reading
    with reading() as connection:
        budgets = snapshot(connection)
    chains = {name: chain(reading, id, last) for id, name, last in budgets}
    return verifier.verify_records(chains, tables=lambda hash: table_in(reading, hash), **options)


def verify_at(address: str, options: dict[str, Any]) -> Any:
    """The same in a process that has nothing open."""
    with opened_to_read(address) as store:
        return verify(store, options)
