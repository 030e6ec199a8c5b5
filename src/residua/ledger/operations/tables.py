"""Declaring tables: which version of a declaration a question used is on record.

A declaration is public metadata, recorded in the chain of the budget that the table charges. Its
name is unique in the ledger; versions count up from 1. What it contains is checked by `data/`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from residua.errors import ArgumentError, UnknownTable
from residua.ledger.domain import arguments
from residua.ledger.domain.budget_row import BudgetRow
from residua.ledger.operations.requests import Request
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.storage import schema
from residua.records import Record

_B = schema.budgets
_FIXED = ("unit_column",)
"""What another version of a declaration cannot change: whose privacy is protected."""


@dataclass(frozen=True, kw_only=True)
class Declare(Request):
    """A table under the budget that is named, another version of its declaration, or its end."""

    creates = True

    table: str
    declaration: Mapping[str, Any] | None

    @classmethod
    def of(
        cls, principal: str, table: Any, budget: Any, declaration: Mapping[str, Any] | None
    ) -> Declare:
        """A declaration, its names checked, or the removal of a table."""
        return cls(
            principal=principal, names=(arguments.label("budget", budget),),
            table=arguments.new_label("table", table), declaration=declaration,
        )  # fmt: skip

    def run(self, work: UnitOfWork) -> Record:
        (name,) = self.names
        work.open_line(name)
        entry = work.entry(name)
        if entry.children == "partitions":
            raise ArgumentError(
                f"budget must not be {name!r}, which is divided into partitions: declare a table"
                " for each of them"
            )
        for other in _declaring(work, self.table):
            if other != name:
                raise ArgumentError(
                    f"table {self.table!r} is declared under the budget {other!r}, which cannot"
                    f" change; give the table another name to charge {name!r}"
                )
        last = entry.declared.get(self.table)
        if last is None and self.declaration is None:
            raise UnknownTable(f"there is no table {self.table!r} under the budget {name!r}")
        if last is not None:
            if last.removed:
                raise ArgumentError(
                    f"table {self.table!r} was removed; give the new table another name"
                )
            self._check_change(work.record_at(name, last.seq))
        state = entry.plain_state
        fields = {
            "table": self.table,
            "version": 1 if last is None else last.version + 1,
            "declaration": self.declaration,
            "before": state,
            "after": state,
        }
        return work.append(entry, "table", self.principal, fields, entry.state_text)

    def _check_change(self, before: Record) -> None:
        known = before.body["declaration"]
        for field in _FIXED:
            if self.declaration is not None and self.declaration.get(field) != known.get(field):
                raise ArgumentError(
                    f"{field} of table {self.table!r} must stay {known.get(field)!r}, got"
                    f" {self.declaration.get(field)!r}: declare it under another name"
                )


def _declaring(work: UnitOfWork, table: str) -> Iterator[str]:
    """The budgets under which a table was declared."""
    query = select(_B.c.name, _B.c.declared).where(_B.c.declared != "{}")
    for row in work.connection.execute(query):
        if row.name not in work.entries and table in json.loads(row.declared):
            yield row.name
    yield from (name for name, entry in work.entries.items() if table in entry.declared)


def check_declared(entries: Sequence[BudgetRow], question: Mapping[str, Any]) -> None:
    """Raise unless the version that a question names is in force under a budget it charges."""
    table, version = question["table"], question["version"]
    for entry in entries:
        last = entry.declared.get(table)
        if last is not None and (last.version, last.removed) == (version, False):
            return
    raise ArgumentError(
        f"version {version} of the table {table!r} is not in force under the budgets that are"
        " charged: it was declared again or removed; ask again, nothing was spent"
    )
