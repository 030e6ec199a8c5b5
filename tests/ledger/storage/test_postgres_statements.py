"""Statements that go to PostgreSQL together: one that fails takes its transaction along."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from batches import Call, many
from ledger.conftest import idle_drivers
from residua.ledger.storage.rows import BUDGETS, Prepared, listed
from residua.mechanisms import PureDp

pytestmark = pytest.mark.needs("pgserver", "psycopg")
Open = Callable[..., rz.Ledger]
WAITING = "application_name = 'residua' AND wait_event_type = 'Lock'"


@pytest.fixture
def remote(schema_url: str, tmp_path: Path) -> Iterator[rz.Ledger]:
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.spend("b", PureDp(0.25), key="before")
        yield ledger


@contextmanager
def key_taken(remote: rz.Ledger, postgres: str) -> Iterator[Any]:
    """Somebody else is about to use the key `k`, and has not committed yet."""
    import psycopg

    path = remote.store.place.url.query["options"]
    assert isinstance(path, str)
    with psycopg.connect(postgres, options=path) as other:
        other.execute(
            "INSERT INTO residua_keys (principal, key, request, budget, seq)"
            " VALUES ('local', 'k', 'another', 'b', 0)"
        )
        yield other


def asked_meanwhile(remote: rz.Ledger, postgres: str, then: Callable[[Any], object]) -> list[Any]:
    """Two spends in one transaction, the first under `k`; `then` is done while they wait."""
    import psycopg

    answers: list[Any] = []

    def ask() -> None:
        wanted = [
            Call("spend", {"budgets": "b", "query": PureDp(0.25), "key": key}) for key in ("k", "l")
        ]
        answers.extend(many(remote, wanted))

    thread = threading.Thread(target=ask)
    thread.start()
    with psycopg.connect(postgres, autocommit=True) as watcher:
        while watcher.execute(
            f"SELECT count(*) FROM pg_stat_activity WHERE {WAITING}"
        ).fetchone() == (0,):
            time.sleep(0.02)
        then(watcher)
    thread.join()
    return answers


def left(ledger: rz.Ledger) -> Fraction:
    (amount,) = ledger.budget("b").state.left  # type: ignore[attr-defined]
    return Fraction(amount)


def test_a_write_that_is_refused_is_decided_again_and_each_is_answered(
    postgres: str, remote: rz.Ledger
) -> None:
    with key_taken(remote, postgres) as other:
        first, second = asked_meanwhile(remote, postgres, lambda _: other.commit())
    assert isinstance(first, rz.KeyReused)
    assert second.admitted and not second.replayed
    assert left(remote) == Fraction(1, 2) and len(remote.history("b")) == 3


def test_a_connection_that_is_cut_before_the_commit_was_reached_is_replaced(
    postgres: str, remote: rz.Ledger
) -> None:
    """The commit was sent already, but the server never came to it: it is known not to count."""

    def cut(watcher: Any) -> None:
        watcher.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {WAITING}")
        while watcher.execute(
            f"SELECT count(*) FROM pg_stat_activity WHERE {WAITING}"
        ).fetchone() == (0,):
            time.sleep(0.02)  # until it waits again, on another connection
        other.rollback()

    with key_taken(remote, postgres) as other:
        first, second = asked_meanwhile(remote, postgres, cut)
    assert first.admitted and second.admitted
    assert not first.replayed and not second.replayed
    assert left(remote) == Fraction(1, 4) and len(remote.history("b")) == 4


def test_a_server_that_was_away_is_noticed_once_however_many_connections_were_idle(
    postgres: str, remote: rz.Ledger
) -> None:
    import psycopg

    with (
        remote.store.connection() as one,
        remote.store.connection() as two,
        remote.store.connection() as three,
    ):
        for connection in (one, two, three):
            remote.store.ask(connection, [(BUDGETS, {"names": "[]"})])
    with psycopg.connect(postgres, autocommit=True) as watcher:
        watcher.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE application_name = 'residua'"
        )
    assert remote.spend("b", PureDp(0.25), key="k").admitted
    assert left(remote) == Fraction(1, 2)


def test_a_session_that_forgot_what_was_prepared_is_replaced(remote: rz.Ledger) -> None:
    for driver in idle_drivers(remote):
        # Past psycopg, which would forget them too: as a proxy that switches sessions does.
        driver.pgconn.exec_(b"DEALLOCATE ALL")
    assert remote.spend("b", PureDp(0.25), key="k").admitted
    assert left(remote) == Fraction(1, 2)


def test_what_is_interrupted_between_writing_and_commit_leaves_nothing(remote: rz.Ledger) -> None:
    """The answers that nobody read are not taken for those of the next statements."""
    from residua.ledger.storage import rows

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt), remote.store.writing() as connection:
            remote.store.ask(connection, remote.store.locking(["b"]))
            row = {"principal": "p", "key": "k", "request": "", "budget": "b", "seq": 0}
            remote.store.put(connection, [(rows.NEW_KEYS, [{**row, "held": None}])])
            raise KeyboardInterrupt
        assert remote.check("b", PureDp(0.5)).admitted
    assert remote.as_principal("p").spend("b", PureDp(0.25), key="k").admitted


def test_names_of_all_kinds_and_very_many(remote: rz.Ledger) -> None:
    names = ["ünï ¢ode", 'quo"te', "back\\slash", "\U0001f512", "per%cent", "{brace}"]
    for name in names:
        remote.create_budget(name, rz.PureFilter(1.0))
    done = remote.spend(names, PureDp(0.5), key='k"\\ü')
    assert done.admitted and set(done.budgets) == set(names)
    assert remote.spend(names, PureDp(0.5), key='k"\\ü').replayed
    many = listed(["b", *(str(n) for n in range(100_000))])
    with remote.store.reading() as connection:
        ((row,), (again,)) = remote.store.ask(connection, [(BUDGETS, {"names": many})] * 2)
    assert row == again and row[1] == "b"


def test_a_statement_that_fails_leaves_a_connection_that_works(remote: rz.Ledger) -> None:
    from sqlalchemy import text

    broken = Prepared(text("SELECT 1 / 0"))
    with remote.store.writing() as connection:
        with pytest.raises(Exception, match="division by zero"):
            remote.store.ask(connection, [(BUDGETS, {"names": "[]"}), (broken, {}), (broken, {})])
        connection.connection.rollback()
        assert remote.store.ask(connection, [(BUDGETS, {"names": '["x"]'})]) == [[]]


def _set(postgres: str, setting: str, value: str | None) -> None:
    """Change a setting of the server, and wait until new sessions see it."""
    import psycopg

    change = f"RESET {setting}" if value is None else f"SET {setting} = '{value}'"
    with psycopg.connect(postgres, autocommit=True) as connection:
        before = connection.execute(f"SHOW {setting}").fetchone()
        connection.execute(f"ALTER SYSTEM {change}")
        connection.execute("SELECT pg_reload_conf()")
    shown = before
    while shown == before:
        with psycopg.connect(postgres, autocommit=True) as connection:
            shown = connection.execute(f"SHOW {setting}").fetchone()


def test_a_commit_that_did_not_wait_for_its_standby_is_not_acknowledged(
    postgres: str, remote: rz.Ledger
) -> None:
    """Told to stop waiting, the server only warns that it may not be there after a failover."""
    import psycopg

    raised: list[BaseException] = []

    def ask() -> None:
        try:
            remote.spend("b", PureDp(0.25), key="k")
        except rz.OutcomeUnknown as error:
            raised.append(error)

    _set(postgres, "synchronous_standby_names", "nobody")
    try:
        thread = threading.Thread(target=ask)
        thread.start()
        with psycopg.connect(postgres, autocommit=True) as watcher:
            while thread.is_alive():
                watcher.execute(
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'residua' AND wait_event = 'SyncRep'"
                )
                time.sleep(0.02)
        thread.join()
    finally:
        _set(postgres, "synchronous_standby_names", None)
    (error,) = raised
    assert "synchronous replication" in str(error)
    assert remote.spend("b", PureDp(0.25), key="k").replayed
    assert left(remote) == Fraction(1, 2)


def test_a_mark_that_did_not_wait_for_its_standby_is_made_again(
    postgres: str, schema_url: str, tmp_path: Path
) -> None:
    """Nor is a spend acknowledged by an anchor whose server was told to stop waiting."""
    import psycopg

    # A role that hears of nothing less than errors, unless it asks to.
    where = schema_url + "%20-cclient_min_messages=error"
    told: list[int] = []
    with rz.open_ledger(tmp_path / "a.db", anchor=where) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        _set(postgres, "synchronous_standby_names", "nobody")
        try:
            thread = threading.Thread(target=lambda: ledger.spend("b", PureDp(0.25)))
            thread.start()
            with psycopg.connect(postgres, autocommit=True) as watcher:
                while len(told) < 2 and thread.is_alive():
                    found = watcher.execute(
                        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                        " WHERE application_name = 'residua' AND wait_event = 'SyncRep'"
                    ).fetchall()
                    told += [1] * len(found)
                    time.sleep(0.02)
                assert thread.is_alive(), "it waits again"
        finally:
            _set(postgres, "synchronous_standby_names", None)
        thread.join()
        assert len(told) == 2


def test_every_new_connection_looks_at_the_settings(postgres: str, remote: rz.Ledger) -> None:
    _set(postgres, "fsync", "off")
    try:
        assert remote.spend("b", PureDp(0.125), key="k").admitted, "on a connection from before"
        remote.store.close()
        with pytest.raises(rz.UnsafeStore, match="fsync"):
            remote.spend("b", PureDp(0.125), key="l")
    finally:
        _set(postgres, "fsync", None)
    assert not remote.spend("b", PureDp(0.125), key="l").replayed


@pytest.mark.parametrize("usual", ["repeatable read", "serializable"])
def test_what_is_usual_at_the_server_does_not_make_reads_older_than_locks(
    postgres: str, schema_url: str, tmp_path: Path, usual: str
) -> None:
    import psycopg

    where = schema_url + f"%20-cdefault_transaction_isolation={usual.replace(' ', '%5C%20')}"
    where += "%20-cdefault_transaction_read_only=on"
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    with rz.open_ledger(where, anchor=tmp_path / "anchor") as ledger:
        assert ledger.spend("b", PureDp(0.25)).admitted
        path = ledger.store.place.url.query["options"]
        with psycopg.connect(postgres, options=str(path)) as other:
            other.execute("SET TRANSACTION READ WRITE")
            other.execute("SELECT id FROM residua_budgets FOR UPDATE")
            other.execute("UPDATE residua_meta SET value = 'x' WHERE name = 'incarnation'")
            answers = asked_meanwhile(ledger, postgres, lambda _: other.commit())
    assert all(isinstance(each, rz.ReadOnlyLedger) for each in answers)


def test_a_young_ledger_is_read_by_keys_however_it_grows(remote: rz.Ledger) -> None:
    """By the plans that the server keeps, made when there was nothing in the tables."""
    from residua.ledger.storage import rows
    from residua.ledger.storage.postgres import _LOCK

    for number in range(8):  # after five times it keeps one plan for all values
        assert remote.spend("b", PureDp(0.001), key=f"first {number}").admitted
    reads = {each.text("postgresql"): "'[\"b\"]'" for each in (_LOCK, rows.BUDGETS, rows.KEYS)}
    reads[rows.CHANGED_BUDGETS.text("postgresql")] = "'1'"
    (driver,) = idle_drivers(remote)
    stored = driver.execute("SELECT name, statement FROM pg_prepared_statements").fetchall()
    names = {re.sub(r"\$\d+", "$", statement): name for name, statement in stored}
    for statement, value in reads.items():
        name, places = names[statement.replace("%s", "$")], statement.count("%s")
        values = ", ".join([value] * places)
        plan = driver.execute(f"EXPLAIN EXECUTE {name} ({values})").fetchall()
        text = "\n".join(line for (line,) in plan)
        assert "Seq Scan" not in text and "Bitmap" not in text, text
        assert "Hash" not in text and "Merge" not in text, text
        assert "Index Cond" in text, text
        if statement == rows.KEYS.text("postgresql"):
            assert "principal" in text.split("Index Cond")[1] and "key" in text, text
    driver.rollback()
