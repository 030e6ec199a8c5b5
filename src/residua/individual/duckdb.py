"""The state in a DuckDB file: embedded, on disk, larger than memory.

One spend is one transaction. Losses are joined with budgets by DuckDB, pass through the kernel in
Arrow batches (`pricing.py`, the same as everywhere), and the results are written back by DuckDB;
nothing is held in memory but a batch. A file is open in one process at a time, in which the states
on it share a lock. Before a spend returns, DuckDB's log is merged into the file, so
that what was acknowledged does not depend on the `.wal` beside it.

`duckdb:///subjects.db?memory_limit=2GB&threads=2` passes settings on to DuckDB.
"""

from __future__ import annotations

import json
import os
import re
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
from residua.individual.cost_model import check_request
from residua.individual.engine import (
    OpenedSpend,
    SpendRequest,
    SpendResult,
    Store,
    priced_reader,
)
from residua.individual.header import Header
from residua.individual.losses import (
    Findings,
    as_table,
    check_loss_type,
    check_no_duplicates,
    check_types,
    inspect_batch,
    key_type,
    loss_column,
    newcomers,
    normalise,
    path_of,
)
from residua.sizes import LARGEST_COUNT

_REGISTER = Lock()
_LOCKS: WeakValueDictionary[str, Any] = WeakValueDictionary()


class DuckStore(Store):
    """One DuckDB file."""

    def __init__(self, path: Path, where: str, requested: Header | None):
        name, _, settings = str(path).partition("?")
        self.where, self._path = where, name
        if name.startswith(":memory:"):
            raise ArgumentError(f"address must name a file, or be 'memory:', got {where!r}")
        new = not Path(name).exists()
        if new and requested is None:
            raise ArgumentError(
                f"address must be that of an existing state: there is nothing at {name!r}"
            )
        try:
            self._connection = duckdb.connect(name, config=dict(parse_qsl(settings)))
        except duckdb.Error as error:
            kind = StateUnavailable if "lock" in str(error).lower() else ArgumentError
            raise kind(f"{where} cannot be opened as a DuckDB file: {_first_line(error)}") from None
        self._lock = _lock_of(name)
        try:
            with self._lock, self._translated_errors():
                self.header = self._open_state(requested)
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

    def _open_state(self, requested: Header | None) -> Header:
        connection = self._connection
        known = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        if not known and requested is not None:
            connection.execute("BEGIN")
            for statement in _CATALOGUE:
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('header', ?)", [requested.to_json()])
            connection.execute("COMMIT")
            self._merge(connection)
            return requested
        if ("meta",) not in known or ("spends",) not in known:
            raise ArgumentError(f"{self.where} must hold a state of subjects, got another database")
        stored = self._stored_header(connection)
        if requested is not None:
            stored.check_same(requested, self.where)
        return stored

    def spend(self, request: SpendRequest, losses: Any) -> SpendResult:
        path = path_of(losses)
        table = None if path is not None else as_table(losses)
        done: SpendResult = self._run(lambda to, by: self._spend(to, by, request, path, table))
        return done

    def enroll(self, subjects: Any) -> None:
        table = as_table(subjects, "subjects")
        self._run(lambda to, _: self._enroll(to, table))

    def _run(self, work: Any) -> Any:
        """Run in a transaction that writes, with one beside it that reads.

        `work` returns the header that the state then has, None if nothing is to be written.
        """
        with self._lock:
            cursor, reader = self._cursor(), self._cursor()
            try:
                cursor.execute("BEGIN")
                reader.execute("BEGIN")
                if self.header.subject_type is None:
                    self.header = self._stored_header(cursor)
                header, result = work(cursor, reader)
                if header is not None:
                    cursor.execute("COMMIT")
                    self.header = header
                    reader.close()
                    self._merge(cursor)
                return result
            except (duckdb.ConversionException, duckdb.InvalidInputException):
                # DuckDB's own message shows a key.
                failed: ResiduaError = ArgumentTypeError(
                    "losses must have keys that fit the types of the state, and texts in UTF-8"
                )
            except duckdb.Error as error:
                failed = StateUnavailable(f"{self.where} cannot be used: {_safe_message(error)}")
            finally:
                # An open transaction ends with its connection and leaves nothing.
                reader.close()
                cursor.close()
        # Outside the handler, whose error would be kept as context.
        raise failed

    def _stored_header(self, connection: Any) -> Header:
        """The header in the file: another state on it may have set the types of keys."""
        found = connection.execute("SELECT value FROM meta WHERE name = 'header'").fetchall()
        return Header.from_dict(json.loads(found[0][0]), self.where)

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
        found = Findings.total(inspect_batch(header, one) for one in _batches(reader, losses))
        spend = OpenedSpend(request, header, column, losses, found)
        digest = spend.inspect()
        earlier = cursor.execute(
            "SELECT digest, number FROM spends WHERE spend_id = ?", [request.spend_id]
        ).fetchall()
        if earlier:
            ((recorded, number),) = earlier
            request.check_same(recorded, digest)
            query = f"SELECT {_key_names(header)} FROM active WHERE number = {int(number)}"
            active = cursor.sql(query).to_arrow_table()
            return None, SpendResult(request.spend_id, True, active)
        repeated = cursor.execute(_count_repeated(header, f"({losses})")).fetchall()
        check_no_duplicates(header, int(repeated[0][0]))
        self._ready(cursor, header)
        active = self._charge(cursor, reader, spend, digest)
        return header, SpendResult(request.spend_id, False, active)

    def _source(
        self, cursor: Any, reader: Any, path: str | None, table: Any
    ) -> tuple[Header, str | None, str]:
        """The header with its key types, the loss column, and the losses for both connections."""
        if path is None:
            column = loss_column(self.header, table.column_names)
            header, table = normalise(self.header, table, column)
            cursor.register("given_losses", table)
            reader.register("given_losses", table)
            return header, column, _select_losses(header, "given_losses", column and "loss")
        given = _read_parquet(Path(path))
        try:
            schema = reader.sql(f"SELECT * FROM {given} LIMIT 0").to_arrow_table().schema
        except duckdb.Error:
            raise ArgumentError(f"losses must be Parquet files, got {path!r}") from None
        column = loss_column(self.header, schema.names)
        types = tuple(key_type(name, schema.field(name).type) for name in self.header.keys)
        header, whole = check_types(self.header, types), False
        if column is not None:
            kind = schema.field(column).type
            check_loss_type(column, kind)
            whole = pa.types.is_integer(kind)
        return header, column, _select_losses(header, given, column, whole)

    def _ready(self, cursor: Any, header: Header) -> None:
        """The tables, once the types of keys are known."""
        if self.header.subject_type is not None:
            return
        for statement in _create_tables(header):
            cursor.execute(statement)
        cursor.execute("UPDATE meta SET value = ? WHERE name = 'header'", [header.to_json()])

    def _charge(self, cursor: Any, reader: Any, spend: OpenedSpend, digest: str) -> Any:
        header, losses = spend.header, spend.losses
        first = self.header.subject_type is None
        size = 0 if first else _count(reader, "budgets")
        asked = int(reader.execute(f"SELECT count(*) FROM ({losses})").fetchall()[0][0])
        # A spend on less than one row in sixteen updates in place; others rewrite the table.
        whole = size < 16 * asked
        if first:
            # The reading connection does not see the table yet.
            reader.execute(_create_tables(header)[0].replace("CREATE", "CREATE TEMP", 1))
        rows = _join_budgets(header, losses, spend.column, whole and not first)
        cursor.register("priced", priced_reader(header, spend.pricing(), _batches(reader, rows)))
        cursor.execute(_decide(header))
        number = _count(cursor, "spends") + 1
        keys, taking_part = _key_names(header), "FROM decided WHERE taking_part"
        cursor.execute(f"INSERT INTO active SELECT {number}, {keys} {taking_part}")
        for statement in _rewrite(header) if whole else _update(header):
            cursor.execute(statement)
        row = [spend.request.spend_id, number, digest]
        cursor.execute("INSERT INTO spends VALUES (?, ?, ?)", row)
        active = cursor.sql(f"SELECT {keys} {taking_part}").to_arrow_table()
        cursor.execute("DROP TABLE decided")
        return active

    def _enroll(self, cursor: Any, table: Any) -> tuple[Header, None]:
        header, new = newcomers(self.header, table)
        cursor.register("newcomers", new)
        repeated = cursor.execute(_count_repeated(header, "newcomers")).fetchall()
        check_no_duplicates(header, int(repeated[0][0]))
        self._ready(cursor, header)
        known = cursor.execute(
            f"SELECT count(*) FROM newcomers SEMI JOIN budgets USING ({_key_names(header)})"
        ).fetchall()[0][0]
        if known:
            raise ArgumentError("subjects must be new, got some that already have a budget")
        cursor.execute(f'INSERT INTO budgets SELECT {_key_names(header)}, "left" FROM newcomers')
        return header, None

    def everything(self) -> Any:
        with self._lock, self._cursor() as cursor, self._translated_errors():
            header = self._stored_header(cursor)
            if header.subject_type is None:
                return None
            keys = _key_names(header)
            return cursor.sql(f'SELECT {keys}, "left" FROM budgets').to_arrow_table()

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _lock_of(name: str) -> Any:
    """One lock for all states on a file: a log is not merged while others write."""
    with _REGISTER:
        return _LOCKS.setdefault(os.path.realpath(name), Lock())


def _batches(connection: Any, query: str) -> Iterator[Any]:
    """The rows of a query, 262,144 at a time."""
    relation = connection.sql(query)
    # The name has changed more than once since DuckDB 1.0.
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    read = next(found for name in names if (found := getattr(relation, name, None)) is not None)
    return iter(read(1 << 18))


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _safe_message(error: duckdb.Error) -> str:
    """DuckDB's message about files and memory; any other may show values."""
    text = _first_line(error)
    plain = isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException)
    return text if plain or text.startswith("Corrupt database") else type(error).__name__


_CATALOGUE = (
    "CREATE TABLE meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL)",
    "CREATE TABLE spends (spend_id VARCHAR PRIMARY KEY, number BIGINT NOT NULL,"
    " digest VARCHAR NOT NULL)",
)
"""The tables that every state has."""
_SQL_TYPES = {"int64": "BIGINT", "string": "VARCHAR"}


def _key_names(header: Header) -> str:
    """The key columns."""
    return ", ".join(header.keys)


def _key_columns(header: Header) -> str:
    kinds = zip(header.keys, header.key_types, strict=True)
    return ", ".join(f"{key} {_SQL_TYPES[kind or 'int64']}" for key, kind in kinds)


def _create_tables(header: Header) -> tuple[str, ...]:
    """The tables that need the types of keys."""
    keys = _key_columns(header)
    return (
        f'CREATE TABLE budgets ({keys}, "left" BIGINT)',
        f"CREATE TABLE active (number BIGINT, {keys})",
    )


def _read_parquet(path: Path) -> str:
    """Files to select from; their names are names, not patterns."""
    literal = re.sub(r"([*?\[])", r"[\1]", str(path)) + ("/**/*.parquet" if path.is_dir() else "")
    quoted = literal.replace("'", "''")
    return f"read_parquet('{quoted}')"


def _select_losses(header: Header, given: str, column: str | None, whole: bool = False) -> str:
    """Losses with the types that the engine uses.

    Where they are `whole` numbers, those that no float is equal to become NaN, and are refused.
    """
    types = [_SQL_TYPES[kind or "int64"] for kind in header.key_types]
    kinds = zip(header.keys, types, strict=True)
    keys = ", ".join(f"CAST({key} AS {kind}) AS {key}" for key, kind in kinds)
    if column is None:
        return f"SELECT {keys} FROM {given}"
    loss = f"CAST({column} AS DOUBLE)"
    if whole:
        loss = f"CASE WHEN {column} > {LARGEST_COUNT} THEN 'NaN'::DOUBLE ELSE {loss} END"
    return f"SELECT {keys}, {loss} AS loss FROM {given}"


def _count_repeated(header: Header, relation: str) -> str:
    """How many rows have a key that another row has."""
    keys = _key_names(header)
    return (
        f"SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM {relation}"
        f" GROUP BY {keys} HAVING count(*) > 1)"
    )


def _join_budgets(header: Header, losses: str, column: str | None, whole: bool) -> str:
    """Losses beside what is left: of the subjects that are asked, or of all."""
    keys = ", ".join(f"coalesce(l.{key}, b.{key}) AS {key}" for key in header.keys)
    loss = "" if column is None else ", l.loss AS loss"
    kind = "FULL OUTER" if whole else "LEFT"
    on = " AND ".join(f"l.{key} = b.{key}" for key in header.keys)
    return (
        f'SELECT {keys}, b."left" AS before, l.subject IS NOT NULL AS asked{loss}'
        f" FROM ({losses}) l {kind} JOIN budgets b ON {on}"
    )


def _decide(header: Header) -> str:
    """From what each row would have left to who takes part."""
    fits = "asked AND after >= 0"
    if header.unknown == "exclude":
        fits += " AND before IS NOT NULL"
    if header.all_or_none:
        alone = f"coalesce(NOT asked OR ({fits}), false)"
        fits = f"asked AND bool_and({alone}) OVER (PARTITION BY subject)"
    return (
        f"CREATE TEMP TABLE decided AS SELECT {_key_names(header)}, before, after,"
        f" coalesce({fits}, false) AS taking_part FROM priced"
    )


def _rewrite(header: Header) -> tuple[str, ...]:
    """A new table of budgets in place of the old one."""
    keys = _key_names(header)
    return (
        f"CREATE TABLE next_budgets AS SELECT {keys}, CASE WHEN taking_part THEN after"
        ' ELSE before END AS "left" FROM decided WHERE taking_part OR before IS NOT NULL',
        "DROP TABLE budgets",
        "ALTER TABLE next_budgets RENAME TO budgets",
    )


def _update(header: Header) -> tuple[str, ...]:
    """The same in place, for few rows."""
    keys = _key_names(header)
    on = " AND ".join(f"budgets.{key} = d.{key}" for key in header.keys)
    return (
        f'UPDATE budgets SET "left" = d.after FROM decided d WHERE {on} AND d.taking_part'
        " AND d.before IS NOT NULL",
        f"INSERT INTO budgets SELECT {keys}, after FROM decided"
        " WHERE taking_part AND before IS NULL",
    )
