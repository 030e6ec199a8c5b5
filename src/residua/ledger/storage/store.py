"""What the ledger asks of a database, and what its failures mean.

A store gives transactions that are durable when `commit` returns. A failure before that is
`StoreUnavailable`, and nothing was spent; a connection that dies while committing leaves the
outcome unknown. Statements are SQLAlchemy Core and the same for both stores; what differs is here.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, literal_column, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from residua.errors import LedgerError, StoreUnavailable
from residua.ledger.storage import schema
from residua.ledger.storage.statements import Guard, Prepared, Question, Write
from residua.ledger.storage.url import Place

_KEPT_SECONDS = 60.0
"""For which a connection goes from writer to writer; after that the pool looks at it."""
_MOST_KEPT = 1
FAILURES = (SQLAlchemyError, UnicodeDecodeError)
"""What a database that does not do what it was asked raises; the latter is a damaged one's."""


Meanwhile = Callable[[Callable[[], bool]], None]
"""Something to do until what it is given says that it was long enough."""


class Again(Exception):
    """The transaction met another one and must be tried once more; nothing was written."""


class Lost(Again):
    """The connection was dead before anything was committed: a new one may do."""


class Unsure(Exception):
    """The connection died while committing."""


class Store(ABC):
    """A database that holds a ledger."""

    now: ClassVar[str]
    """The database's time as `clock.py` writes it, in SQL."""
    blob: ClassVar[str]
    locks_rows: ClassVar[bool]
    """Whether several may write at once, each to its own budgets."""

    def __init__(self, place: Place, engine: Engine):
        self.place = place
        self.engine = engine
        self._process = os.getpid()
        self._kept: list[tuple[Connection, float]] = []
        """Connections of writers that are done, and when they came from the pool."""
        self._others = 0
        """How many transactions in this process were not the gate's."""

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
    def is_idle(self, connection: Connection) -> bool:
        """Whether nothing is under way on a connection, and no transaction open."""

    @abstractmethod
    def begin_reading(self, connection: Connection) -> None:
        """Begin a transaction that sees one state of the database."""

    @abstractmethod
    def lock_schema(self, connection: Connection) -> None:
        """Keep everyone else from changing the schema or adding budgets."""

    @abstractmethod
    def locking(self, names: Sequence[str]) -> list[Question]:
        """What keeps others from writing to these budgets, in a fixed order."""

    @abstractmethod
    def ask(
        self, connection: Connection, questions: Sequence[Question]
    ) -> list[list[tuple[Any, ...]]]:
        """The rows of several statements, which are executed in order, and sent at once.

        Values are as the driver gives them: numbers may come as texts.
        """

    @abstractmethod
    def put(
        self,
        connection: Connection,
        writes: Sequence[tuple[Write, Sequence[Mapping[str, Any]]]],
        guard: Guard | None = None,
    ) -> None:
        """Write rows. Only `commit` says that it went well, and nothing may come in between.

        With a guard nothing was read or locked before in this transaction; `commit` raises `Again`
        where the guard does not hold, unless what `seen` said makes sure of it.
        """

    @abstractmethod
    def seen(self, connection: Connection) -> object:
        """In a transaction that writes: something that is equal the next time if nobody else wrote.

        Or always, in a store that looks after guards.
        """

    def identity(self, connection: Connection) -> str:
        """Which database this is, for one that can tell it from its copies; else nothing."""
        return ""

    def settle(self) -> None:  # noqa: B027
        """Set the database up for writing, once it is known to be a ledger or is to become one."""

    @abstractmethod
    def foreign(self, connection: Connection) -> bool:
        """Whether the database is one of something else."""

    @abstractmethod
    def translated(self, error: Exception) -> Exception:
        """What a failure before the commit means."""

    @abstractmethod
    def commit(
        self,
        connection: Connection,
        landed: Callable[[Connection], bool],
        meanwhile: Meanwhile | None = None,
    ) -> None:
        """Commit. Raises `Unsure` where nobody can say; `landed` looks whether it is there.

        `meanwhile` is done while a server commits, if there is one to wait for.
        """

    @cached_property
    def facts_and_time(self) -> Prepared:
        """What `meta` says, row by row, and the time."""
        return Prepared(select(schema.meta.c.name, schema.meta.c.value, literal_column(self.now)))

    def facts(self) -> dict[str, str]:
        """How the store is set up, for people."""
        return {}

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection from the pool, given back whatever happens."""
        with self._used(self._opened(lambda _: None)) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, and sees one state."""
        try:
            with self._used(self._opened(self.begin_reading)) as connection:
                yield connection
        except Again as again:
            raise StoreUnavailable(f"{self.place} went away while it was read") from again

    @contextmanager
    def writing(self, remembers: bool = False) -> Iterator[Connection]:
        """A transaction that is rolled back unless it is committed inside.

        `remembers` says who writes there: the gate, which knows what it wrote (`memory.py`).
        """
        connection, since = self._writer()
        try:
            if not remembers:
                # Where there is one writer the gate is not at work now, and will see this.
                self._others += 1
            yield connection
            kept = self.is_idle(connection) and time.monotonic() < since + _KEPT_SECONDS
        except BaseException as error:
            self._end(connection)
            self._let_go()
            if isinstance(error, FAILURES):
                raise self.translated(error) from error
            raise
        if kept and len(self._kept) < _MOST_KEPT:
            self._kept.append((connection, since))
        else:
            self._end(connection)

    def _writer(self) -> tuple[Connection, float]:
        """A connection on which a transaction was begun, and when the pool gave it."""
        self.check_process()
        try:
            connection, since = self._kept.pop()
        except IndexError:
            return self._opened(self.begin_writing), time.monotonic()
        try:
            self.begin_writing(connection)
        except BaseException as error:
            self._end(connection)
            self._let_go()
            if not isinstance(error, FAILURES):
                raise
            failure = self.translated(error)
            if not isinstance(failure, Lost):
                raise failure from error
            return self._opened(self.begin_writing), time.monotonic()
        return connection, since

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
    def _used(self, connection: Connection) -> Iterator[Connection]:
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

    def _let_go(self) -> None:
        """Close what was kept: the others may have been cut as well."""
        while self._kept:
            with suppress(IndexError, SQLAlchemyError, OSError):
                connection, _ = self._kept.pop()
                connection.invalidate()
                connection.close()

    def close(self) -> None:
        """Give all connections back to the system."""
        # What was inherited is the other process's to close.
        mine = os.getpid() == self._process
        if mine:
            self._let_go()
        self.engine.dispose(close=mine)


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
