"""Ledgers for the tests: each on SQLite and on PostgreSQL, which is started once a session."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import update

import residua as rz
from residua.ledger.storage import schema

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    # While it is imported, the server's package warns where there is no runtime directory.
    warnings.simplefilter("ignore")
    import pgserver

STORES = [
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.needs("pgserver", "psycopg")),
]

Open = Callable[..., rz.Ledger]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server that lives as long as the session."""
    # Not where pytest keeps its files: under root the server is another user's, and pytest closes
    # its directories to others whenever a session begins.
    with tempfile.TemporaryDirectory(prefix="residua-pg", ignore_cleanup_errors=True) as home:
        server = pgserver.get_server(Path(home) / "data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger that is not there yet, on each store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    made: str = request.getfixturevalue("schema_url")
    return made


@pytest.fixture
def schema_url(postgres: str) -> str:
    """The address of a schema of its own in the server's database."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres}&options={quote(f'-csearch_path={name}')}"


@pytest.fixture
def open_(url: str, tmp_path: Path) -> Iterator[Open]:
    """Opens the ledger, again and again if need be; everything is closed at the end."""
    opened: list[rz.Ledger] = []

    def open_one(where: str = url, **options: object) -> rz.Ledger:
        options.setdefault("anchor", tmp_path / "ledger.anchor")
        made = rz.open_ledger(where, **options)
        opened.append(made)
        return made

    yield open_one
    for each in opened:
        each.close()


def idle_drivers(ledger: rz.Ledger) -> list[Any]:
    """The driver's connections that wait in the pool of a ledger's store."""
    pool: Any = ledger.store.engine.pool
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(ledger.store.connection()) for _ in range(pool.checkedin())]
        return [each.connection.driver_connection for each in opened]


def make_late(ledger: rz.Ledger) -> None:
    """Put the end of every hold and every window into the past."""
    past = "2000-01-01T00:00:00.000Z"
    with ledger.store.writing() as connection:
        connection.execute(update(schema.holds).values(expires=past))
        windows = schema.budgets.c.window_ends.is_not(None)
        connection.execute(update(schema.budgets).where(windows).values(window_ends=past))
        connection.commit()


@pytest.fixture
def late() -> Callable[[rz.Ledger], None]:
    """Lets the time of all holds and windows run out."""
    return make_late


@pytest.fixture
def ledger(open_: Open) -> rz.Ledger:
    """An open ledger without budgets."""
    return open_()
