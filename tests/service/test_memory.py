"""Memory of the service: what callers send does not stay, however much of it they choose."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import weakref
from contextlib import suppress
from pathlib import Path

import pytest

import residua as rz
from residua import sized_cache
from residua.ledger.operations import committer
from residua.service import serving
from residua.service.api.routes.asking import query_of
from residua.service.pool import NotHere, not_here

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

MEGABYTE = 1024 * 1024


def long_query(n: int) -> dict[str, object]:
    """A query of about 15 kB that no other test asks: its objects take ten times as much."""
    parts = [{"kind": "gaussian", "sigma": 7.0 + n + i / 4096} for i in range(300)]
    return {"kind": "composed", "mechanisms": parts}


def test_long_queries_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyst who may check sends as many as there are.

    Caches that counted entries kept two megabytes of each of the longest, and thousands of them.
    """
    monkeypatch.setattr(sized_cache, "MOST_CHARACTERS", 200_000)
    with rz.open_ledger(f"sqlite:///{tmp_path}/b.db", anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.BasicFilter(1.0, 1e-6))
        reading = ledger.with_compute(not_here)

        def ask(first: int, last: int) -> int:
            for n in range(first, last):
                with suppress(NotHere, rz.ArgumentError):
                    reading.check("b", query_of(long_query(n)))
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            warm = ask(0, 15)
            grown = ask(15, 55) - warm
        finally:
            tracemalloc.stop()
    assert grown < 2 * MEGABYTE, f"{grown / MEGABYTE:.1f} MB of 40 queries are kept"


def test_a_decision_elsewhere_leaves_no_description_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision is kept by a short text, however long the query is."""
    monkeypatch.setattr(committer, "QUICK", 0)
    with rz.open_ledger(f"sqlite:///{tmp_path}/b.db", anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.BasicFilter(1.0, 1e-6))
        parts = [{"kind": "gaussian", "sigma": 5000.0 + i} for i in range(250)]
        query = query_of({"kind": "composed", "mechanisms": parts})
        ledger.with_compute(lambda do, *arguments: do(*arguments)).check("b", query)
        kept = [key[3] for key in ledger._committer._early._known]
        assert len(query.text) > 5_000 and kept and max(map(len, kept)) < 100


def test_old_garbage_is_collected_at_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arrays of decisions hang on few objects, which by itself nothing looked at for hours."""

    class Kept:
        pass

    kept = Kept()
    kept.itself = kept  # type: ignore[attr-defined]
    found = weakref.ref(kept)
    monkeypatch.setattr(serving, "_COLLECT_EVERY", 0.01)

    async def serve() -> None:
        nonlocal kept
        serving._collect_garbage(asyncio.get_running_loop())
        del kept
        async with asyncio.timeout(10):
            while found() is not None:
                await asyncio.sleep(0.01)

    gc.disable()
    try:
        asyncio.run(serve())
    finally:
        gc.enable()
