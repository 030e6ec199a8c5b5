"""The store: what the ledger needs from a database, its address, and what its errors mean.

A store gives transactions that are durable when `commit` returns. A failure before that is
`StoreUnavailable`, and nothing was spent; a connection that dies while committing leaves the
outcome unknown. Statements are SQLAlchemy Core and the same for both stores; what differs is here.
Its address is `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://…`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, literal_column, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError as BadUrl
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from residua import checks
from residua.errors import (
    ArgumentError,
    ArgumentTypeError,
    LedgerError,
    MissingPackage,
    StoreUnavailable,
)
from residua.ledger.storage import schema
from residua.ledger.storage.rows import Prepared, Question

TRIES = 5
"""Attempts at a transaction that meets another one."""
FAILURES = (SQLAlchemyError, UnicodeDecodeError)
"""The errors of a database; the latter is that of a damaged one."""


class Again(Exception):
    """The transaction met another one and must be tried once more; nothing was written."""


class Lost(Again):
    """The connection was dead before anything was committed: a new one may do."""


class CommitUnknown(Exception):
    """The connection died while committing."""


class Store(ABC):
    """A database that holds a ledger."""

    now: ClassVar[str]
    """The database's time as `clock.py` writes it, in SQL."""
    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """How the driver executes a statement that reads."""
    locks_rows: ClassVar[bool]
    """Whether several may write at once, each to its own budgets."""

    def __init__(self, place: Place, engine: Engine):
        self.place = place
        self.engine = engine
        self._process = os.getpid()

    def check_process(self) -> None:
        """Raise in a process that inherited the ledger: connections and locks are not shared."""
        if os.getpid() != self._process:
            raise StoreUnavailable(
                f"{self.place} was opened before the process forked: open it again in this one;"
                " nothing was spent"
            )

    @abstractmethod
    def begin_writing(self, connection: Connection) -> None:
        """Begin a transaction that writes, durably."""

    @abstractmethod
    def begin_reading(self, connection: Connection) -> None:
        """Begin a transaction that sees one state of the database."""

    @abstractmethod
    def lock_schema(self, connection: Connection) -> None:
        """Keep everyone else from changing the schema or adding budgets."""

    @abstractmethod
    def locking(self, names: Sequence[str]) -> list[Question]:
        """The locks that keep others from writing to these budgets, in a fixed order."""

    @abstractmethod
    def driving(self, connection: Connection) -> AbstractContextManager[Any]:
        """The driver's connection; what it raises comes as SQLAlchemy would raise it."""

    def sent_at_once(self, _driver: Any) -> AbstractContextManager[Any]:
        """Within, statements are sent before the first of them is answered, where that is known."""
        return nullcontext()

    def ask(
        self, connection: Connection, questions: Sequence[Question]
    ) -> list[list[tuple[Any, ...]]]:
        """The rows of several statements, which are executed in order."""
        dialect = connection.dialect.name
        with self.driving(connection) as driver:
            with self.sent_at_once(driver):
                asked = [
                    driver.execute(
                        statement.text(dialect), statement.values(dialect, given), **self.options
                    )
                    for statement, given in questions
                ]
            return [cursor.fetchall() for cursor in asked]

    def put(
        self,
        connection: Connection,
        writes: Sequence[tuple[Prepared, Sequence[Mapping[str, Any]]]],
    ) -> None:
        """Write rows. Raises `Again` where a row to be changed is not there as it was read."""
        dialect = connection.dialect.name
        with self.driving(connection) as driver:
            done = [driver.cursor() for _ in writes]
            with self.sent_at_once(driver):
                for (write, rows), cursor in zip(writes, done, strict=True):
                    values = [write.values(dialect, row) for row in rows]
                    cursor.executemany(write.text(dialect), values)
            for (write, rows), cursor in zip(writes, done, strict=True):
                if write.changes and cursor.rowcount != len(rows):
                    raise Again

    def make_durable(self, connection: Connection) -> None:  # noqa: B027
        """In a transaction that writes: see to it that what others committed survives, and commit.

        A process that dies while it commits may leave what is seen but not synced yet.
        """

    def identity(self, _connection: Connection) -> str:
        """The identity of this database, if it differs from that of its copies; else nothing."""
        return ""

    def settle(self) -> None:  # noqa: B027
        """Set the database up for writing, once it is known to be a ledger or is to become one."""

    def foreign(self, _connection: Connection) -> bool:
        """Whether the database is one of something else; it may hold other things beside it."""
        return False

    @abstractmethod
    def translated(self, error: Exception) -> Exception:
        """The meaning of a failure before the commit."""

    @abstractmethod
    def commit(self, connection: Connection, is_committed: Callable[[Connection], bool]) -> None:
        """Commit; `is_committed` finds out later whether it happened.

        Raises `CommitUnknown` if the outcome is unknown.
        """

    @cached_property
    def facts_and_time(self) -> Prepared:
        """The rows of `meta`, and the time."""
        return Prepared(select(schema.meta.c.name, schema.meta.c.value, literal_column(self.now)))

    def facts(self) -> dict[str, str]:
        """How the store is set up, for people."""
        return {}

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection from the pool, given back whatever happens."""
        with self._guarded(self._opened(lambda _: None)) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, and sees one state."""
        try:
            with self._guarded(self._opened(self.begin_reading)) as connection:
                yield connection
        except Again as again:
            raise StoreUnavailable(f"{self.place} became unavailable while it was read") from again

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is rolled back unless it is committed inside."""
        with self._guarded(self._opened(self.begin_writing)) as connection:
            yield connection

    def _opened(self, begin: Callable[[Connection], None]) -> Connection:
        """A connection on which a transaction was begun; a new one if the first is dead."""
        self.check_process()
        for again in (True, False):
            try:
                connection = self.engine.connect()
            except FAILURES as error:
                raise self.translated(error) from error
            try:
                begin(connection)
            except BaseException as error:
                self._end(connection)
                if not isinstance(error, FAILURES):
                    raise
                failure = self.translated(error)
                if again and isinstance(failure, Lost):
                    continue
                raise failure from error
            break
        return connection

    @contextmanager
    def _guarded(self, connection: Connection) -> Iterator[Connection]:
        try:
            yield connection
        except FAILURES as error:
            raise self.translated(error) from error
        finally:
            self._end(connection)

    def _end(self, connection: Connection) -> None:
        """Give a connection back, whatever is under way on it."""
        self.tidy(connection)
        give_back(connection)

    def tidy(self, connection: Connection) -> None:  # noqa: B027
        """Leave nothing under way on a connection that is given back."""

    def close(self) -> None:
        """Give all connections back to the system."""
        # What was inherited is the other process's to close.
        self.engine.dispose(close=os.getpid() == self._process)


def give_back(connection: Connection) -> None:
    """Close a connection, or throw it away where even that fails."""
    try:
        connection.close()
    except (SQLAlchemyError, OSError):
        # It may count as closed already, though what closed was the other end.
        with suppress(SQLAlchemyError):
            connection.invalidate()


def raised_by(connection: Connection, error: Exception, lost: bool = False) -> DBAPIError:
    """An error of the driver as SQLAlchemy would raise it."""
    base = connection.dialect.loaded_dbapi.Error
    made = DBAPIError.instance(
        None, None, error, base, connection_invalidated=lost, dialect=connection.dialect
    )
    assert isinstance(made, DBAPIError)
    return made


def unavailable(place: Place, error: Exception) -> LedgerError:
    """The general case: the database does not do what it was asked, and nothing was spent."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return StoreUnavailable(f"{place}: {str(cause).strip()}; nothing was spent")


@dataclass(frozen=True)
class Place:
    """A database: of SQLite by its file, of PostgreSQL by its address."""

    url: URL
    path: Path | None = None

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)


def place(url: Any) -> Place:
    """Read a ledger's address."""
    if isinstance(url, Path):
        return _sqlite(url)
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url must be a string or a path, got {checks.shown(url)}")
    if "://" not in url:
        checks.require(bool(url.strip()), "url", "an address or the path of a file", url)
        return _sqlite(Path(url))
    try:
        made = make_url(url)
    except (BadUrl, ValueError):
        raise ArgumentError(f"url must be an address, got {checks.shown(url)}") from None
    dialect = made.get_backend_name()
    if dialect == "sqlite":
        file = made.database
        if not file or file == ":memory:" or file.startswith("file:"):
            raise ArgumentError(
                f"url must name a file, because a ledger must outlive its process, got {url!r}"
            )
        return _sqlite(Path(file))
    if dialect in ("postgresql", "postgres"):
        return Place(made.set(drivername="postgresql+psycopg"))
    raise ArgumentError(f"url must begin with sqlite or postgresql, got {str(made)!r}")


def _sqlite(file: Path) -> Place:
    path = file.absolute()
    return Place(URL.create("sqlite", database=str(path)), path)


def open_store(place: Place, accept_async_standby: bool, read_only: bool) -> Store:
    """The store at an address. Raises `MissingPackage` where its driver is not installed."""
    if place.path is not None:
        from residua.ledger.storage.sqlite import SqliteStore

        return SqliteStore(place, read_only)
    try:
        from residua.ledger.storage.postgres import PostgresStore
    except ModuleNotFoundError as error:
        raise MissingPackage.behind(error, f"the address {place}") from None
    return PostgresStore(place, accept_async_standby)


def address_of(store: Store) -> str:
    """The whole address of a store, with its password: for another process, never to be shown."""
    return store.place.url.render_as_string(hide_password=False)


@contextmanager
def opened_to_read(address: str) -> Iterator[Store]:
    """The store at an address, to read records from."""
    store = open_store(place(address), accept_async_standby=True, read_only=True)
    try:
        yield store
    finally:
        store.close()
