"""Open the file of an SQLite database, to write or only to read, and find out what it is.

A reader too opens the file for writing where that is possible, so that SQLite can undo what a
killed process left half done; `query_only` keeps it from writing anything else. On a read-only
medium, an empty write-ahead log needs no index.

Only the owner can read a new file, whatever the umask; SQLite gives the files beside it the same
permissions.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from residua.errors import StoreUnavailable
from residua.ledger.storage.mounts import is_read_only

PATIENCE = 60.0
"""Seconds to wait for another process's transaction."""

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_UNREADABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """A connection; for one that only reads, the file must be there."""
    if not read_only:
        _create(path)
        return _opened(path)
    connection = _opened(path, "?mode=rw")
    try:
        return _probed(connection)
    except sqlite3.Error as error:
        if primary(error) not in _UNREADABLE:
            raise
        left = [name for end in ("-journal", "-wal") if _size(name := _beside(path, end))]
        if left or not is_read_only(path):
            why = f"{left[0].name} holds what was written last" if left else str(error)
            raise StoreUnavailable(
                f"{path} cannot be read where nothing can be written beside it ({why}): open it,"
                " with the files beside it, where that is possible"
            ) from error
    # Nobody writes, so no lock has to announce this reader.
    return _probed(_opened(path, "?immutable=1"))


def tables_of(path: Path) -> Sequence[str] | None:
    """The names of the tables in a file, which is left as it is; None where they cannot be read."""
    # The last writer to close a database empties its write-ahead log into it; where there is
    # none, a reader leaves one behind. Every process that respects a journal rolls it back, and
    # the name of a table does not depend on its contents.
    mode = "?mode=ro" if _size(_beside(path, "-wal")) else "?mode=rw"
    if _size(_beside(path, "-journal")):
        mode = "?immutable=1"
    try:
        connection = _opened(path, mode)
        try:
            return [name for (name,) in connection.execute(TABLES)]
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def primary(error: BaseException | None) -> int | None:
    """SQLite's code of an error, without the details."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _create(path: Path) -> None:
    """Make the file, for its owner alone, where there is none."""
    # One that is there must not be opened here: to close it would drop SQLite's locks on it.
    # Where it cannot be made, SQLite says why.
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _opened(path: Path, options: str = "") -> sqlite3.Connection:
    return sqlite3.connect(
        path.as_uri() + options,
        uri=True,
        timeout=PATIENCE,
        check_same_thread=False,
        isolation_level=None,
    )


def _probed(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.execute("PRAGMA query_only=ON")
        connection.execute(TABLES).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _beside(path: Path, end: str) -> Path:
    # SQLite follows links before it looks for what is beside a file.
    resolved = path.resolve()
    return resolved.with_name(resolved.name + end)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
