"""Places to kill writers at, on both stores. `RESIDUUM_KILLS` says how many random kills."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults import harness, writers

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    import pgserver

KILLS = int(os.environ.get("RESIDUUM_KILLS", "4"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """A PostgreSQL of its own, since it will be ill-treated."""
    made = pgserver.get_server(tmp_path / "postgres", cleanup_mode="delete")
    yield made
    made.cleanup()


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
        url = request.getfixturevalue("server").get_uri()
    made = harness.Place(url, folder)
    writers.make(made.url, made.anchor)
    return made
