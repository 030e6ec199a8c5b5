"""Statements that are compiled once for a database, for what every spend does.

SQLAlchemy writes the statement; after that its text is sent with the values, which takes half the
time. The statement must have plain parameters, without lists that expand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult
from sqlalchemy.sql.expression import ClauseElement


class Prepared:
    """A statement, and its text for each kind of database that it met."""

    def __init__(self, statement: ClauseElement, *columns: str):
        """`columns` name the parameters of an insert, in order."""
        self.statement = statement
        self.columns = list(columns) or None
        self._texts: dict[str, tuple[str, tuple[str, ...] | None]] = {}

    def run(
        self, connection: Connection, values: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> CursorResult[Any]:
        """Execute, once or for each of several rows."""
        text, order = self._text(connection)
        if isinstance(values, Mapping):
            return connection.exec_driver_sql(text, _given(values, order))
        return connection.exec_driver_sql(text, [_given(row, order) for row in values])

    def _text(self, connection: Connection) -> tuple[str, tuple[str, ...] | None]:
        name = connection.dialect.name
        if name not in self._texts:
            compiled: Any = self.statement.compile(
                dialect=connection.dialect, column_keys=self.columns
            )
            order = tuple(compiled.positiontup) if compiled.positiontup else None
            self._texts[name] = (str(compiled), order)
        return self._texts[name]


def _given(values: Mapping[str, Any], order: tuple[str, ...] | None) -> Any:
    return dict(values) if order is None else tuple(values[name] for name in order)
