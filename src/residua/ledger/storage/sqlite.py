"""A ledger in one SQLite file.

One writer at a time, by `BEGIN IMMEDIATE`. A write-ahead log with `synchronous=FULL` only where the
library is free of the WAL-reset bug (fixed in 3.51.3, 3.50.7 and 3.44.6); elsewhere the rollback
journal with `synchronous=EXTRA`, which also syncs the directory once the journal is gone. A file is
inspected before that is set; nothing is set in a file that is not a ledger, or that is only read.

A reader too opens the file for writing where that is possible, so that SQLite can undo what a
killed process left half done; `query_only` keeps it from writing anything else. On a read-only
medium, an empty write-ahead log needs no index. Only the owner can read a new file, whatever the
umask; SQLite gives the files beside it the same permissions. On Linux the table of mounts says
whether SQLite's locks can be trusted, and whether the file system is writable.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from residua.errors import (
    BrokenRecord,
    NotALedger,
    ReadOnlyLedger,
    StoreUnavailable,
    UnsafeStore,
)
from residua.ledger.storage.rows import Question
from residua.ledger.storage.store import CommitUnknown, Place, Store, raised_by, unavailable

_SETTLED = "residua_settled"
_UNWRITTEN = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
"""The errors of a commit to a write-ahead log that failed before its last frame was written."""


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether a library is free of the WAL-reset bug."""
    if version[:2] == (3, 44):
        return version >= (3, 44, 6)
    if version[:2] == (3, 50):
        return version >= (3, 50, 7)
    return version >= (3, 51, 3)


class SqliteStore(Store):
    """The embedded store."""

    now: ClassVar[str] = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    locks_rows: ClassVar[bool] = False

    def __init__(self, place: Place, read_only: bool = False):
        path = place.path
        assert path is not None
        kind = network_filesystem(path)
        if kind is not None:
            raise UnsafeStore(
                f"url must be on a local disk: {path} is on {kind}, whose locks SQLite cannot trust"
            )
        self.wal = wal_is_safe(sqlite3.sqlite_version_info)
        self.read_only = read_only
        engine = create_engine(
            "sqlite://",
            creator=lambda: connect(path, read_only),
            poolclass=QueuePool,
            pool_size=8,
            max_overflow=64,
        )
        event.listen(engine, "connect", self._set_up)
        self._file: tuple[int, int] | None = None
        super().__init__(place, engine)

    def _set_up(self, connection: Any, _: object) -> None:
        if self.read_only:
            self.wal = _mode(connection) == "WAL"
        connection.execute(f"PRAGMA synchronous={'FULL' if self.wal else 'EXTRA'}")
        connection.execute("PRAGMA fullfsync=ON")
        connection.execute("PRAGMA trusted_schema=OFF")

    def settle(self) -> None:
        with self.connection() as connection:
            self._settle(connection)

    def _settle(self, connection: Connection) -> None:
        """Have the journal that is wanted, before a connection writes for the first time."""
        if connection.info.get(_SETTLED):
            return
        wanted = "WAL" if self.wal else "DELETE"
        with self.driving(connection) as driver:
            mode = _mode(driver, f"={wanted}")
            if mode != wanted:
                raise sqlite3.OperationalError(f"journal_mode stays {mode}, {wanted} is needed")
        connection.info[_SETTLED] = True

    def begin_writing(self, connection: Connection) -> None:
        self._check_file()
        self._settle(connection)
        with self.driving(connection) as driver:
            driver.execute("BEGIN IMMEDIATE")

    def _check_file(self) -> None:
        """Raise where the file at the path is not the one that is open."""
        assert self.place.path is not None
        try:
            now = os.stat(self.place.path)
        except OSError as error:
            raise StoreUnavailable(f"{self.place}: {error}; nothing was spent") from error
        if self._file is None:
            self._file = (now.st_dev, now.st_ino)
        elif self._file != (now.st_dev, now.st_ino):
            raise ReadOnlyLedger(f"{self.place} was replaced since it was opened: open it again")

    def begin_reading(self, connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    def lock_schema(self, connection: Connection) -> None:
        """There is one writer."""

    def locking(self, _names: Sequence[str]) -> list[Question]:
        """There is one writer."""
        return []

    @contextmanager
    def driving(self, connection: Connection) -> Iterator[sqlite3.Connection]:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        try:
            yield driver
        except sqlite3.Error as error:
            raise raised_by(connection, error) from error

    def make_durable(self, connection: Connection) -> None:
        """Commit a change of the file's header: that syncs everything, also the directory.

        Once its journal is gone a transaction is seen, and once the directory is synced it is
        durable; a process that is killed in between leaves the latter to the next commit.
        """
        with self.driving(connection) as driver:
            (version,) = driver.execute("PRAGMA user_version").fetchone()
            driver.execute(f"PRAGMA user_version = {(version + 1) % 2**31}")
        self.commit(connection, lambda _: True)

    def foreign(self, connection: Connection) -> bool:
        return _foreign(connection.exec_driver_sql(TABLES).scalars().all())

    def translated(self, error: Exception) -> Exception:
        code = primary(getattr(error, "orig", None))
        damaged = code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
        if damaged or isinstance(error, UnicodeDecodeError):
            return NotALedger(f"{self.place} is not an SQLite database, or is damaged")
        if "Could not decode to UTF-8" in str(error):
            return BrokenRecord(f"{self.place}: a record is damaged: verify the ledger")
        return unavailable(self.place, error)

    def commit(self, connection: Connection, is_committed: Callable[[Connection], bool]) -> None:
        try:
            if connection.in_transaction():
                connection.commit()
            else:
                # It has not heard of what was executed past it.
                with self.driving(connection) as driver:
                    driver.commit()
        except DBAPIError as error:
            connection.invalidate()
            if self.wal:
                # Nothing of it is seen now; but what is whole in the log is there after a crash.
                if getattr(error.orig, "sqlite_errorcode", None) in _UNWRITTEN:
                    raise self.translated(error) from error
                raise CommitUnknown(str(error.orig)) from error
            # What failed may have been the last step, after which it counts: look.
            try:
                with self.reading() as other:
                    there = is_committed(other)
            except (StoreUnavailable, NotALedger):
                raise CommitUnknown(str(error.orig)) from error
            if not there:
                raise self.translated(error) from error

    def facts(self) -> dict[str, str]:
        return {
            "store": f"SQLite {sqlite3.sqlite_version}",
            "journal": "write-ahead log, synchronous=FULL"
            if self.wal
            else "rollback journal, synchronous=EXTRA",
        }


def is_foreign(path: Path) -> bool:
    """Whether a file can be seen to be a database of something else; it is left as it is."""
    return _foreign(tables_of(path) or ())


def _foreign(tables: Collection[str]) -> bool:
    """Whether tables are those of something else."""
    return bool(tables) and "residua_meta" not in tables


def _mode(connection: sqlite3.Connection, wanted: str = "") -> str:
    (mode,) = connection.execute(f"PRAGMA journal_mode{wanted}").fetchone()
    return str(mode).upper()


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
                f"{path} cannot be read where nothing can be written ({why}): open it, with the"
                " files beside it, in a writable directory"
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
        timeout=60.0,
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


TABLE = Path("/proc/self/mountinfo")

_NETWORK = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb3", "smbfs",
        "vboxsf", "virtiofs", "vmhgfs", "wekafs",
    }
)  # fmt: skip
_NETWORK_FUSE = frozenset(
    {
        "alluxio-fuse", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "cephfs", "curlftpfs",
        "davfs", "davfs2", "fuse_dfs", "gcsfuse", "geesefs", "glusterfs", "goofys",
        "google-drive-ocamlfuse", "gvfsd-fuse", "hdfs", "httpdirfs", "jmtpfs", "juicefs",
        "lizardfs", "mfs", "moosefs", "mount-s3", "mountpoint-s3", "ossfs", "prl_fsd", "rclone",
        "s3fs", "saunafs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse", "weed",
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Mount:
    where: str
    kind: str
    read_only: bool
    """The filesystem itself, not only as it is seen from here."""


def network_filesystem(path: Path, table: str | None = None) -> str | None:
    """The kind of network filesystem that a path is on; None where it is local or not known.

    What is shared with the machine outside a virtual one is a network here: two kernels lock.
    """
    mount = _mount_of(path, table)
    if mount is None:
        return None
    kind, _, fuse = mount.kind.partition(".")
    far = fuse.lower() in _NETWORK_FUSE if kind == "fuse" else kind in _NETWORK
    return mount.kind if far else None


def is_read_only(path: Path, table: str | None = None) -> bool:
    """Whether a path is known to be on a medium that cannot be written, from anywhere.

    A directory that is only mounted read-only here may be written to where it is mounted again.
    """
    mount = _mount_of(path, table)
    return mount is not None and mount.read_only


def _mount_of(path: Path, table: str | None) -> _Mount | None:
    if table is None:
        try:
            table = TABLE.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    # Where links lead to, or one of a directory would hide what it is on.
    here = path.resolve()
    parents = {str(parent) for parent in (here, *here.parents)}
    best: _Mount | None = None
    for line in table.splitlines():
        left, _, right = line.partition(" - ")
        fields, of_filesystem = left.split(" "), right.split(" ")
        if len(fields) < 6 or len(of_filesystem) < 3:
            continue
        where = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        # A later line covers an earlier one at the same place.
        if where in parents and (best is None or len(where) >= len(best.where)):
            best = _Mount(where, of_filesystem[0], "ro" in of_filesystem[2].split(","))
    return best
