"""While the store is away: nobody learns where it is, and nobody waits."""

from __future__ import annotations

import asyncio
import io
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import httpx
import pytest

import residua as rz
from residua.errors import StoreUnavailable
from residua.service import context, logs
from residua.service.auth import TokenStore
from residua.service.context import Readiness
from residua.service.limits import ANONYMOUS_BURST, WorkerThreads
from residua.service.problems import Problem, problem_of
from service.running import LAPLACE, Service, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

FAKE = "rz_0123456789ab_" + 43 * "x"
USER, SCHEMA, PASSWORD = "keeper_of_budgets", "hidden_schema", "open-sesame"


@pytest.fixture
def server() -> Iterator[tuple[str, list[object]]]:
    """A PostgreSQL server of one test's own, which it may stop, and a secretive address of it."""
    import pgserver
    import psycopg

    folder = tempfile.mkdtemp(prefix="residua-outage-")
    running = pgserver.get_server(folder, cleanup_mode="delete")
    try:
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {USER} SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        url = running.get_uri().replace("postgres:@", f"{USER}:@", 1)
        assert USER in url
        options = quote(f"-csearch_path={SCHEMA}")
        yield f"{url}&options={options}&password={PASSWORD}", [running, folder]
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.needs("pgserver", "psycopg")
def test_nobody_learns_where_the_store_is(server: tuple[str, list[object]], tmp_path: Path) -> None:
    url, (running, folder) = server
    stream = io.StringIO()
    with logs.log_to("json", "debug", stream), serving(url, tmp_path / "anchor") as service:
        service.budget("web")
        known = service.token("engine")
        assert service.spend("web", "engine").is_success
        running.cleanup()  # type: ignore[attr-defined]
        time.sleep(1.1)  # what was looked up is looked up again
        answers = [
            service.http("GET", "/v1/me", FAKE),
            service.http("GET", "/v1/me", known),
            service.http("GET", "/v1/budgets", "admin"),
            service.spend("web", "engine"),
            service.http("GET", "/v1/ready", None),
            service.http("GET", "/", None, headers={"Cookie": f"residua_session={FAKE}"}),
            service.connection.post("/login", data={"token": FAKE}),
        ]
        health = service.http("GET", "/v1/health", None)
        said = "".join(one.text for one in answers)
    assert health.status_code == 200
    assert {one.status_code for one in answers[:5]} == {503}
    assert "nothing was spent" in answers[3].json()["detail"]
    written = stream.getvalue()
    assert "the store failed" in written and '"kind": "StoreUnavailable"' in written
    for secret in (USER, SCHEMA, PASSWORD, str(folder), "search_path"):
        assert secret not in said, secret
        assert secret not in written, secret


def test_words_of_a_store_are_not_logged() -> None:
    """Not even of a driver's error deep in the causes of another."""
    from sqlalchemy.exc import OperationalError

    stream = io.StringIO()
    try:
        try:
            try:
                raise OperationalError("SELECT 1", {}, Exception(f"no such user {USER}"))
            except OperationalError as error:
                raise StoreUnavailable(f"postgresql://{USER}@host/db: gone") from error
        except StoreUnavailable as error:
            raise KeyError("of ours") from error
    except KeyError as error:
        with logs.log_to("json", "info", stream):
            logs.log.error("internal error", exc_info=error)
    written = stream.getvalue()
    assert USER not in written
    for kind in ("KeyError: 'of ours'", "StoreUnavailable", "OperationalError", "test_outages.py"):
        assert kind in written


@pytest.mark.parametrize(
    "error",
    [
        rz.StoreUnavailable(f"postgresql://{USER}@h/d: FATAL: no {USER}; nothing was spent"),
        rz.OutcomeUnknown(f"the anchor postgresql://{USER}@h/d went away: {USER}"),
        rz.UnsafeStore(f"postgresql://{USER}@h/d is in recovery: use the primary"),
        rz.ReadOnlyLedger(f"postgresql://{USER}@h/d may have lost spends: budget 'web': gone"),
    ],
)
def test_problems_do_not_name_the_store(error: rz.LedgerError) -> None:
    problem = problem_of(error)
    assert problem is not None and USER not in problem.detail and "://" not in problem.detail


def test_strangers_reach_the_store_at_a_limited_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fake tokens and probes; an engine at the same address goes on."""
    looked: list[str] = []
    find = TokenStore.find

    def counted(self: TokenStore, id: str) -> object:
        looked.append(id)
        return find(self, id)

    monkeypatch.setattr(TokenStore, "find", counted)
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with serving(store, anchor, rate=10_000.0, burst=10_000) as service:
        assert service.http("GET", "/v1/me", "engine").status_code == 200
        begun = time.monotonic()
        looked.clear()
        answers = [service.http("GET", "/v1/me", FAKE).status_code for _ in range(150)]
        taken = 10 * (time.monotonic() - begun)
        assert looked.count("0123456789ab") <= ANONYMOUS_BURST + taken + 1
        assert answers[:ANONYMOUS_BURST] == ANONYMOUS_BURST * [401] and 429 in answers
        time.sleep(1.1)
        while service.http("GET", "/v1/me", FAKE).status_code != 429:
            pass
        assert service.http("GET", "/v1/me", "engine").status_code == 200, "it was known before"
        begun = time.monotonic()
        looked.clear()
        for _ in range(100):
            assert service.http("GET", "/v1/ready", None).status_code == 200
        assert looked.count("") <= 1 + (time.monotonic() - begun) / context.Readiness.EVERY


def test_probes_do_not_wait_for_work(service: Service, name: str) -> None:
    """Every thread for work is taken, and the queues behind them are not empty."""
    service.budget(name)
    office, ended = service.office, Event()
    kinds = (office.spend_threads, office.pool, office.read_threads, office.token_threads)

    async def occupy() -> None:
        for workers in kinds:
            for _ in range(70):
                workers._threads.submit(ended.wait, 60)

    asyncio.run(occupy())
    try:
        for path in ("/v1/health", "/v1/ready"):
            begun = time.monotonic()
            assert service.http("GET", path, None).status_code == 200
            assert time.monotonic() - begun < 5
    finally:
        ended.set()
    assert service.spend(name, mechanism=LAPLACE).is_success


def test_quick_spends_do_not_wait_for_slow_decisions(service: Service, name: str) -> None:
    service.budget(name, filter={"kind": "pure", "eps": 1.0})
    query = {"kind": "pure_dp", "eps": 0.001}
    ended = Event()
    for workers in (service.office.pool, service.office.read_threads):
        for _ in range(70):
            workers._threads.submit(ended.wait, 60)
    try:
        begun = time.monotonic()
        assert service.spend(name, mechanism=query).json()["admitted"]
        assert time.monotonic() - begun < 10
    finally:
        ended.set()


def test_a_store_that_hangs_is_not_ready_soon() -> None:
    ended, looks = Event(), []

    def look() -> None:
        looks.append(1)
        ended.wait(60)

    async def work() -> None:
        ready = Readiness(look)
        begun = time.monotonic()
        assert not await ready.is_ready()
        assert time.monotonic() - begun < context.Readiness.PATIENCE + 1
        begun = time.monotonic()
        assert not any([await ready.is_ready() for _ in range(100)])
        assert time.monotonic() - begun < 1 and looks == [1], "nobody waits again, or asks again"
        ended.set()
        deadline = time.monotonic() + 10
        while not await ready.is_ready() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert await ready.is_ready()
        ready.close()

    asyncio.run(work())


def test_a_queue_that_is_full_says_when_to_retry() -> None:
    ended = Event()

    async def work() -> None:
        workers = WorkerThreads("test", 1, 2)
        waiting = [asyncio.ensure_future(workers.run(ended.wait, 60)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="nothing was spent") as full:
            await workers.run(ended.wait, 60)
        assert full.value.status == 503 and full.value.headers == {"Retry-After": "1"}
        ended.set()
        assert await asyncio.gather(*waiting) == [True, True, True]
        workers.close()
        with pytest.raises(Problem, match="shutting down; nothing was spent"):
            await workers.run(ended.wait, 60)

    asyncio.run(work())


def test_a_nested_body_stops_nobody(service: Service, name: str) -> None:
    """A body of 200 kB takes a while to read, away from the event loop."""
    leaf = {"kind": "laplace", "scale": 400.0}
    for _ in range(30):
        leaf = {
            "kind": "composed",
            "mechanisms": [leaf, *({"kind": "laplace", "scale": 1.0},) * 200],
        }
    longest, stop = [0.0], Event()

    def probe() -> None:
        with httpx.Client(base_url=service.url, timeout=30) as visitor:
            while not stop.is_set():
                begun = time.monotonic()
                assert visitor.get("/v1/health").status_code == 200
                longest[0] = max(longest[0], time.monotonic() - begun)

    thread = Thread(target=probe)
    thread.start()
    try:
        begun = time.monotonic()
        answer = service.spend(name, mechanism=leaf)
        took = time.monotonic() - begun
    finally:
        stop.set()
        thread.join()
    assert answer.status_code == 404, "it was read, and there is no such budget"
    assert longest[0] < max(1.0, took / 2)
