"""The state in a DuckDB file: embedded, on disk, larger than memory.

One spend is one transaction. Losses are joined with budgets by DuckDB, pass through the kernel in
Arrow batches (`pricing.py`, the same as everywhere), and the results are written back by DuckDB;
nothing is held in memory but a batch. The version number of the state is updated in the same
transaction, so of two spends that overlap one fails and is tried again on the new state. A file is
open in one process at a time. Before a spend returns, DuckDB's log is merged into the file, so
that what was acknowledged does not depend on the `.wal` beside it.

`duckdb:///subjects.db?memory_limit=2GB&threads=2` passes settings on to DuckDB.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

import duckdb
import pyarrow as pa

from residua.errors import ArgumentError, ArgumentTypeError, ResiduaError, StateUnavailable
from residua.individual.engines import duckdb_sql as sql
from residua.individual.engines.engine import Store, priced_reader
from residua.individual.header import Header
from residua.individual.losses import (
    as_table,
    check_loss_type,
    check_no_duplicates,
    check_types,
    inspect_batch,
    key_type,
    loss_column,
    newcomers,
    path_of,
    uniform,
)
from residua.individual.pricing.cost_model import check_request
from residua.individual.spend_request import InspectedSpend, SpendRequest, SpendResult

ATTEMPTS = 50
"""How often a spend is tried when other transactions come first."""
UPDATED_SHARE = 16
"""A spend on less than one row in this many updates in place; others rewrite the table."""
BATCH_ROWS = 1 << 18
"""Rows that pass through the kernel at a time."""
_REGISTER = Lock()
_LOCKS: WeakValueDictionary[str, Any] = WeakValueDictionary()


class DuckStore(Store):
    """One DuckDB file."""

    def __init__(self, path: Path, where: str, asked: Header | None):
        name, _, settings = str(path).partition("?")
        self.where, self._path = where, name
        if name.startswith(":memory:"):
            raise ArgumentError(f"address must be that of a file, got {where!r}: use 'memory:'")
        new = not Path(name).exists()
        if new and asked is None:
            raise ArgumentError(f"address must be that of a state, got nothing at {name!r}")
        try:
            self._connection = duckdb.connect(name, config=dict(parse_qsl(settings)))
        except duckdb.Error as error:
            kind = StateUnavailable if "lock" in str(error).lower() else ArgumentError
            raise kind(f"{where} cannot be opened as a DuckDB file: {_first_line(error)}") from None
        self._lock = _lock_of(name)
        try:
            with self._lock, self._translated_errors():
                self.header = self._open_state(asked)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise failures of DuckDB as errors of this package."""
        try:
            yield
            return
        except duckdb.Error as error:
            failed = StateUnavailable(f"{self.where} cannot be used: {_safe_message(error)}")
        raise failed

    def _open_state(self, asked: Header | None) -> Header:
        connection = self._connection
        known = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        if not known and asked is not None:
            connection.execute("BEGIN")
            for statement in sql.catalogue():
                connection.execute(statement)
            kept = [("header", asked.to_json()), ("version", "0")]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", kept)
            connection.execute("COMMIT")
            self._merge(connection)
            return asked
        if ("meta",) not in known or ("spends",) not in known:
            raise ArgumentError(f"{self.where} must hold a state of subjects, got another database")
        stored = Header.from_dict(json.loads(_meta(connection, "header")), self.where)
        if asked is not None:
            stored.check_same(asked, self.where)
        return stored

    def spend(self, request: SpendRequest, losses: Any) -> SpendResult:
        path = path_of(losses)
        table = None if path is not None else as_table(losses)
        with self._lock:
            done: SpendResult = self._retry(
                lambda to, by: self._spend(to, by, request, path, table)
            )
            return done

    def enroll(self, subjects: Any) -> None:
        table = as_table(subjects, "subjects")
        with self._lock:
            self._retry(lambda to, _: self._enroll(to, table))

    def _retry(self, work: Any) -> Any:
        """Run in a transaction, again if another one came first.

        `work` returns the header that the state then has, None if nothing is to be written.
        """
        for _ in range(ATTEMPTS):
            failed: ResiduaError | None = None
            cursor, reader = self._cursor(), self._cursor()
            try:
                cursor.execute("BEGIN")
                version = int(_meta(cursor, "version"))
                reader.execute("BEGIN")
                if int(_meta(reader, "version")) != version:
                    continue
                if self.header.subject_type is None:
                    self.header = Header.from_dict(json.loads(_meta(cursor, "header")), self.where)
                header, result = work(cursor, reader)
                if header is None:
                    return result
                swapped = cursor.execute(
                    "UPDATE meta SET value = ? WHERE name = 'version' AND value = ?"
                    " RETURNING value",
                    [str(version + 1), str(version)],
                ).fetchall()
                if len(swapped) == 1:
                    cursor.execute("COMMIT")
                    self.header = header
                    reader.close()
                    self._merge(cursor)
                    return result
            except duckdb.TransactionException:
                continue
            except (duckdb.ConversionException, duckdb.InvalidInputException):
                # DuckDB's own message shows a key.
                failed = ArgumentTypeError(
                    "losses must fit the types of the state, texts UTF-8, got keys that do not"
                )
            except duckdb.Error as error:
                failed = StateUnavailable(f"{self.where} cannot be used: {_safe_message(error)}")
            finally:
                # An open transaction ends with its connection and leaves nothing.
                reader.close()
                cursor.close()
            if failed is not None:
                # Outside the handler, whose error would be kept as context.
                raise failed
        raise StateUnavailable(f"{self.where} changed {ATTEMPTS} times while a spend was tried")

    @staticmethod
    def _merge(connection: Any) -> None:
        """Merge DuckDB's log into the file: without the log its spends would be lost."""
        # While another transaction of this process is open on the file, the log stays: it is
        # durable, and the next spend merges it.
        with suppress(duckdb.TransactionException):
            connection.execute("CHECKPOINT")

    def _cursor(self) -> Any:
        try:
            return self._connection.cursor()
        except duckdb.Error:
            raise StateUnavailable(f"{self.where} is closed") from None

    def _spend(
        self, cursor: Any, reader: Any, request: SpendRequest, path: str | None, table: Any
    ) -> tuple[Header | None, SpendResult]:
        header, column, losses = self._source(cursor, reader, path, table)
        check_request(column, request.mechanism, request.levels)
        levels = request.levels_for(header, column)
        spend = request.inspect(
            header,
            column,
            [inspect_batch(header, batch, levels) for batch in _batches(reader, losses)],
        )
        earlier = cursor.execute(
            "SELECT digest, number FROM spends WHERE spend_id = ?", [request.spend_id]
        ).fetchall()
        if earlier:
            spend.check_same(earlier[0][0])
            active = self._active(cursor, header, int(earlier[0][1]))
            return None, SpendResult(request.spend_id, True, active)
        repeated = cursor.execute(sql.count_repeated(header, f"({losses})")).fetchall()
        check_no_duplicates(header, int(repeated[0][0]))
        self._ready(cursor, header)
        active = self._charge(cursor, reader, spend, losses)
        return header, SpendResult(request.spend_id, False, active)

    def _source(
        self, cursor: Any, reader: Any, path: str | None, table: Any
    ) -> tuple[Header, str | None, str]:
        """The header with its key types, the loss column, and the losses for both connections."""
        if path is None:
            column = loss_column(self.header, table.column_names)
            header, table = uniform(self.header, table, column)
            cursor.register("given_losses", table)
            reader.register("given_losses", table)
            return header, column, sql.source(header, "given_losses", column and "loss")
        given = sql.parquet(Path(path))
        try:
            schema = _arrow(reader.sql(f"SELECT * FROM {given} LIMIT 0")).schema
        except duckdb.Error:
            raise ArgumentError(f"losses must be Parquet files, got {path!r}") from None
        column = loss_column(self.header, schema.names)
        types = tuple(key_type(name, schema.field(name).type) for name in self.header.keys)
        header, whole = check_types(self.header, types), False
        if column is not None:
            kind = schema.field(column).type
            check_loss_type(column, kind)
            whole = pa.types.is_integer(kind)
        return header, column, sql.source(header, given, column, whole)

    def _ready(self, cursor: Any, header: Header) -> None:
        """The tables, once the types of keys are known."""
        if self.header.subject_type is not None:
            return
        for statement in sql.tables(header):
            cursor.execute(statement)
        cursor.execute("UPDATE meta SET value = ? WHERE name = 'header'", [header.to_json()])

    def _charge(self, cursor: Any, reader: Any, spend: InspectedSpend, losses: str) -> Any:
        header = spend.header
        first = self.header.subject_type is None
        size = 0 if first else _count(reader, "budgets")
        asked = int(reader.execute(f"SELECT count(*) FROM ({losses})").fetchall()[0][0])
        whole = size < UPDATED_SHARE * asked
        if first:
            # The reading connection does not see the table yet.
            reader.execute(sql.tables(header)[0].replace("CREATE", "CREATE TEMP", 1))
        rows = sql.join_budgets(header, losses, spend.column, whole and not first)
        priced = priced_reader(header, spend.pricing(), _batches(reader, rows))
        cursor.register("priced_batches", priced)
        cursor.execute("CREATE TEMP TABLE priced AS SELECT * FROM priced_batches")
        cursor.execute(sql.decide(header))
        number = _count(cursor, "spends") + 1
        keys = sql.names(header)
        cursor.execute(f"INSERT INTO active SELECT {number}, {keys} FROM decided WHERE taking_part")
        for statement in sql.rewrite(header) if whole else sql.update(header):
            cursor.execute(statement)
        cursor.execute(
            "INSERT INTO spends VALUES (?, ?, ?)", [spend.request.spend_id, number, spend.digest]
        )
        active = _arrow(cursor.sql(f"SELECT {keys} FROM decided WHERE taking_part"))
        cursor.execute("DROP TABLE priced")
        cursor.execute("DROP TABLE decided")
        return active

    def _active(self, cursor: Any, header: Header, number: int) -> Any:
        keys = sql.names(header)
        return _arrow(cursor.sql(f"SELECT {keys} FROM active WHERE number = {number}"))

    def _enroll(self, cursor: Any, table: Any) -> tuple[Header, None]:
        header, new = newcomers(self.header, table)
        cursor.register("newcomers", new)
        repeated = cursor.execute(sql.count_repeated(header, "newcomers")).fetchall()
        check_no_duplicates(header, int(repeated[0][0]))
        self._ready(cursor, header)
        known = cursor.execute(
            f"SELECT count(*) FROM newcomers SEMI JOIN budgets USING ({sql.names(header)})"
        ).fetchall()[0][0]
        if known:
            raise ArgumentError("subjects must be new, got some that are there already")
        cursor.execute(f'INSERT INTO budgets SELECT {sql.names(header)}, "left" FROM newcomers')
        return header, None

    def everything(self) -> Any:
        with self._lock, self._cursor() as cursor, self._translated_errors():
            # Another state on this file may have set the types of keys meanwhile.
            header = Header.from_dict(json.loads(_meta(cursor, "header")), self.where)
            if header.subject_type is None:
                return None
            keys = sql.names(header)
            return _arrow(cursor.sql(f'SELECT {keys}, "left" FROM budgets'))

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _lock_of(name: str) -> Any:
    """One lock for all states on a file: a log is not merged while others write."""
    with _REGISTER:
        return _LOCKS.setdefault(os.path.realpath(name), Lock())


def _batches(connection: Any, query: str) -> Iterator[Any]:
    relation = connection.sql(query)
    # The name has changed more than once since DuckDB 1.0.
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    read = next(found for name in names if (found := getattr(relation, name, None)) is not None)
    return iter(read(BATCH_ROWS))


def _arrow(relation: Any) -> Any:
    return relation.to_arrow_table()


def _meta(connection: Any, name: str) -> str:
    return str(connection.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchall()[0][0])


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _safe_message(error: duckdb.Error) -> str:
    """DuckDB's message about files and memory; any other may show values."""
    text = _first_line(error)
    plain = isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException)
    return text if plain or text.startswith("Corrupt database") else type(error).__name__
