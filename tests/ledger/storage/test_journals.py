"""SQLite's file with either journal: what is no ledger, full disks, what a kill left, media.

Libraries with the WAL-reset bug have the rollback journal. The bug is a rare race, so both kinds of
journal are tried with whatever library is here.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from ledger.conftest import idle_drivers
from residua.ledger.storage import sqlite
from residua.ledger.storage.sqlite import is_read_only, wal_is_safe
from residua.ledger.storage.store import CommitUnknown, raised_by

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=[False, True], ids=["rollback", "wal"])
def wal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the library counts as one that is free of the bug."""
    free: bool = request.param
    monkeypatch.setattr(sqlite, "wal_is_safe", lambda _: free)
    return free


@pytest.fixture
def run(wal: bool) -> Run:
    """Runs a program in a process of its own, with the same journal."""

    def run(program: str, *arguments: object, before: tuple[str, ...] = (), **environment: str):
        start = "import sys, residua as rz\nfrom residua.ledger.storage import sqlite\n"
        start += f"sqlite.wal_is_safe = lambda _: {wal}\n"
        return subprocess.run(
            [*before, sys.executable, "-c", start + textwrap.dedent(program), *map(str, arguments)],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **environment},
            check=False,
        )

    return run


@pytest.fixture
def path(tmp_path: Path, wal: bool) -> Path:
    """A ledger with a budget of 1, a quarter of it spent, that nobody has open."""
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.spend("b", rz.pure_dp(0.25), key="first")
    return tmp_path / "a.db"


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 45, 0), False),
        ((3, 50, 6), False), ((3, 50, 7), True), ((3, 51, 2), False), ((3, 51, 3), True),
        ((3, 52, 0), True), ((4, 0, 0), True),
    ],
)  # fmt: skip
def test_the_write_ahead_log_only_on_a_library_without_its_bug(
    version: tuple[int, int, int], safe: bool
) -> None:
    assert wal_is_safe(version) is safe


def test_how_sqlite_is_set_up(path: Path, wal: bool) -> None:
    with rz.open_ledger(path) as ledger:
        ledger.spend("b", rz.pure_dp(0.25))
        for driver in idle_drivers(ledger):
            (journal,) = driver.execute("PRAGMA journal_mode").fetchone()
            (synchronous,) = driver.execute("PRAGMA synchronous").fetchone()
            assert (journal, synchronous) == (("wal", 2) if wal else ("delete", 3))
        assert ("write-ahead" in ledger.status().store["journal"]) is wal


def test_a_database_that_keeps_the_anchor_is_set_up_alike(tmp_path: Path, wal: bool) -> None:
    kept = tmp_path / "kept.db"
    with rz.open_ledger(tmp_path / "a.db", anchor=f"sqlite:///{kept}") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    assert (kept.read_bytes()[18] == 2) is wal


def test_the_journal_is_changed_at_opening_when_nobody_reads_yet(
    path: Path, wal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that only wait to be used again keep a write-ahead log from being left."""
    monkeypatch.setattr(sqlite, "wal_is_safe", lambda _: not wal)
    with rz.open_ledger(path) as ledger, ledger.store.connection() as reader:
        assert reader.exec_driver_sql("SELECT count(*) FROM residua_records").scalar() == 2
        reader.rollback()
        assert ledger.spend("b", rz.pure_dp(0.25)).admitted
        assert (path.read_bytes()[18] == 2) is not wal


def test_a_ledger_of_a_library_with_the_other_journal(path: Path, wal: bool, run: Run) -> None:
    """Whoever writes has its own; whoever reads leaves it."""
    before = path.read_bytes()
    other = f"sqlite.wal_is_safe = lambda _: {not wal}\n"
    read = "l = rz.open_ledger(sys.argv[1], read_only=True)\nprint(l.status().store['journal'])"
    assert ("write-ahead" in run(other + read, path).stdout) is wal
    assert path.read_bytes() == before
    write = "l = rz.open_ledger(sys.argv[1])\nprint(l.spend('b', rz.pure_dp(0.25)).seq)"
    assert run(other + write, path).stdout.split() == ["2"]
    assert (path.read_bytes()[18] == 2) is not wal
    with rz.open_ledger(path) as ledger:
        assert ledger.spend("b", rz.pure_dp(0.25)).seq == 3
    assert (path.read_bytes()[18] == 2) is wal


# -- what is no ledger -----------------------------------------------------------------------


def _foreign(path: Path, journal: str, crashed: bool) -> None:
    """A database of recipes, closed or as a process left it that was killed."""
    program = f"""
        import os, sqlite3
        c = sqlite3.connect({str(path)!r}, isolation_level=None)
        c.execute("PRAGMA journal_mode={journal}")
        c.execute("CREATE TABLE recipes (cake TEXT)")
        if {crashed}:
            c.execute("PRAGMA cache_size=1")
            c.execute("BEGIN IMMEDIATE")
            for i in range(300):
                c.execute("INSERT INTO recipes VALUES (?)", ("flour" * 200,))
            if {journal == "WAL"}:
                c.execute("COMMIT")
            os._exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def _files(directory: Path) -> dict[str, bytes]:
    # The index of a write-ahead log is no part of what it says.
    return {p.name: p.read_bytes() for p in directory.iterdir() if not p.name.endswith("-shm")}


@pytest.mark.parametrize("options", [{}, {"create": False}, {"read_only": True}], ids=str)
@pytest.mark.parametrize("crashed", [False, True], ids=["closed", "crashed"])
@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_a_database_of_something_else_is_refused_and_left_as_it_is(
    tmp_path: Path, wal: bool, journal: str, crashed: bool, options: dict[str, Any]
) -> None:
    other = tmp_path / "other.db"
    _foreign(other, journal, crashed)
    before = _files(tmp_path)
    assert len(before) == 1 + crashed
    with pytest.raises(rz.NotALedger, match="not a ledger"):
        rz.open_ledger(other, **options)
    assert _files(tmp_path) == before


def test_what_is_no_ledger(tmp_path: Path, wal: bool) -> None:
    text = tmp_path / "text.db"
    text.write_text("dear diary, " * 100)
    for path in (text, tmp_path):
        with pytest.raises(rz.NotALedger):
            rz.open_ledger(path)
    empty = tmp_path / "empty.db"
    empty.touch()
    for path in (tmp_path / "none.db", empty):
        for options in ({"create": False}, {"read_only": True}):
            with pytest.raises(rz.NotALedger, match="no ledger"):
                rz.open_ledger(path, **options)
    assert _files(tmp_path) == {"text.db": b"dear diary, " * 100, "empty.db": b""}
    with pytest.raises(rz.StoreUnavailable, match="directory"):
        rz.open_ledger(tmp_path / "none" / "a.db")


def test_a_meta_table_of_something_else(tmp_path: Path, wal: bool) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE residua_meta (name TEXT, value TEXT)")
        connection.execute("INSERT INTO residua_meta VALUES ('schema', '1')")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(rz.NotALedger):
        rz.open_ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_file_is_a_clear_error(path: Path, read_only: bool) -> None:
    """Even where SQLite's own message is no text any more."""
    whole = path.read_bytes()
    at = whole.index(b"CREATE TABLE residua_keys")
    for damage in (b"CREATE T\xf4BLE", b"\xff" * 26):
        path.write_bytes(whole[:at] + damage + whole[at + len(damage) :])
        with pytest.raises(rz.NotALedger, match="damaged"):
            rz.open_ledger(path, read_only=read_only)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(rz.NotALedger, match="damaged"):
        rz.open_ledger(path, read_only=read_only)


# -- disks and media -------------------------------------------------------------------------


WRITES_TO_A_FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = rz.open_ledger(sys.argv[1])
assert ledger.spend("b", rz.pure_dp(0.1), key="before").admitted
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
for attempt in range(3):
    try:
        ledger.spend("b", rz.pure_dp(0.1), key="during")
    except rz.StoreUnavailable as error:
        print("unavailable")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
assert not ledger.spend("b", rz.pure_dp(0.1), key="during").replayed
assert ledger.spend("b", rz.pure_dp(0.1), key="before").replayed
print(len(ledger.history("b")))
"""


def test_a_full_disk_spends_nothing_and_the_ledger_goes_on_when_there_is_room(
    path: Path, run: Run
) -> None:
    ran = run(WRITES_TO_A_FULL_DISK, path)
    assert ran.stdout.split() == ["unavailable"] * 3 + ["4"], ran.stderr


def test_a_disk_that_cannot_be_written(path: Path) -> None:
    """The database refuses to write, as on a disk that is mounted read-only."""
    with rz.open_ledger(path) as ledger:
        ledger.spend("b", rz.pure_dp(0.1))
        drivers = idle_drivers(ledger)
        for raw in drivers:
            raw.execute("PRAGMA query_only=ON")
        with pytest.raises(rz.StoreUnavailable, match="readonly"):
            ledger.spend("b", rz.pure_dp(0.1), key="k")
        for raw in drivers:
            raw.execute("PRAGMA query_only=OFF")
        assert not ledger.spend("b", rz.pure_dp(0.1), key="k").replayed


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (sqlite3.SQLITE_FULL, rz.StoreUnavailable),
        (sqlite3.SQLITE_IOERR_WRITE, rz.StoreUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, CommitUnknown),
        (sqlite3.SQLITE_IOERR_SHMSIZE, CommitUnknown),
    ],
)
def test_a_commit_that_fails_once_all_is_in_the_log_may_count_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, raised: type[Exception]
) -> None:
    monkeypatch.setattr(sqlite, "wal_is_safe", lambda _: True)
    with rz.open_ledger(tmp_path / "a.db") as ledger:

        def fails(_: Any, connection: Any) -> None:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = code
            raise raised_by(connection, error)

        with pytest.raises(raised), ledger.store.writing() as connection:
            monkeypatch.setattr(sqlite.SqliteStore, "driving", fails)
            ledger.store.commit(connection, lambda _: False)


MOUNTED = """
import os, shutil, subprocess
home = sys.argv[1]
def mount(*options): subprocess.run(["mount", *options, home], check=True)
mount("-t", "tmpfs", "-o", "size=8m", "tmpfs")
with rz.open_ledger(f"{home}/a.db") as ledger:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
if "killed" in sys.argv:
    # As a process leaves it that is killed: in the journal there is something that counts.
    shutil.copytree(home, sys.argv[2], dirs_exist_ok=True)
    child = os.fork()
    if not child:
        import sqlite3
        c = sqlite3.connect(f"{home}/a.db", isolation_level=None)
        c.execute("PRAGMA cache_size=1")
        c.execute("BEGIN IMMEDIATE")
        for i in range(300):
            c.execute("INSERT INTO residua_tables VALUES (?, ?)", (str(i), b"x" * 900))
        if "wal" in sys.argv:
            c.execute("COMMIT")
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    if "wal" in sys.argv:
        os.unlink(f"{home}/a.db-shm")
if "bound" in sys.argv:
    subprocess.run(["mount", "--bind", home, home], check=True)
    mount("-o", "remount,bind,ro")
else:
    mount("-o", "remount,ro")
try:
    with rz.open_ledger(f"{home}/a.db", read_only=True) as ledger:
        print(ledger.verify().ok, ledger.check("b", rz.pure_dp(0.5)).admitted)
        try:
            ledger.spend("b", rz.pure_dp(0.5))
        except rz.ReadOnlyLedger:
            print("read-only")
except rz.StoreUnavailable as error:
    print(error)
"""

can_mount = pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs the right to mount",
)


@can_mount
def test_a_read_only_medium_is_read(tmp_path: Path, run: Run) -> None:
    (tmp_path / "m").mkdir()
    ran = run(MOUNTED, tmp_path / "m", before=("unshare", "-m"))
    assert ran.stdout.splitlines() == ["True True", "read-only"], ran.stderr


@can_mount
def test_what_a_kill_left_cannot_be_read_on_a_read_only_medium(
    tmp_path: Path, run: Run, wal: bool
) -> None:
    (tmp_path / "m").mkdir()
    kind = "wal" if wal else "journal"
    ran = run(MOUNTED, tmp_path / "m", tmp_path / "c", "killed", kind, before=("unshare", "-m"))
    assert f"a.db-{kind} holds what was written last" in ran.stdout, ran.stderr


@can_mount
def test_a_directory_that_is_read_only_from_here_alone_may_be_written_to(
    tmp_path: Path, run: Run, wal: bool
) -> None:
    """The rollback journal is seen and locks are taken; the index of a log cannot be made."""
    (tmp_path / "m").mkdir()
    ran = run(MOUNTED, tmp_path / "m", "bound", before=("unshare", "-m"))
    if wal:
        assert "where nothing can be written" in ran.stdout, ran.stderr
    else:
        assert ran.stdout.splitlines() == ["True True", "read-only"], ran.stderr


def test_a_medium_is_read_only_where_the_filesystem_is() -> None:
    table = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 8:1 /a /bound ro - ext4 /dev/sda1 rw\n"
        "3 1 7:0 / /disc ro,relatime shared:3 - iso9660 /dev/loop0 ro,nojoliet\n"
    )
    assert is_read_only(Path("/disc/a.db"), table)
    assert not is_read_only(Path("/bound/a.db"), table)
    assert not is_read_only(Path("/a.db"), table)
    assert not is_read_only(Path("/a.db"), "")


# -- reading ---------------------------------------------------------------------------------


def test_read_only_opening_reads_and_does_not_write(path: Path) -> None:
    before = path.read_bytes()
    with rz.open_ledger(path, read_only=True) as ledger:
        assert ledger.check("b", rz.pure_dp(0.5)).admitted
        with pytest.raises(rz.ReadOnlyLedger, match="read-only"):
            ledger.spend("b", rz.pure_dp(0.5))
        with (
            pytest.raises(rz.StoreUnavailable, match="readonly"),
            ledger.store.connection() as connection,
        ):
            connection.exec_driver_sql("DELETE FROM residua_records")
    assert path.read_bytes() == before


def test_a_reader_beside_a_writer(path: Path) -> None:
    with (
        rz.open_ledger(path) as ledger,
        rz.open_ledger(path, read_only=True) as reader,
    ):
        for seq in (2, 3):
            ledger.spend("b", rz.pure_dp(0.25))
            assert len(reader.history("b")) == seq + 1


def test_processes_that_make_a_ledger_at_once_and_spend_from_it(tmp_path: Path, run: Run) -> None:
    program = """
        ledger = rz.open_ledger(sys.argv[1])
        try:
            ledger.create_budget("b", rz.PureFilter(1.0))
        except rz.BudgetExists:
            pass
        print(sum(ledger.spend("b", rz.pure_dp(0.0625)).admitted for _ in range(8)))
    """
    with ThreadPoolExecutor(3) as pool:
        ran = list(pool.map(lambda _: run(program, tmp_path / "a.db"), range(3)))
    assert sum(int(each.stdout or 0) for each in ran) == 16, [each.stderr for each in ran]
    with rz.open_ledger(tmp_path / "a.db", read_only=True) as ledger:
        assert len(ledger.history("b")) == 25 and ledger.verify().ok


@pytest.mark.parametrize("point", ["written", "committing", "committed"])
def test_what_a_kill_left_is_put_right_by_whoever_only_reads(
    path: Path, run: Run, point: str
) -> None:
    program = "rz.open_ledger(sys.argv[1]).spend('b', rz.pure_dp(0.25), key='k')"
    ran = run(program, path, RESIDUA_FAULT=point)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    spent = point == "committed"
    with rz.open_ledger(path, read_only=True) as ledger:
        assert len(ledger.history("b")) == 2 + spent and ledger.verify().ok
    with rz.open_ledger(path) as ledger:
        assert ledger.spend("b", rz.pure_dp(0.25), key="k").replayed is spent


def test_a_hot_journal_is_rolled_back_by_whoever_only_reads(path: Path, run: Run) -> None:
    """It was killed while pages of the file were written over."""
    ran = run(
        """
        import os, sqlite3
        c = sqlite3.connect(sys.argv[1], isolation_level=None)
        c.execute("PRAGMA cache_size=1")
        c.execute("BEGIN IMMEDIATE")
        c.execute("DELETE FROM residua_records")
        for i in range(300):
            c.execute("INSERT INTO residua_tables VALUES (?, ?)", (str(i), b"x" * 900))
        os.kill(os.getpid(), 9)
        """,
        path,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    left = [name for name in ("a.db-journal", "a.db-wal") if (path.with_name(name)).exists()]
    assert len(left) == 1 and path.with_name(left[0]).stat().st_size
    with rz.open_ledger(path, read_only=True) as ledger:
        assert len(ledger.history("b")) == 2 and ledger.verify().ok


def _open_to_others(folder: Path) -> dict[str, str]:
    """The files that anyone but their owner may read or write, and how."""
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    return {name: oct(mode) for name, mode in modes.items() if mode & 0o077}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_nobody_else_can_read_what_a_ledger_makes(tmp_path: Path, wal: bool) -> None:
    before = os.umask(0o022)
    try:
        with rz.open_ledger(tmp_path / "a.db", anchor=f"sqlite:///{tmp_path}/kept.db") as ledger:
            ledger.create_budget("b", rz.PureFilter(1.0))
            ledger.spend("b", rz.pure_dp(0.1))
        with rz.open_ledger(tmp_path / "b.db") as ledger:
            ledger.create_budget("b", rz.PureFilter(1.0))
            with ledger.store.writing() as connection:
                connection.exec_driver_sql("PRAGMA cache_size = 1")
                connection.exec_driver_sql("INSERT INTO residua_tables VALUES ('', zeroblob(1e6))")
                connection.exec_driver_sql("UPDATE residua_budgets SET unit = 'x'")
                names = {file.name for file in tmp_path.iterdir()}
                assert {"a.db", "kept.db", "b.db", "b.db.anchor"} < names
                assert ("b.db-wal" if wal else "b.db-journal") in names
                assert _open_to_others(tmp_path) == {}
    finally:
        os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_that_is_there_keeps_its_permissions(path: Path) -> None:
    path.chmod(0o640)
    with rz.open_ledger(path) as ledger:
        ledger.spend("b", rz.pure_dp(0.1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
