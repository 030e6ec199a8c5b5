"""Opening: addresses, what is no ledger, newer ones, unsafe stores, disks that are full."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, update

import residuum as rz
from residuum.ledger import schema
from residuum.ledger.network import network_filesystem
from residuum.ledger.place import place
from residuum.ledger.sqlite import wal_is_safe

Open = Callable[..., rz.Ledger]


def test_addresses(tmp_path: Path) -> None:
    absolute = tmp_path / "a.db"
    assert place(f"sqlite:///{absolute}").path == absolute
    assert place(absolute).path == place(str(absolute)).path == absolute
    assert place("sqlite:///b.db").path == Path.cwd() / "b.db"
    assert place("postgresql://u:secret@h/d").path is None
    assert "secret" not in str(place("postgresql://u:secret@h/d"))


@pytest.mark.parametrize(
    "url",
    ["", "sqlite://", "sqlite:///:memory:", "mysql://h/d", "x y://z", "sqlite:///file:a?mode"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(rz.ArgumentError, match="url"):
        rz.open_ledger(url)
    with pytest.raises(rz.ArgumentTypeError, match="url"):
        rz.open_ledger(7)


def test_a_ledger_is_found_again(open_: Open) -> None:
    first = open_()
    first.create_budget("b", rz.PureFilter(1.0))
    again = open_()
    assert again.id == first.id and again.read_only is None
    assert [b.name for b in again.budgets()] == ["b"]


def test_tables_are_as_they_are_used(open_: Open) -> None:
    """The migrations make what the statements name."""
    ledger = open_()
    with ledger.store.connection() as connection:
        found = inspect(connection)
        for table in schema.METADATA.sorted_tables:
            stored = {column["name"] for column in found.get_columns(table.name)}
            assert stored == {column.name for column in table.columns}, table.name


def test_a_newer_ledger_is_a_clear_error_at_opening_and_in_every_transaction(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    with ledger.store.writing() as connection:
        newer = update(schema.meta).where(schema.meta.c.name == "schema")
        connection.execute(newer.values(value=str(schema.VERSION + 1)))
        connection.commit()
    with pytest.raises(rz.NewerLedger, match="newer"):
        ledger.spend("b", rz.pure_dp(0.1))
    with pytest.raises(rz.NewerLedger, match="newer"):
        open_()


def test_a_ledger_that_was_recovered_elsewhere_is_a_clear_error_in_every_transaction(
    open_: Open,
) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    with ledger.store.writing() as connection:
        other = update(schema.meta).where(schema.meta.c.name == "incarnation")
        connection.execute(other.values(value="another"))
        connection.commit()
    with pytest.raises(rz.ReadOnlyLedger, match="open it again"):
        ledger.spend("b", rz.pure_dp(0.1))


def test_what_is_no_ledger(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("dear diary, " * 100)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE recipes (cake TEXT)")
    connection.close()
    for path in (text, other, tmp_path):
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(rz.NotALedger):
            rz.open_ledger(path)
        assert (path.read_bytes() if path.is_file() else b"") == before
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(rz.NotALedger, match="no ledger"):
            rz.open_ledger(tmp_path / "none.db", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(rz.StoreUnavailable, match="directory"):
        rz.open_ledger(tmp_path / "none" / "a.db")


def test_a_meta_table_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE residuum_meta (name TEXT, value TEXT)")
        connection.execute("INSERT INTO residuum_meta VALUES ('schema', '1')")
    connection.close()
    with pytest.raises(rz.NotALedger):
        rz.open_ledger(path)


def test_read_only_opening_reads_and_does_not_write(tmp_path: Path) -> None:
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    with rz.open_ledger(tmp_path / "a.db", read_only=True) as ledger:
        assert ledger.check("b", rz.pure_dp(0.5)).admitted
        with pytest.raises(rz.ReadOnlyLedger, match="read-only"):
            ledger.spend("b", rz.pure_dp(0.5))


WRITES_TO_A_FULL_DISK = """
import resource, signal, sys
import residuum as rz
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
    tmp_path: Path,
) -> None:
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    ran = subprocess.run(
        [sys.executable, "-c", WRITES_TO_A_FULL_DISK, str(tmp_path / "a.db")],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.stdout.split() == ["unavailable"] * 3 + ["3"], ran.stderr


def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    """The database refuses to write, as on a disk that is mounted read-only."""
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ((writer, _),) = ledger.store._kept
        raw: Any = writer.connection.dbapi_connection
        raw.execute("PRAGMA query_only=ON")
        with pytest.raises(rz.StoreUnavailable, match="readonly"):
            ledger.spend("b", rz.pure_dp(0.1), key="k")
        raw.execute("PRAGMA query_only=OFF")
        assert not ledger.spend("b", rz.pure_dp(0.1), key="k").replayed


def test_an_anchor_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "anchor").mkdir()
    with rz.open_ledger(tmp_path / "a.db", anchor=tmp_path / "anchor") as ledger:
        assert ledger.read_only is not None and "anchor" in ledger.read_only
        with pytest.raises(rz.StoreUnavailable, match="anchor"):
            ledger.create_budget("b", rz.PureFilter(1.0))


def test_network_filesystems_are_refused() -> None:
    mounts = (
        "/dev/sda1 / ext4 rw 0 0\n"
        "server:/export /home nfs4 rw 0 0\n"
        "/dev/sdb1 /home/local ext4 rw 0 0\n"
        "//nas/share /mnt/the\\040share cifs rw 0 0\n"
    )
    assert network_filesystem(Path("/var/a.db"), mounts) is None
    assert network_filesystem(Path("/home/user/a.db"), mounts) == "nfs4"
    assert network_filesystem(Path("/home/local/a.db"), mounts) is None
    assert network_filesystem(Path("/mnt/the share/a.db"), mounts) == "cifs"


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


def test_how_sqlite_is_set_up(tmp_path: Path) -> None:
    with (
        rz.open_ledger(tmp_path / "a.db") as ledger,
        ledger.store.connection() as connection,
    ):
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        synchronous = connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
    expected = ("wal", 2) if wal_is_safe(sqlite3.sqlite_version_info) else ("delete", 3)
    assert (journal, synchronous) == expected


# -- PostgreSQL ------------------------------------------------------------------------------


@pytest.mark.needs("pgserver", "psycopg")
def test_a_server_that_may_lose_spends_is_refused(postgres: str, tmp_path: Path) -> None:
    import psycopg

    def set_up(statement: str, name: str, wanted: str) -> None:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")
        shown = None
        while shown != (wanted,):
            with psycopg.connect(postgres, autocommit=True) as connection:
                shown = connection.execute(f"SHOW {name}").fetchone()

    for name in ("fsync", "full_page_writes"):
        set_up(f"ALTER SYSTEM SET {name} = off", name, "off")
        try:
            with pytest.raises(rz.UnsafeStore, match=name):
                rz.open_ledger(postgres, anchor=tmp_path / "anchor")
        finally:
            set_up(f"ALTER SYSTEM RESET {name}", name, "on")


@pytest.fixture
def asynchronous(postgres: str, tmp_path: Path) -> Iterator[str]:
    """The server, while something that it does not wait for receives what it writes."""
    import pgserver
    import psycopg

    program = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_receivewal"
    (tmp_path / "received").mkdir()
    receiver = subprocess.Popen([program, "-d", postgres, "-D", tmp_path / "received", "-n"])
    try:
        with psycopg.connect(postgres, autocommit=True) as connection:
            query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
            while connection.execute(query).fetchone() == (0,):
                assert receiver.poll() is None
                time.sleep(0.02)
        yield postgres
    finally:
        receiver.terminate()
        receiver.wait()
    with psycopg.connect(postgres, autocommit=True) as connection:
        while connection.execute("SELECT count(*) FROM pg_stat_replication").fetchone() != (0,):
            time.sleep(0.02)


@pytest.mark.needs("pgserver", "psycopg")
def test_asynchronous_standbys_must_be_accepted_and_are_then_told(
    asynchronous: str, schema_url: str, tmp_path: Path
) -> None:
    """Of the store and of the anchor alike: what one of them loses in a failover is lost."""
    with pytest.raises(rz.UnsafeStore, match="none is synchronous"):
        rz.open_ledger(schema_url, anchor=tmp_path / "anchor")
    with pytest.raises(rz.UnsafeStore, match="none is synchronous"):
        rz.open_ledger(tmp_path / "a.db", anchor=schema_url)
    accepted = {"accept_async_standby": True}
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor", **accepted) as ledger:
        status = ledger.status()
        assert "may lose" in status.store["standbys"]
        assert "a failover to an asynchronous standby may lose it" in status.promises[0]
    with rz.open_ledger(tmp_path / "a.db", anchor=schema_url, **accepted) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        assert ledger.spend("b", rz.pure_dp(0.5)).admitted
        status = ledger.status()
        assert "may lose" in status.store["anchor's standbys"]
        assert "a failover of the anchor's database" in status.promises[1]


@pytest.mark.needs("psycopg")
def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rz.StoreUnavailable):
        rz.open_ledger(f"postgresql://u@/d?host={tmp_path}")


@pytest.mark.needs("pgserver", "psycopg")
def test_opening_that_is_cut_says_so(postgres: str, schema_url: str, tmp_path: Path) -> None:
    """While a new ledger waits for somebody else who makes one."""
    import psycopg

    from residuum.ledger.postgres import _SCHEMA_LOCK

    found: list[BaseException] = []

    def open_one() -> None:
        try:
            rz.open_ledger(schema_url, anchor=tmp_path / "anchor").close()
        except Exception as error:
            found.append(error)

    opening = threading.Thread(target=open_one)
    with (
        psycopg.connect(postgres) as holder,
        psycopg.connect(postgres, autocommit=True) as server,
    ):
        holder.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})")
        opening.start()
        while opening.is_alive():
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'residuum' AND wait_event_type = 'Lock'"
            )
            opening.join(0.02)
    assert [type(error) for error in found] == [rz.StoreUnavailable], found
    rz.open_ledger(schema_url, anchor=tmp_path / "anchor").close()
