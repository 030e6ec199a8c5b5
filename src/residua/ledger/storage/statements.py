"""Statements that are compiled once for each database; every spend runs them.

SQLAlchemy writes the statement; after that its text goes straight to the driver with the values,
which takes a fraction of the time. A list of names is given as JSON in one value, so that a
statement has the same text, and the database its plan, for any number of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Table, Text, bindparam, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ClauseElement
from sqlalchemy.types import NULLTYPE

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
    """A statement with named values."""

    def __init__(self, statement: ClauseElement):
        self._statement = statement

    def text(self, dialect: str) -> str:
        """The text for a database, with a place for each value."""
        return _text_and_order(self._statement, dialect)[0]

    def values(self, dialect: str, given: Mapping[str, Any]) -> list[Any]:
        """The values in the order of their places."""
        return [given[name] for name in _text_and_order(self._statement, dialect)[1]]


@lru_cache(maxsize=256)
def _text_and_order(statement: ClauseElement, dialect: str) -> tuple[str, tuple[str, ...]]:
    """A statement's text for a database, and the names of its values in order."""
    compiled: Any = statement.compile(dialect=_DIALECTS[dialect])
    return str(compiled), tuple(name.removeprefix(_NEW) for name in compiled.positiontup or ())


_NEW = "new_"
"""Before the name of a column, for its new value: by itself SQLAlchemy keeps it for itself."""


class Write(Prepared):
    """A row to be added to a table, or to be changed where `key` agrees."""

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
        self.columns = columns or tuple(each.name for each in table.columns)
        self.changes = key is not None
        """Whether it changes rows, each of which must be there."""
        values: dict[str, Any] = {name: bindparam(_NEW + name) for name in self.columns}
        statement: ClauseElement
        if key is None:
            adding = insert(table).values(values)
            statement = adding.on_conflict_do_nothing() if known else adding
        else:
            same = [table.c[key] == bindparam(_NEW + key)]
            if unchanged is not None:
                same.append(table.c[unchanged] == bindparam(f"old_{unchanged}"))
            statement = update(table).where(*same).values(values)
        super().__init__(statement)


Question = tuple[Prepared, Mapping[str, str]]
"""A statement that reads, with its values."""
