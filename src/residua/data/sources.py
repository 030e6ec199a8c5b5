"""Where the rows of a table are: files that DuckDB reads.

A source is named by an address: the path of a Parquet or CSV file, or `FILE.duckdb#TABLE`. It says
which columns there are, and runs one statement. What an engine raises while it runs a statement
may show data: only the operator may see it.
"""

from __future__ import annotations

import csv
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError

ROWS = "residua_source"
"""What statements call the source."""
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
        "integer",
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "real"),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), "text"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
}
CASTS: Mapping[str, str] = {
    "integer": "BIGINT", "real": "DOUBLE", "text": "TEXT", "boolean": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
"""The type that a statement reads a column as."""
_MEMORY = re.compile(r"[0-9]{1,6} ?[KMGT]i?B")


@dataclass(frozen=True)
class Limits:
    """What a statement may take."""

    seconds: float | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            checks.positive("timeout", self.seconds)
        if self.memory is not None and (
            not isinstance(self.memory, str) or _MEMORY.fullmatch(self.memory) is None
        ):
            raise ArgumentError(
                f"memory_limit must be such as '2GB', got {checks.shown(self.memory)}"
            )


class Source(ABC):
    """Rows that a statement can be run on."""

    address: str
    dialect: str

    @abstractmethod
    def columns(self) -> dict[str, str]:
        """The types of the columns, by name and in order; raises where it cannot be read."""

    def is_as_declared(self, columns: Mapping[str, str]) -> bool:
        """Whether the columns are these, by what is public about the source."""
        return list(self.columns().items()) == list(columns.items())

    @abstractmethod
    def has_null(self, column: str) -> bool:
        """Whether a column has NULL; for the operator."""

    @abstractmethod
    def rows(self, columns: Mapping[str, str]) -> exp.Expression:
        """The table or function that a statement reads, of a table with these columns."""

    @abstractmethod
    def run(
        self, statement: exp.Expression, limits: Limits, running: Running
    ) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""


class Running:
    """A statement under way, which another thread may cancel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self.cancelled = False

    def cancel(self) -> None:
        """Stop the statement; one that has not started will not run."""
        with self._lock:
            self.cancelled = True
            if self._connection is not None:
                self._connection.interrupt()

    @contextmanager
    def of(self, connection: Any, seconds: float | None) -> Iterator[None]:
        """While within, `cancel` interrupts this connection; so does the end of its time."""
        with self._lock:
            if self.cancelled:
                raise TimeoutError("the statement was cancelled before it started")
            self._connection = connection
        timer = None if seconds is None else threading.Timer(seconds, self.cancel)
        try:
            if timer is not None:
                timer.daemon = True
                timer.start()
            yield
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                self._connection = None


def source_at(given: Any) -> Source:
    """The source at an address."""
    if not isinstance(given, str | PathLike):
        raise ArgumentTypeError(f"source must be a path or an address, got {checks.shown(given)}")
    text = str(fspath(given))
    if "://" in text:
        raise ArgumentError(
            "source must be a Parquet or CSV file, or FILE.duckdb#TABLE, got"
            f" {text.partition(':')[0]}://…"
        )
    if "#" in text:
        file, _, name = text.rpartition("#")
        return DuckDbTable(f"{_file(file)}#{name}")
    path = _file(text)
    kinds = {".parquet": ParquetFile, ".csv": CsvFile}
    if path.suffix.lower() not in kinds:
        raise ArgumentError(
            f"source must be a .parquet or .csv file, or FILE.duckdb#TABLE, got {text}"
        )
    return kinds[path.suffix.lower()](str(path))


def _file(text: str) -> Path:
    path = Path(text).absolute()
    if re.search(r"[*?\[\]]", str(path)):
        raise ArgumentError(f"source must be one file, got the pattern {text}")
    if not path.is_file():
        raise ArgumentError(f"source must be a file that exists, got {text}")
    return path


class _DuckDb(Source):
    dialect = "duckdb"

    def __init__(self, address: str):
        self.address = address

    @contextmanager
    def _connected(self, limits: Limits) -> Iterator[Any]:
        options = {} if limits.memory is None else {"memory_limit": limits.memory}
        with duckdb.connect(config={"autoinstall_known_extensions": "false", **options}) as found:
            # Reading in order is not needed, and takes memory.
            found.execute("SET preserve_insertion_order = false")
            self._prepare(found)
            found.execute("SET lock_configuration = true")
            yield found

    def _prepare(self, connection: Any) -> None:
        """Make the source known to a connection."""

    def columns(self) -> dict[str, str]:
        query = exp.select("*").from_(self.rows({})).limit(0)
        try:
            with self._connected(Limits()) as connection:
                found = connection.execute(query.sql(self.dialect)).description
        except (duckdb.Error, OSError) as error:
            first = str(error).splitlines()[0] if str(error) else repr(error)
            raise ArgumentError(f"source cannot be read, got {self.address} ({first})") from None
        columns = {str(name): _type_of(str(type)) for name, type, *_ in found}
        if len(columns) != len(found):
            raise ArgumentError(f"source must not have two columns of one name: {self.address}")
        return columns

    def has_null(self, column: str) -> bool:
        rows = self.rows(self.columns())
        name = exp.column(column, quoted=True)
        query = exp.select("1").from_(rows).where(exp.Is(this=name, expression=exp.null())).limit(1)
        with self._connected(Limits()) as connection:
            return bool(connection.execute(query.sql(self.dialect)).fetchall())

    def run(
        self, statement: exp.Expression, limits: Limits, running: Running
    ) -> list[tuple[Any, ...]]:
        with (
            self._connected(limits) as connection,
            running.of(connection, limits.seconds),
        ):
            found: list[tuple[Any, ...]] = connection.execute(
                statement.sql(self.dialect)
            ).fetchall()
            return found


class ParquetFile(_DuckDb):
    """A Parquet file."""

    def rows(self, _columns: Mapping[str, str]) -> exp.Expression:
        return _function("READ_PARQUET", exp.Literal.string(self.address))


class CsvFile(_DuckDb):
    """A CSV file: separated by commas, quoted with ", the names of columns in the first line.

    Types are found when the table is declared, and are those of the declaration from then on. A
    value that is not of its column's type is NULL; a line that cannot be read is left out. So
    nothing that a file contains makes a statement fail.
    """

    def is_as_declared(self, columns: Mapping[str, str]) -> bool:
        with open(self.address, newline="", encoding="utf-8") as file:
            return next(csv.reader(file), None) == list(columns)

    def rows(self, columns: Mapping[str, str]) -> exp.Expression:
        if not columns:
            return self._rows({})
        every = [
            exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string("VARCHAR"))
            for name in columns
        ]
        return self._rows(
            {
                "auto_detect": exp.false(),
                "ignore_errors": exp.true(),
                "columns": exp.Struct(expressions=every),
            }
        )

    def _rows(self, more: Mapping[str, exp.Expression]) -> exp.Expression:
        options: dict[str, exp.Expression] = {
            "header": exp.true(),
            "delim": exp.Literal.string(","),
            "quote": exp.Literal.string('"'),
            "escape": exp.Literal.string('"'),
            **more,
        }
        given = [
            exp.PropertyEQ(this=exp.to_identifier(name), expression=value)
            for name, value in options.items()
        ]
        return _function("READ_CSV", exp.Literal.string(self.address), *given)


class DuckDbTable(_DuckDb):
    """A table of a DuckDB file."""

    def _prepare(self, connection: Any) -> None:
        file = exp.Literal.string(self.address.rpartition("#")[0]).sql(self.dialect)
        connection.execute(f"ATTACH {file} AS residua_file (READ_ONLY)")

    def rows(self, _columns: Mapping[str, str]) -> exp.Expression:
        name = self.address.rpartition("#")[2]
        return exp.table_(name, db="main", catalog="residua_file", quoted=True)


def _function(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Table(this=exp.Anonymous(this=name, expressions=list(arguments)))


def _type_of(name: str) -> str:
    return _TYPES.get(name.partition("(")[0].strip().upper(), "other")
