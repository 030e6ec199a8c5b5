"""Rows of the store, and the statements that every spend runs to read and to write them.

SQLAlchemy writes a statement, once for each database; after that its text goes straight to the
driver with the values, which takes a fraction of the time. A list of names is given as JSON in one
value, so that a statement has the same text, and the database its plan, for any number of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, Text, Update, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.types import NULLTYPE

from residua.ledger.domain.budget_row import BudgetRow, from_row, to_row
from residua.ledger.domain.described_query import DescribedQuery, from_text
from residua.ledger.storage import schema
from residua.records import read

_DIALECTS: Mapping[str, Any] = {
    "sqlite": SQLiteDialect(paramstyle="qmark"),
    "postgresql": PGDialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


def listed(values: Iterable[str]) -> str:
    """A list as the one value that `Among` takes."""
    return json.dumps(list(values))


class Among(ColumnElement[bool]):
    """Whether a column is one of the texts of a list, which is given as JSON under a name."""

    inherit_cache = True

    def __init__(self, column: ColumnElement[str], name: str):
        self.column = column
        self.given = bindparam(name, type_=Text)
        # Said to be Boolean, it would be compared with 1 where there is no such type.
        self.type = NULLTYPE  # type: ignore[assignment]


@compiles(Among, "sqlite")
def _sqlite_among(element: Among, compiler: Any, **kw: Any) -> str:
    column, given = (compiler.process(each, **kw) for each in (element.column, element.given))
    return f"{column} IN (SELECT value FROM json_each({given}))"


@compiles(Among, "postgresql")
def _postgres_among(element: Among, compiler: Any, **kw: Any) -> str:
    column, given = (compiler.process(each, **kw) for each in (element.column, element.given))
    return f"{column} = ANY (ARRAY(SELECT json_array_elements_text(CAST({given} AS JSON))))"


class Prepared:
    """A statement with named values, which reads, or writes rows."""

    def __init__(self, statement: ClauseElement, *columns: str):
        """`columns` are those that an `UPDATE` sets; an `INSERT` sets all of its table."""
        self.columns = tuple(statement.table.c.keys()) if isinstance(statement, Insert) else columns
        self.changes = isinstance(statement, Update)
        """Whether it changes rows, each of which must be there."""
        self._statement = statement

    def text(self, dialect: str) -> str:
        """The text for a database, with a place for each value."""
        return _text_and_order(self._statement, self.columns, dialect)[0]

    def values(self, dialect: str, given: Mapping[str, Any]) -> list[Any]:
        """The values in the order of their places."""
        return [given[name] for name in _text_and_order(self._statement, self.columns, dialect)[1]]


@lru_cache(maxsize=256)
def _text_and_order(
    statement: ClauseElement, columns: tuple[str, ...], dialect: str
) -> tuple[str, tuple[str, ...]]:
    """A statement's text for a database, and the names of its values in order."""
    compiled: Any = statement.compile(dialect=_DIALECTS[dialect], column_keys=columns or None)
    return str(compiled), tuple(compiled.positiontup or ())


Question = tuple[Prepared, Mapping[str, str]]
"""A statement that reads, with its values."""


_B, _R, _K, _H = schema.budgets, schema.records, schema.keys, schema.holds
_BUDGET, _HOLD = tuple(_B.c.keys()), tuple(_H.c.keys())

BUDGETS = Prepared(
    select(*_B.columns, _R.c.text)
    .join(_R, (_R.c.budget_id == _B.c.id) & (_R.c.seq == _B.c.head_seq))
    .where(Among(_B.c.name, "names"))
)
KEYS = Prepared(
    select(_K.c.principal, _K.c.key, _K.c.request, _K.c.budget, _K.c.seq, _K.c.held).where(
        Among(_K.c.principal, "principals"), Among(_K.c.key, "keys")
    )
)
HOLDS = Prepared(select(*_H.columns).where(Among(_H.c.id, "ids")))

NEW_BUDGETS, NEW_RECORDS = Prepared(insert(_B)), Prepared(insert(_R))
NEW_KEYS, NEW_HOLDS = Prepared(insert(_K)), Prepared(insert(_H))
CHANGED_BUDGETS = Prepared(
    update(_B).where(_B.c.id == bindparam("id"), _B.c.head_hash == bindparam("old_head_hash")),
    "head_seq", "head_hash", "retired", "generation", "spent", "children", "holds", "window_ends",
    "declared",
)  # fmt: skip
"""It applies where the head is still the one that was read."""
ENDED_HOLDS = Prepared(update(_H).where(_H.c.id == bindparam("id")), "status", "ended_by")
NEW_TABLES = Prepared(insert(schema.tables).on_conflict_do_nothing())
"""Tables that are there already stay as they are."""


def hash_at(connection: Connection, budget: str, seq: int) -> str | None:
    """The hash of a stored record; None where there is none of that number."""
    query = (
        select(_R.c.hash)
        .join(_B, _B.c.id == _R.c.budget_id)
        .where(_B.c.name == budget, _R.c.seq == seq)
    )
    found: str | None = connection.execute(query).scalar()
    return found


@dataclass
class HoldRow:
    """A reservation, open or ended."""

    id: str
    principal: str
    key: str
    members: tuple[str, ...]
    mechanism: str
    assumed: bool
    made: str
    expires: str
    status: str
    ended_by: str | None = None

    @cached_property
    def query(self) -> DescribedQuery:
        return from_text(self.mechanism)


@dataclass(frozen=True)
class DeclaredTable:
    """The last declaration of a table; None where the table was removed."""

    name: str
    budget: str
    relation: str
    unit: str
    version: int
    declaration: Mapping[str, Any] | None


def declared_tables(connection: Connection, removed: bool) -> dict[str, DeclaredTable]:
    """The last declaration of each table, by name; of those that were removed if wanted."""
    found = {}
    query = select(_B.c.id, _B.c.name, _B.c.relation, _B.c.unit, _B.c.declared)
    for row in connection.execute(query.where(_B.c.declared != "{}")):
        for name, (version, seq, gone) in json.loads(row.declared).items():
            if gone and not removed:
                continue
            text = connection.execute(
                select(_R.c.text).where(_R.c.budget_id == row.id, _R.c.seq == seq)
            ).scalar_one()
            declaration = read(text).body["declaration"]
            found[name] = DeclaredTable(
                name, row.name, row.relation, row.unit, version, declaration
            )
    return found


@dataclass(frozen=True)
class KeyRow:
    """Where the decision on a key is recorded."""

    request: str
    budget: str
    seq: int
    held: str | None


def entry_of(row: Sequence[Any]) -> BudgetRow:
    """A budget from a row of `BUDGETS`."""
    *columns, text = row
    return from_row(dict(zip(_BUDGET, columns, strict=True)), text)


def changed_budget(entry: BudgetRow) -> dict[str, Any]:
    """Values for `CHANGED_BUDGETS`."""
    new = to_row(entry, CHANGED_BUDGETS.columns)
    return {"id": entry.id, "old_head_hash": entry.stored_hash, **new}


def hold_of(row: Sequence[Any]) -> HoldRow:
    """A reservation from a row of `HOLDS`."""
    id, principal, key, members, mechanism, assumed, *rest = row
    named = tuple(members.split("\n"))
    return HoldRow(id, principal, key, named, mechanism, bool(int(assumed)), *rest)


def new_hold(row: HoldRow) -> dict[str, Any]:
    """Values for `NEW_HOLDS`."""
    plain = {name: getattr(row, name) for name in _HOLD}
    return {**plain, "members": "\n".join(row.members), "assumed": int(row.assumed)}
