"""The ledger: budgets in a database, spent from through one gate.

    ledger = rz.open_ledger("sqlite:///budgets.db")
    ledger.create_budget("census", rz.GdpResidueFilter(mu=1.0))
    receipt = ledger.spend("census", rz.laplace(scale=20.0), key="monday-17")

What it promises, and under which faults, is in `docs/guarantee.md`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from sqlalchemy import select

from residuum import checks
from residuum.ledger import arguments, clock, rules, schema
from residuum.ledger.asked import Asked, asked
from residuum.ledger.budgets import Create, Refresh, Retire
from residuum.ledger.gate import Gate, overdue
from residuum.ledger.holding import Cancel, Commit, Reserve
from residuum.ledger.page import Page
from residuum.ledger.receipts import Answer, Hold, Receipt, Reservation
from residuum.ledger.requests import Done, binding, standings_now
from residuum.ledger.spending import Spend, judged
from residuum.ledger.store import Store
from residuum.ledger.views import Budget, view
from residuum.mechanisms import relations
from residuum.records import Record

_B, _R, _H = schema.budgets, schema.records, schema.holds


class Ledger:
    """An open ledger, acting for one principal. Safe to share between threads."""

    def __init__(self, gate: Gate, principal: str = "local"):
        self._gate = gate
        self.principal = arguments.label("principal", principal)

    @property
    def id(self) -> str:
        """The ledger's id, made once."""
        return self._gate.ledger

    @property
    def read_only(self) -> str | None:
        """Why nothing can be written, if so."""
        return None if self._gate.closed is None else str(self._gate.closed)

    @property
    def _store(self) -> Store:
        return self._gate.store

    def as_principal(self, name: str) -> Ledger:
        """The same ledger, acting for somebody else. Keys belong to a principal."""
        other = copy.copy(self)
        other.principal = arguments.label("principal", name)
        return other

    # -- budgets ------------------------------------------------------------------------

    def create_budget(
        self,
        name: str,
        filter: Any,
        neighbouring: str | None = None,
        unit: str | None = None,
        parent: str | None = None,
        partition: str | None = None,
        data: str | None = None,
        window: float | None = None,
        shares_data: bool = False,
    ) -> Budget:
        """A new budget. Without a parent it is a cap; under one a quota, or a partition of it.

        The relation is add-remove and the unit person unless said otherwise; a child has those of
        its parent. A `window` (seconds) makes it start anew each time that has passed.
        """
        request = Create(
            self.principal,
            arguments.label("name", name),
            arguments.fresh_filter(filter),
            None if neighbouring is None else relations.relation(neighbouring),
            arguments.optional_label("unit", unit),
            arguments.optional_label("parent", parent),
            arguments.optional_label("partition", partition),
            arguments.optional_label("data", data),
            None if window is None else checks.positive("window", window),
            checks.flag("shares_data", shares_data),
        )
        self._gate.submit(request)
        return self.budget(name)

    def budget(self, name: str) -> Budget:
        """A budget as it stands now."""
        with self._reading([arguments.label("name", name)]) as page:
            return view(page, name)

    def budgets(self) -> tuple[Budget, ...]:
        """All budgets as they stand now, in the order in which they were made."""
        with self._store.reading() as connection:
            names = list(connection.execute(select(_B.c.name).order_by(_B.c.id)).scalars())
        with self._reading(names) as page:
            return tuple(view(page, name) for name in names)

    def retire(self, name: str, reason: str) -> None:
        """Close a budget for good; its open holds are let go."""
        request = Retire(self.principal, arguments.label("name", name), arguments.reason(reason))
        self._gate.submit(request)

    def refresh(self, name: str) -> Budget:
        """Begin a new window if the old one is over. It happens by itself, too, when asked."""
        self._gate.submit(Refresh(self.principal, arguments.label("name", name)))
        return self.budget(name)

    # -- spending -----------------------------------------------------------------------

    def check(self, budgets: Any, query: Any, *, assume_budget_relation: bool = False) -> Answer:
        """Whether a spend would be admitted now. Nothing is written."""
        request = self._spend(budgets, query, None, assume_budget_relation)
        with self._reading(request.names) as page:
            entries, rulings = judged(page, request, rules.spend)
            refused_by, reason = binding(rulings)
            standings = standings_now(page, request.asked, request.names, request.one, entries)
            return Answer(refused_by is None, reason, refused_by, standings)

    def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Receipt:
        """Debit a query, durably. Run its mechanism after this, once, and only if it says so.

        The same key asks for the same receipt again, and permits no other run.
        """
        request = self._spend(budgets, query, key, assume_budget_relation)
        return _receipt(self._gate.submit(request))

    def _spend(self, budgets: Any, query: Any, key: Any, assumed: Any) -> Spend:
        names, one = arguments.names(budgets)
        return Spend(
            self.principal, names, one, _asked(query), arguments.key(key),
            checks.flag("assume_budget_relation", assumed),
        )  # fmt: skip

    def reserve(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        ttl: float = 3600.0,
        *,
        assume_budget_relation: bool = False,
    ) -> Reservation:
        """Hold budget for a mechanism that has not started, for `ttl` seconds at most."""
        names, one = arguments.names(budgets)
        request = Reserve(
            self.principal, names, one, _asked(query), arguments.key(key),
            checks.flag("assume_budget_relation", assume_budget_relation),
            checks.positive("ttl", ttl),
        )  # fmt: skip
        done = self._gate.submit(request)
        body = done.record.body
        return Reservation(
            id=body["hold"],
            expires=body["expires"],
            **_parts(done),
            _ledger=self,
        )

    def commit(self, hold: str, key: str | None = None) -> Receipt:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        under = None if key is None else arguments.key(key)
        request = Commit(self.principal, arguments.label("hold", hold), under)
        return _receipt(self._gate.submit(request))

    def cancel(self, hold: str, reason: str) -> None:
        """Let a hold go whose mechanism was not started and never will be."""
        self._gate.submit(
            Cancel(self.principal, arguments.label("hold", hold), arguments.reason(reason))
        )

    def holds(self) -> tuple[Hold, ...]:
        """The open reservations, oldest first, with their ages by the database's time."""
        with self._reading(()) as page:
            query = select(_H).where(_H.c.status == "open").order_by(_H.c.made, _H.c.id)
            rows = page.connection.execute(query).all()
            return tuple(
                Hold(
                    row.id, tuple(row.members.split("\n")), row.mechanism, row.principal,
                    row.made, row.expires, clock.age(row.made, page.now), row.expires <= page.now,
                )
                for row in rows
            )  # fmt: skip

    # -- reading ------------------------------------------------------------------------

    def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> tuple[Record, ...]:
        """The records of a budget, oldest first: those after a number, at most so many."""
        query = (
            select(_R.c.text)
            .join(_B, _B.c.id == _R.c.budget_id)
            .where(_B.c.name == arguments.label("name", name))
            .order_by(_R.c.seq)
        )
        if after is not None:
            query = query.where(_R.c.seq > checks.count("after", after))
        if limit is not None:
            query = query.limit(checks.count("limit", limit))
        with self._reading([name]) as page:
            page.entry(name)
            return tuple(Record(text) for text in page.connection.execute(query).scalars())

    @contextmanager
    def _reading(self, names: Sequence[str]) -> Iterator[Page]:
        """A page to look at, with what is overdue done to it as the gate would; never written."""
        gate = self._gate
        with self._store.reading() as connection:
            page = Page(connection, self._store, gate.ledger, gate.incarnation)
            page.look()
            page.load(names)
            loaded: set[str] = set()
            while loaded != set(page.entries):
                loaded = set(page.entries)
                held = {id for entry in page.entries.values() for id in entry.holds}
                page.load({n for id in held for n in page.holds[id].members} - loaded)
            for sweep in overdue(page):
                sweep.run(page)
            yield page

    # -- closing ------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of files and connections."""
        self._store.close()
        if self._gate.anchor is not None:
            self._gate.anchor.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"open_ledger({str(self._store.place)!r}, principal={self.principal!r})"


def _asked(query: Any) -> Asked:
    return query if isinstance(query, Asked) else asked(query)


def _parts(done: Done) -> dict[str, Any]:
    body = done.record.body
    return {
        "admitted": body["admitted"],
        "reason": body["reason"],
        "seq": done.record.seq,
        "key": body["key"],
        "replayed": done.replayed,
        "head": done.record.hash,
        "binding": body["binding"],
        "budgets": dict(done.budgets),
        "_standings": done.standings,
    }


def _receipt(done: Done) -> Receipt:
    return Receipt(**_parts(done))
