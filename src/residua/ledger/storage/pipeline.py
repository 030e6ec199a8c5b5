"""Several statements to PostgreSQL in one round trip.

libpq's pipeline mode: statements are sent one after another without waiting, and the answers come
back in order. An error makes the server skip everything up to the next synchronisation, a `COMMIT`
included. What psycopg does for one statement takes longer than the server needs for it, so its
wrapper of libpq (`psycopg.pq`) is used directly, on the connection that SQLAlchemy's pool gave.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import errors, pq

_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_PAUSE = 0.5
"""Seconds after which a wait looks up, so that it can be interrupted on every system."""


class Failed(Exception):
    """The server did not do what it was told, or is gone."""

    def __init__(self, error: psycopg.Error, place: int | None, lost: bool):
        super().__init__(str(error))
        self.error = error
        self.place = place
        """Which of the statements it refused; None where it said nothing."""
        self.lost = lost
        """Whether the connection is of no more use."""


class Pipeline:
    """The statements under way on one connection. Used by one thread at a time."""

    def __init__(self, connection: psycopg.Connection[Any]):
        self._connection = connection
        self._libpq = connection.pgconn
        self._prepared: set[bytes] = set()
        self._waiting: list[bytes | None] = []
        """Of each answer to come, the name that it prepares, if that is what it is for."""
        self.warnings: list[str] = []
        """What the server warned of since somebody looked."""
        connection.add_notice_handler(self._noticed)

    def _noticed(self, notice: errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(notice.message_primary or "a warning")

    @property
    def under_way(self) -> bool:
        """Whether answers have not been read."""
        return self._libpq.pipeline_status != pq.PipelineStatus.OFF

    @property
    def sent(self) -> int:
        """How many statements have no answer yet."""
        return self._waiting.count(None)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        return self._libpq.transaction_status != pq.TransactionStatus.IDLE

    def send(self, name: bytes, text: bytes, values: Sequence[bytes]) -> None:
        """Have a statement executed; its text is sent once for a connection."""
        libpq = self._libpq
        try:
            if not self._waiting and not self.under_way:
                libpq.enter_pipeline_mode()
            if name not in self._prepared and name not in self._waiting:
                libpq.send_prepare(name, text)
                self._waiting.append(name)
            libpq.send_query_prepared(name, values)
        except psycopg.Error as error:
            raise Failed(error, None, self._lost()) from error
        self._waiting.append(None)

    def flush(self) -> None:
        """Have the server begin with what was sent, as far as it takes it without waiting."""
        try:
            self._libpq.flush()
        except psycopg.Error as error:
            raise Failed(error, None, self._lost()) from error

    def look(self) -> None:
        """Raise where the other end is known to be gone, before anything is sent there."""
        try:
            while _wait(self._libpq.socket, writing=False, seconds=0.0):
                self._libpq.consume_input()
        except psycopg.Error as error:
            raise Failed(error, None, lost=True) from error

    def answers(
        self, meanwhile: Callable[[Callable[[], bool]], None] | None = None
    ) -> list[pq.abc.PGresult]:
        """What the server says to all statements since the last time; `meanwhile` it works."""
        waiting, self._waiting = self._waiting, []
        found: list[pq.abc.PGresult] = []
        failure: tuple[psycopg.Error, int] | None = None
        try:
            self._libpq.pipeline_sync()
            if meanwhile is not None and not self._libpq.flush():
                _let_go_first()
                meanwhile(lambda: _wait(self._libpq.socket, writing=False, seconds=0.0))
            for name in waiting:
                result = self._next()
                if result.status in _GOOD:
                    if name is None:
                        found.append(result)
                    else:
                        self._prepared.add(name)
                elif failure is None:
                    failure = (_error(result), len(found))
            self._next()
            self._libpq.exit_pipeline_mode()
        except psycopg.Error as error:
            if failure is None:
                raise Failed(error, None, self._lost()) from error
        if failure is not None:
            refused, place = failure
            if isinstance(refused, errors.InvalidSqlStatementName):
                # Somebody made the session forget what was prepared.
                self._connection.close()
            raise Failed(refused, place, self._lost()) from refused
        return found

    def _lost(self) -> bool:
        return self._libpq.status != pq.ConnStatus.OK or self.under_way

    def _next(self) -> pq.abc.PGresult:
        """The next answer, or the end that `pipeline_sync` asked for."""
        libpq = self._libpq
        while True:
            while libpq.flush():
                _wait(libpq.socket, writing=True)
                libpq.consume_input()
            while libpq.is_busy():
                _wait(libpq.socket, writing=False)
                libpq.consume_input()
            result = libpq.get_result()
            if result is not None:
                if result.status == pq.ExecStatus.FATAL_ERROR and _state(result) is None:
                    raise psycopg.OperationalError(_message(result))
                return result
            # The end of the answers to one statement, or of all.
            if libpq.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError("the connection is lost")


def _let_go_first() -> None:
    """Let a server that was woken on this processor begin: work that can wait would hold it up."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def rows_of(result: pq.abc.PGresult, encoding: str) -> list[tuple[str | None, ...]]:
    """The rows of an answer, every value as text."""
    columns = range(result.nfields)
    value = result.get_value
    return [
        tuple(None if (raw := value(row, at)) is None else raw.decode(encoding) for at in columns)
        for row in range(result.ntuples)
    ]


def _error(result: pq.abc.PGresult) -> psycopg.Error:
    try:
        kind = errors.lookup((_state(result) or b"").decode())
    except KeyError:
        kind = psycopg.DatabaseError
    return kind(_message(result))


def _state(result: pq.abc.PGresult) -> bytes | None:
    return result.error_field(pq.DiagnosticField.SQLSTATE)


def _message(result: pq.abc.PGresult) -> str:
    return result.error_message.decode(errors="replace").strip()


if hasattr(select, "poll"):

    def _wait(socket: int, writing: bool, seconds: float = _PAUSE) -> bool:
        poll = select.poll()
        poll.register(socket, select.POLLIN | (select.POLLOUT if writing else 0))
        return bool(poll.poll(1000 * seconds))

else:  # pragma: no cover  (Windows)

    def _wait(socket: int, writing: bool, seconds: float = _PAUSE) -> bool:
        return any(select.select([socket], [socket] if writing else [], [], seconds))
