"""Memory of the service: what callers send does not stay, however much of it they choose."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

import residua as rz
from residua.service.api.routes.asking import query_of
from residua.service.pool import NotHere, not_here

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

MEGABYTE = 1024 * 1024


def long_query(n: int) -> dict[str, object]:
    """A query of about 100 kB that no other test asks: its objects take ten times as much."""
    parts = [{"kind": "gaussian", "sigma": 7.0 + n + i / 4096} for i in range(2000)]
    return {"kind": "composed", "mechanisms": parts}


def test_long_queries_do_not_stay(tmp_path: Path) -> None:
    """An analyst who may check sends as many as there are; each took a megabyte before."""
    with rz.open_ledger(f"sqlite:///{tmp_path}/b.db", anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.BasicFilter(1.0, 1e-6))
        reading = ledger.with_compute(not_here)

        def ask(first: int, last: int) -> int:
            for n in range(first, last):
                with suppress(NotHere):
                    reading.check("b", query_of(long_query(n)))
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            warm = ask(0, 25)
            grown = ask(25, 75) - warm
        finally:
            tracemalloc.stop()
    assert grown < 5 * MEGABYTE, f"{grown / MEGABYTE:.1f} MB of 50 queries are kept"
