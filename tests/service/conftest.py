"""One service for the tests that leave it as it is, and a PostgreSQL server for those that ask."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from service.running import Service, serving

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    # While it is imported, the server's package warns where there is no runtime directory.
    warnings.simplefilter("ignore")
    import pgserver


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server that lives as long as the session.

    Not under pytest's own directory: for root the server runs as another user, who must get there.
    """
    folder = tempfile.mkdtemp(prefix="residua-postgres-")
    server = pgserver.get_server(folder, cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The address of a ledger that is not there yet, in a schema of its own."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres_server}&options={quote(f'-csearch_path={name}')}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on SQLite, with a token for each role, for a module of tests."""
    folder = tmp_path_factory.mktemp("service")
    with serving(f"sqlite:///{folder}/budgets.db", folder / "anchor") as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """The name of a budget that no other test has."""
    return f"b-{uuid.uuid4().hex[:12]}"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of whoever runs the tests counts."""
    for variable in os.environ:
        if variable.startswith("RESIDUA_") and variable != "RESIDUA_NO_SKIPS":
            monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
