"""Places to kill writers at, on both stores.

`RESIDUA_KILLS` says how many kills there are at random moments, and how many at named points.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from faults import harness, writers

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    import pgserver

KILLS = int(os.environ.get("RESIDUA_KILLS", "4"))


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A PostgreSQL of its own, since it will be ill-treated, in a folder its user may enter."""
    made = pgserver.get_server(tempfile.mkdtemp(prefix="residua-faults-"), cleanup_mode="delete")
    yield made
    made.cleanup()


@pytest.fixture
def schema_url(server: Any) -> str:
    """The address of a schema of its own."""
    return _schema_in(server)


def _schema_in(server: Any) -> str:
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server.get_uri()}&options={quote(f'-csearch_path={name}')}"


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.needs("pgserver", "psycopg", "flint")),
    ]
)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], harness.Place]:
    """Makes new ledgers with budgets, all in one kind of store."""

    def new() -> harness.Place:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        if request.param == "sqlite":
            url = f"sqlite:///{folder}/ledger.db"
        else:
            url = _schema_in(request.getfixturevalue("server"))
        made = harness.Place(url, folder)
        writers.make(made.url, made.anchor)
        return made

    return new


@pytest.fixture
def place(places: Callable[[], harness.Place]) -> harness.Place:
    """A new ledger with budgets."""
    return places()
