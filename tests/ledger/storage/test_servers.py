"""Servers that may lose what they acknowledged, and what is noticed of them when."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import residua as rz
from residua.ledger.storage import postgres as postgres_store
from residua.ledger.storage.schema import facts_in
from residua.ledger.storage.store import Again, CommitUnknown, Lost
from residua.mechanisms import PureDp

pytestmark = pytest.mark.needs("pgserver", "psycopg")
Open = Callable[..., rz.Ledger]


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


def test_asynchronous_standbys_must_be_accepted_and_are_then_reported(
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


# -- standbys --------------------------------------------------------------------------------


@contextmanager
def slot(postgres: str) -> Iterator[None]:
    """The place of a standby that is away."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SELECT pg_create_physical_replication_slot('away', true)")
        try:
            yield
        finally:
            connection.execute("SELECT pg_drop_replication_slot('away')")


class Standby:
    """A server that follows another, which does not wait for it."""

    def __init__(self, primary: str, home: Path):
        import pgserver

        self._server, self._data = pgserver, home / "data"
        # The server will not run as root; who does here is who runs the other one.
        owner = Path(primary.rpartition("host=")[2]).stat()
        self._as: dict[str, Any] = {"user": owner.st_uid} if os.geteuid() == 0 else {}
        os.chown(home, owner.st_uid, -1)
        arguments = ["-d", primary, "-c", "fast", "-R", "-C", "-S", "standby", "--no-sync"]
        pgserver.pg_basebackup(arguments, pgdata=self._data, **self._as)
        self.url = f"postgresql://postgres@/postgres?host={home}"
        options = f'-c listen_addresses="" -k {home}'
        log = str(self._data / "log")
        start = ["-w", "-o", options, "-l", log, "start"]
        pgserver.pg_ctl(start, pgdata=self._data, **self._as)

    def stop(self) -> None:
        if not (self._data / "postmaster.pid").exists():
            return
        self._server.pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self._data, **self._as)


@contextmanager
def standby(postgres: str) -> Iterator[Standby]:
    import psycopg

    with (
        tempfile.TemporaryDirectory(prefix="residua-pg", ignore_cleanup_errors=True) as home,
        psycopg.connect(postgres, autocommit=True) as connection,
    ):
        made = Standby(postgres, Path(home))
        query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        try:
            while connection.execute(query).fetchone() == (0,):
                time.sleep(0.02)
            yield made
        finally:
            made.stop()
            while connection.execute("SELECT active FROM pg_replication_slots").fetchone() == (
                True,
            ):
                time.sleep(0.02)
            connection.execute("SELECT pg_drop_replication_slot('standby')")


def test_a_standby_is_refused_and_counts_where_it_stands_even_when_it_is_away(
    postgres: str, schema_url: str, tmp_path: Path
) -> None:
    def open_one(where: str = schema_url, **options: Any) -> rz.Ledger:
        return rz.open_ledger(where, anchor=tmp_path / "anchor", **options)

    with open_one() as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        assert "standbys" not in ledger.status().store
    with standby(postgres) as other:
        for options in ({}, {"read_only": True}, {"accept_async_standby": True}):
            with pytest.raises(rz.UnsafeStore, match="in recovery"):
                open_one(other.url, **options)
        with pytest.raises(rz.UnsafeStore, match="1 standbys and none is synchronous"):
            open_one()
        other.stop()
        with pytest.raises(rz.UnsafeStore, match="1 standbys and none is synchronous"):
            open_one()
        with open_one(accept_async_standby=True) as ledger:
            assert ledger.status().store["standbys"].startswith("1, asynchronous, accepted")
    open_one().close()


def test_a_standby_that_comes_while_the_ledger_is_open_is_noticed_within_a_minute(
    postgres: str, schema_url: str, tmp_path: Path
) -> None:
    """By whoever begins a transaction then, to write or to read."""
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.spend("b", PureDp(0.125))
        store: Any = ledger.store
        with slot(postgres):
            assert ledger.spend("b", PureDp(0.125)).admitted, "it was looked at just now"
            store._looked -= 61.0
            for _ in range(2):
                with pytest.raises(rz.UnsafeStore, match="none is synchronous"):
                    ledger.spend("b", PureDp(0.125), key="k")
                with pytest.raises(rz.UnsafeStore, match="none is synchronous"):
                    ledger.budget("b")
        assert not ledger.spend("b", PureDp(0.125), key="k").replayed
        assert len(ledger.history("b")) == 4


def test_the_server_is_not_looked_at_for_every_spend(
    schema_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []
    check = postgres_store.PostgresStore._check_server

    def counted(store: Any, connection: Any) -> None:
        looks.append(connection)
        check(store, connection)

    monkeypatch.setattr(postgres_store.PostgresStore, "_check_server", counted)
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        looks.clear()
        for _ in range(20):
            ledger.spend("b", PureDp(0.001))
        assert not looks
        ledger.store._looked -= 61.0  # type: ignore[attr-defined]
        for _ in range(20):
            ledger.spend("b", PureDp(0.001))
        assert len(looks) == 1


def test_a_connection_that_is_cut_when_the_server_is_looked_at_is_replaced(
    postgres: str, schema_url: str, tmp_path: Path
) -> None:
    import psycopg

    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        for key in ("k", "l"):
            with psycopg.connect(postgres, autocommit=True) as connection:
                connection.execute(CUT)
            ledger.store._looked -= 61.0  # type: ignore[attr-defined]
            assert not ledger.spend("b", PureDp(0.125), key=key).replayed
            with psycopg.connect(postgres, autocommit=True) as connection:
                connection.execute(CUT)
            ledger.store._looked -= 61.0  # type: ignore[attr-defined]
            assert ledger.check("b", PureDp(0.125)).admitted


# -- durability ------------------------------------------------------------------------------

NOTES = """
CREATE TABLE seen (what text, setting text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen VALUES (TG_TABLE_NAME, current_setting('synchronous_commit'));
    RETURN NEW; END $$
"""
NOTED = """
CREATE CONSTRAINT TRIGGER noted AFTER INSERT OR UPDATE ON {table}
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()
"""


@pytest.mark.parametrize("whose", ["ROLE postgres", "DATABASE postgres"])
def test_every_transaction_that_writes_waits_for_the_disk_whatever_is_usual(
    postgres: str, schema_url: str, whose: str
) -> None:
    """By what the server says in the middle of the commit; of the store and of the anchor."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"ALTER {whose} SET synchronous_commit = off")
    try:
        with (
            rz.open_ledger(schema_url, anchor=schema_url) as ledger,
            ledger.store.connection() as other,
        ):
            assert other.execute(text("SHOW synchronous_commit")).scalar() == "off"
            other.execute(text(NOTES))
            tables = ("records", "budgets", "keys", "holds", "meta", "anchors")
            for table in tables:
                other.execute(text(NOTED.format(table=f"residua_{table}")))
            other.commit()

            def noted(*wanted: str) -> None:
                found = other.execute(text("DELETE FROM seen RETURNING what, setting")).all()
                other.commit()
                names = {f"residua_{name}" for name in (*wanted, "anchors")}
                assert {row.what for row in found} == names
                assert {row.setting for row in found} == {"on"}

            ledger.create_budget("b", rz.PureFilter(1.0))
            noted("records", "budgets")
            for key in ("first", "second"):
                ledger.spend("b", PureDp(0.125), key=key)
                noted("records", "budgets", "keys")
            hold = ledger.reserve("b", PureDp(0.125))
            noted("records", "budgets", "keys", "holds")
            hold.commit()
            noted("records", "budgets", "holds", "keys")
            ledger.retire("b", "done")
            noted("records", "budgets")
            ledger.recover()
            noted("meta")
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"ALTER {whose} RESET synchronous_commit")


# -- opening ---------------------------------------------------------------------------------

CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'residua' AND pid <> pg_backend_pid()"
)


def test_a_server_that_goes_away_while_tables_are_made_is_a_clear_error(
    postgres: str, schema_url: str, tmp_path: Path
) -> None:
    import psycopg

    raised: list[BaseException] = []

    def open_one() -> None:
        try:
            rz.open_ledger(schema_url, anchor=tmp_path / "anchor").close()
        except Exception as error:
            raised.append(error)

    with (
        psycopg.connect(postgres) as holder,
        psycopg.connect(postgres, autocommit=True) as watcher,
    ):
        holder.execute(f"SELECT pg_advisory_xact_lock({postgres_store._SCHEMA_LOCK})")
        thread = threading.Thread(target=open_one)
        thread.start()
        while not watcher.execute(CUT + " AND wait_event_type = 'Lock'").fetchall():
            assert thread.is_alive(), raised
            time.sleep(0.02)
        thread.join(10.0)
    thread.join()
    assert [type(error) for error in raised] == [rz.StoreUnavailable]
    assert "open it again" in str(raised[0])
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))


@pytest.mark.parametrize("failure", [Again, Lost, CommitUnknown])
@pytest.mark.parametrize("lands", [False, True])
def test_tables_that_may_have_been_made_are_looked_for(
    schema_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: type[Exception],
    lands: bool,
) -> None:
    """Where another transaction was met it is tried again, and otherwise told."""
    commit = postgres_store.PostgresStore.commit
    failed: list[object] = []

    def fails(store: Any, connection: Any, *others: Any) -> None:
        if failed:
            commit(store, connection, *others)
            return
        failed.append(connection)
        if lands:
            commit(store, connection, *others)
        raise failure

    monkeypatch.setattr(postgres_store.PostgresStore, "commit", fails)
    if failure is not Again:
        with pytest.raises(rz.StoreUnavailable, match="open it again"):
            rz.open_ledger(schema_url, anchor=tmp_path / "anchor")
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        with ledger.store.reading() as connection:
            assert facts_in(connection)
        ledger.create_budget("b", rz.PureFilter(1.0))


@pytest.mark.parametrize("where", ["store", "anchor"])
def test_a_connection_that_is_cut_while_it_is_set_up_is_a_clear_error(
    schema_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(
        postgres_store, "_SETTINGS", "SELECT pg_terminate_backend(pg_backend_pid())"
    )
    places = {"store": (schema_url, tmp_path / "a"), "anchor": (tmp_path / "a.db", schema_url)}
    url, anchor = places[where]
    with pytest.raises(rz.StoreUnavailable):
        rz.open_ledger(url, anchor=anchor)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(rz.StoreUnavailable):
        rz.open_ledger(f"postgresql://u@/d?host={tmp_path}")
