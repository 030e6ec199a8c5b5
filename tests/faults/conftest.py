"""Places to kill writers at, on both stores. `RESIDUUM_KILLS` says how many random kills."""

from __future__ import annotations

import contextlib
import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from faults import harness, writers

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    import pgserver

KILLS = int(os.environ.get("RESIDUUM_KILLS", "4"))


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """A PostgreSQL of its own, since it will be ill-treated, in a folder its user may enter."""
    made = pgserver.get_server(tempfile.mkdtemp(prefix="residuum-faults-"), cleanup_mode="delete")
    yield made
    made.cleanup()


@pytest.fixture
def schema_url(server: Any) -> str:
    """The address of a schema of its own."""
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
def place(request: pytest.FixtureRequest, tmp_path: Path) -> harness.Place:
    """A new ledger with budgets."""
    folder = tmp_path / "trial"
    folder.mkdir()
    if request.param == "sqlite":
        url = f"sqlite:///{folder}/ledger.db"
    else:
        url = request.getfixturevalue("schema_url")
    made = harness.Place(url, folder)
    writers.make(made.url, made.anchor)
    return made
