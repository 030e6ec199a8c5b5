"""Statements that are compiled once for each database; every spend runs them.

SQLAlchemy writes the statement; after that its text goes straight to the driver with the values,
which takes a fraction of the time. Lists are given as JSON in one value, so that a statement has
the same text, and the database its plan, for any number of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    LargeBinary,
    Table,
    TableValuedAlias,
    Text,
    bindparam,
    cast,
    column,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.postgresql.dml import insert as pg_insert
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.types import NULLTYPE

_SQLITE: Any = SQLiteDialect(paramstyle="qmark")
_POSTGRES: Any = PGDialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encoded(value: Any) -> str:
    """JSON as a statement takes it."""
    return _ENCODER.encode(value)


def listed(values: Iterable[str]) -> str:
    """A list as the one value that `Among` takes."""
    return encoded(list(values))


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
    """A statement that reads."""

    def __init__(self, statement: ClauseElement):
        self.statement = statement

    @cached_property
    def sqlite(self) -> tuple[str, tuple[str, ...]]:
        """The text for SQLite, and its parameters in order."""
        return _compiled(self.statement, _SQLITE)

    @cached_property
    def postgres(self) -> bytes:
        """The text for PostgreSQL, with named parameters."""
        return _compiled(self.statement, _POSTGRES)[0].encode()


class Write:
    """Rows to be added to a table, or to be changed where `key` agrees."""

    def __init__(
        self,
        table: Table,
        *columns: str,
        key: str | None = None,
        unchanged: str | None = None,
        known: bool = False,
    ):
        """A conditional update has a column that must be `unchanged`: rows carry its old value.

        `known` rows may be there already, and stay as they are.
        """
        self.table = table
        self.columns = columns or tuple(each.name for each in table.columns)
        self.key = key
        self.known = known
        self._old = {} if unchanged is None else {f"old_{unchanged}": unchanged}

    @property
    def changes(self) -> bool:
        """Whether it changes rows, each of which must be there."""
        return self.key is not None

    @cached_property
    def sqlite(self) -> tuple[str, tuple[str, ...]]:
        """The text for SQLite for one row, and its parameters in order."""
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in self.columns}
        if self.key is None:
            adding = insert(self.table).values(values)
            statement: ClauseElement = adding.prefix_with("OR IGNORE") if self.known else adding
        else:
            same = {self.key: self.key, **self._old}
            there = [self.table.c[name] == bindparam(f"is_{given}") for given, name in same.items()]
            statement = update(self.table).where(*there).values(values)
        text, order = _compiled(statement, _SQLITE)
        return text, tuple(name.partition("_")[2] for name in order)

    @cached_property
    def postgres(self) -> bytes:
        """The text for PostgreSQL, for all rows at once."""
        if self.key is None:
            rows = self._given({name: name for name in self.columns})
            chosen = select(*(rows.c[name] for name in self.columns))
            adding = pg_insert(self.table).from_select(list(self.columns), chosen)
            statement: ClauseElement = adding.on_conflict_do_nothing() if self.known else adding
        else:
            same = {self.key: self.key, **self._old}
            rows = self._given({**{name: name for name in self.columns}, **same})
            there = [self.table.c[name] == rows.c[given] for given, name in same.items()]
            new = {name: rows.c[name] for name in self.columns}
            statement = update(self.table).where(*there).values(new)
        return _compiled(statement, _POSTGRES)[0].encode()

    def _given(self, names: Mapping[str, str]) -> TableValuedAlias:
        """For PostgreSQL, rows that are given as JSON; of each column, which one has its type."""
        rows = func.json_to_recordset(cast(bindparam("rows", type_=Text), JSON))
        columns = (column(name, self.table.c[like].type) for name, like in names.items())
        return rows.table_valued(*columns, name="given").render_derived(with_types=True)

    @cached_property
    def _binary(self) -> tuple[str, ...]:
        return tuple(n for n in self.columns if isinstance(self.table.c[n].type, LargeBinary))

    def json(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """The rows as the one value that the statement for PostgreSQL takes."""
        if self._binary:
            rows = [{**row, **{n: "\\x" + row[n].hex() for n in self._binary}} for row in rows]
        return encoded(rows)


Question = tuple[Prepared, Mapping[str, str]]
"""A statement that reads, with its values."""


def _compiled(statement: ClauseElement, dialect: Any) -> tuple[str, tuple[str, ...]]:
    compiled: Any = statement.compile(dialect=dialect)
    return str(compiled), tuple(compiled.positiontup or ())
