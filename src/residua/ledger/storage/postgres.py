"""A ledger in a PostgreSQL database (psycopg 3).

Row locks on the budgets of a transaction, always in the order of their names; `synchronous_commit`
on for each transaction that writes. A server that may lose what it acknowledged is refused by every
new connection, and by the first transaction after each minute: `fsync` or `full_page_writes` off, a
server in recovery, and standbys that are not synchronous unless that is accepted, which `facts`
then says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import psycopg
from psycopg import pq
from sqlalchemy import Connection, create_engine, event, literal_column, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from residua.errors import StoreUnavailable, UnsafeStore
from residua.ledger.storage import schema
from residua.ledger.storage.rows import Among, Prepared, Question, listed
from residua.ledger.storage.store import (
    Again,
    CommitUnknown,
    Lost,
    Place,
    Store,
    raised_by,
    unavailable,
)

DURABLE = "set_config('synchronous_commit', 'on', true)"
"""For this transaction; said with its first statement, which saves one."""
_MET = ("40001", "40P01", "55P03")
"""Serialisation failure, deadlock, lock not available: another transaction was met."""
_FORGOTTEN = "26000"
"""The session has lost a prepared statement, as behind a proxy that switches sessions."""

_LOCK = Prepared(
    select(schema.budgets.c.id, literal_column(DURABLE))
    .where(Among(schema.budgets.c.name, "names"))
    # One order for all processes, whatever is usual in the database.
    .order_by(schema.budgets.c.name.collate("C"))
    .with_for_update()
)
# Whatever is usual at the server: each statement must see what was committed before it began, or
# what is read after a lock could be older than the lock.
_ISOLATION = "READ COMMITTED"
# A slot that is not in use is that of a standby which is away, and may be promoted.
_SETTINGS = """
SELECT current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(),
    current_setting('server_version'), current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication
     WHERE coalesce(application_name, '') <> 'pg_basebackup')
    + (SELECT count(*) FROM pg_replication_slots
       WHERE slot_type = 'physical' AND NOT active AND NOT temporary)
"""
# A dump that is restored creates new tables, and perhaps a new cluster or database; recovery to a
# point in time, and a standby that takes over, begin a timeline.
_IDENTITY = """
SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    to_regclass('residua_records')::oid)
"""
# Every statement finds its rows by a key. The server's plan for a table that is still empty reads
# the whole table, and the server keeps it until an ANALYZE; so such plans are turned off.
_BY_KEY = """
SET enable_seqscan = off; SET enable_bitmapscan = off;
SET enable_hashjoin = off; SET enable_mergejoin = off
"""
_WARNINGS = "residua_warnings"
_SCHEMA_LOCK = 0x72657369
"""The advisory lock of the schema, which no other program takes."""


class PostgresStore(Store):
    """The store for many writers."""

    now: ClassVar[str] = (
        "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
    )
    options: ClassVar[Mapping[str, Any]] = {"prepare": True}
    locks_rows: ClassVar[bool] = True

    def __init__(self, place: Place, accept_async_standby: bool = False):
        engine = create_engine(
            place.url,
            pool_size=8,
            max_overflow=64,
            pool_recycle=600,
            isolation_level=_ISOLATION,
            connect_args={
                "connect_timeout": 10,
                "application_name": "residua",
            },
        )
        super().__init__(place, engine)
        self._facts: dict[str, str] = {}
        self._accept_async_standby = accept_async_standby
        self._looked = 0.0
        event.listen(engine, "connect", self._looked_at)
        try:
            with self.connection():
                pass
        except BaseException:
            engine.dispose()
            raise

    def _looked_at(self, connection: psycopg.Connection[Any], entry: Any) -> None:
        warnings: list[str] = []
        entry.info[_WARNINGS] = warnings

        def note(notice: psycopg.errors.Diagnostic) -> None:
            if notice.severity_nonlocalized == "WARNING":
                warnings.append(notice.message_primary or "a warning")

        connection.add_notice_handler(note)
        try:
            self._check_server(connection)
            # Whatever is usual for the role or the database.
            connection.read_only = False
            # Whatever is usual for the role: a commit that did not wait for its standby only warns.
            connection.execute("SET client_min_messages TO warning")
            connection.execute(_BY_KEY)
            connection.commit()
        except BaseException:
            connection.close()
            raise

    def _check_server(self, connection: psycopg.Connection[Any]) -> None:
        now = time.monotonic()
        found = connection.execute(_SETTINGS).fetchone()
        connection.commit()
        assert found is not None
        *on, recovers, version, synchronous, standbys = found
        for name, value in zip(("fsync", "full_page_writes"), on, strict=True):
            if value != "on":
                raise UnsafeStore(
                    f"{self.place}: {name} must be on, got {value!r}: a crash could lose"
                    " what was acknowledged"
                )
        if recovers:
            raise UnsafeStore(f"{self.place} is in recovery: use the primary")
        facts = {"store": f"PostgreSQL {version}"}
        if standbys and not synchronous:
            if not self._accept_async_standby:
                raise UnsafeStore(
                    f"{self.place} has {standbys} standbys and none is synchronous: a failover"
                    " could lose spends; set synchronous_standby_names, or accept_async_standby"
                )
            facts["standbys"] = f"{standbys}, asynchronous, accepted: a failover may lose spends"
        elif synchronous:
            facts["standbys"] = f"synchronous: {synchronous}"
        self._facts, self._looked = facts, now

    def _look_again(self, connection: Connection) -> None:
        """Raise where the server has become one that may lose spends; once a minute."""
        if time.monotonic() < self._looked + 60.0:
            return
        with self.driving(connection) as driver:
            self._check_server(driver)

    def begin_writing(self, connection: Connection) -> None:
        """Check the server; the statement that locks follows, and turns durable commits on."""
        self._look_again(connection)

    def begin_reading(self, connection: Connection) -> None:
        self._look_again(connection)
        connection.execution_options(isolation_level="REPEATABLE READ")
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    def lock_schema(self, connection: Connection) -> None:
        connection.execute(text(f"SELECT {DURABLE}, pg_advisory_xact_lock({_SCHEMA_LOCK})"))

    def locking(self, names: Sequence[str]) -> list[Question]:
        return [(_LOCK, {"names": listed(names)})] if names else []

    @contextmanager
    def driving(self, connection: Connection) -> Iterator[psycopg.Connection[Any]]:
        driver = _driver(connection)
        try:
            yield driver
        except psycopg.Error as error:
            lost = driver.broken or driver.closed or error.sqlstate == _FORGOTTEN
            if lost:
                connection.invalidate()
                # Other idle connections are probably dead too.
                connection.engine.dispose()
            raise raised_by(connection, error, lost) from error

    def sent_at_once(self, driver: psycopg.Connection[Any]) -> AbstractContextManager[Any]:
        return driver.pipeline()

    def tidy(self, connection: Connection) -> None:
        if connection.invalidated:
            return
        libpq = _driver(connection).pgconn
        # An interrupted caller may have left results that were never read.
        if (
            libpq.pipeline_status != pq.PipelineStatus.OFF
            or libpq.transaction_status == pq.TransactionStatus.ACTIVE
        ):
            connection.invalidate()

    def identity(self, connection: Connection) -> str:
        """The cluster, its timeline, the database and the table: a restore changes one of them."""
        return str(connection.execute(text(_IDENTITY)).scalar_one())

    def translated(self, error: Exception) -> Exception:
        if isinstance(error, IntegrityError):
            return Again()
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _MET:
            return Again()
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return Lost(str(error.orig).strip())
        return unavailable(self.place, error)

    def commit(self, connection: Connection, _is_committed: Callable[[Connection], bool]) -> None:
        warnings: list[str] = connection.info[_WARNINGS]
        warnings.clear()
        try:
            with self.driving(connection) as driver:
                if driver.info.transaction_status == pq.TransactionStatus.INERROR:
                    raise Again  # The server would roll back, and call that a success.
                if connection.in_transaction():
                    connection.commit()
                else:
                    driver.commit()
        except DBAPIError as error:
            failure = self.translated(error)
            sqlstate = getattr(error.orig, "sqlstate", None)
            # The server said that it did not commit, unless it could not say anything.
            silent = sqlstate is None or sqlstate[:2] in ("08", "57", "XX")
            if isinstance(failure, Lost) or (isinstance(failure, StoreUnavailable) and silent):
                connection.invalidate()
                raise CommitUnknown(str(error.orig).strip()) from error
            raise failure from error
        if warnings:
            # Such as that it did not wait for the standby: committed here, perhaps not there.
            connection.invalidate()
            raise CommitUnknown(warnings[0])

    def facts(self) -> dict[str, str]:
        return dict(self._facts)


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
