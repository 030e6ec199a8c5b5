"""A ledger in a PostgreSQL database (psycopg 3).

Row locks on the budgets of a transaction, always in the order of their names; `synchronous_commit`
on for each transaction that writes. A server that may lose what it acknowledged is refused when the
ledger is opened: `fsync` or `full_page_writes` off, a server in recovery, and standbys that are
not synchronous unless that is accepted, which `facts` then says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from sqlalchemy import Connection, bindparam, create_engine, literal_column, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from residuum.errors import MissingPackage, StoreUnavailable, UnsafeStore
from residuum.ledger import schema
from residuum.ledger.place import Place
from residuum.ledger.prepared import Prepared
from residuum.ledger.store import Again, Lost, Store, Unsure, unavailable

_MET = ("40001", "40P01", "55P03")
"""Serialisation failure, deadlock, lock not available: another transaction was met."""
_SCHEMA_LOCK = 0x72657369
_CONNECT_SECONDS = 10

_DURABLE = "set_config('synchronous_commit', 'on', true)"
"""For this transaction; said with its first statement, which saves one."""

_ROWS = select(schema.budgets.c.id, literal_column(_DURABLE)).order_by(schema.budgets.c.name)
_LOCK = _ROWS.where(schema.budgets.c.name.in_(bindparam("names", expanding=True))).with_for_update()
_LOCK_ONE = Prepared(_ROWS.where(schema.budgets.c.name == bindparam("name")).with_for_update())


class PostgresStore(Store):
    """The store for many writers."""

    now: ClassVar[str] = (
        "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
    )
    blob: ClassVar[str] = "BYTEA"
    locks_rows: ClassVar[bool] = True

    def __init__(self, place: Place, accept_async_standby: bool = False):
        try:
            engine = create_engine(
                place.url,
                pool_size=8,
                max_overflow=64,
                connect_args={"connect_timeout": _CONNECT_SECONDS, "application_name": "residuum"},
            )
        except ModuleNotFoundError as error:
            raise MissingPackage.behind(error, f"the address {place}") from None
        super().__init__(place, engine)
        self._facts: dict[str, str] = {}
        try:
            with self.connection() as connection:
                self._check_server(connection, accept_async_standby)
        except BaseException:
            engine.dispose()
            raise

    def _check_server(self, connection: Connection, accept_async_standby: bool) -> None:
        def shown(name: str) -> str:
            return str(connection.execute(text(f"SHOW {name}")).scalar_one())

        for name in ("fsync", "full_page_writes"):
            if shown(name) != "on":
                raise UnsafeStore(
                    f"{self.place}: {name} must be on, got {shown(name)!r}: a crash could lose"
                    " what was acknowledged"
                )
        if connection.execute(text("SELECT pg_is_in_recovery()")).scalar_one():
            raise UnsafeStore(f"{self.place} is in recovery: use the primary")
        self._facts["store"] = f"PostgreSQL {shown('server_version')}"
        query = (
            "SELECT count(*) FROM pg_stat_replication"
            " WHERE coalesce(application_name, '') <> 'pg_basebackup'"
        )
        standbys = connection.execute(text(query)).scalar_one()
        synchronous = shown("synchronous_standby_names")
        if standbys and not synchronous:
            if not accept_async_standby:
                raise UnsafeStore(
                    f"{self.place} has {standbys} standbys and none is synchronous: a failover"
                    " could lose spends; set synchronous_standby_names, or accept_async_standby"
                )
            self._facts["standbys"] = (
                f"{standbys}, asynchronous, accepted: a failover may lose spends"
            )
        elif synchronous:
            self._facts["standbys"] = f"synchronous: {synchronous}"

    def begin_writing(self, connection: Connection) -> None:
        """Whoever writes locks first, and with the locks comes the promise of durability."""

    def begin_reading(self, connection: Connection) -> None:
        connection.execution_options(isolation_level="REPEATABLE READ")
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    def lock_schema(self, connection: Connection) -> None:
        connection.execute(text(f"SELECT {_DURABLE}, pg_advisory_xact_lock({_SCHEMA_LOCK})"))

    def lock(self, connection: Connection, names: Sequence[str]) -> None:
        if len(names) == 1:
            _LOCK_ONE.run(connection, {"name": names[0]}).all()
        elif names:
            connection.execute(_LOCK, {"names": list(names)}).all()

    def foreign(self, connection: Connection) -> bool:
        """A database may hold other things beside a ledger."""
        return False

    def translated(self, error: SQLAlchemyError) -> Exception:
        if isinstance(error, IntegrityError):
            return Again()
        if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _MET:
            return Again()
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return Lost(str(error.orig).strip())
        return unavailable(self.place, error)

    def commit(self, connection: Connection, landed: Callable[[Connection], bool]) -> None:
        try:
            connection.commit()
        except DBAPIError as error:
            failure = self.translated(error)
            sqlstate = getattr(error.orig, "sqlstate", None)
            # The server said that it did not commit, unless it could not say anything.
            silent = sqlstate is None or sqlstate[:2] in ("08", "57", "XX")
            if isinstance(failure, Lost) or (isinstance(failure, StoreUnavailable) and silent):
                connection.invalidate()
                raise Unsure(str(error.orig).strip()) from error
            raise failure from error

    def facts(self) -> dict[str, str]:
        return dict(self._facts)
