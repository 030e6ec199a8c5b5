"""What takes long to compute delays nobody else, and whatever ends it costs its own request."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from benchmarks.harness import disturbance

import residua as rz
from residua.ledger.api import views
from residua.ledger.operations import committer
from residua.service import pool as pools
from residua.service.api.routes import asking as routes
from residua.service.pages import playground
from residua.service.pool import Pool
from residua.service.problems import Problem
from residua.work_limit import OPERATIONS
from service.running import Service, serving
from snippets import ROOT

AUTO = {"kind": "auto", "eps": 1.0, "delta": 1e-6}
SLOW = {"kind": "subsampled_gaussian", "sigma": 5.0, "sampling_rate": 0.01}
"""The first query of an automatic filter, which chooses its components then: seconds."""
CHEAP = {"kind": "pure_dp", "eps": 0.0001}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Service]:
    """A service with one worker, for a test that ends it.

    Workers stand back for everyone else, so on a busy machine one may need long to begin.
    """
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with serving(store, anchor, workers=1, compute_within=90.0) as service:
        yield service


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def computing(service: Service) -> bool:
    """Whether a worker has been asked something and has not answered."""
    return any(slot._asking for slot in tuple(service.office.pool._busy))


def stop(service: Service, running: list[Future[Any]]) -> None:
    """Kill every worker until all of these are answered."""

    def stopped() -> bool:
        for pid in service.office.pool.processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return all(one.done() for one in running)

    until(stopped, "they go on", 30.0)


def records(service: Service, name: str) -> list[str]:
    answer = service.http("GET", f"/v1/budgets/{name}/history")
    return [one["type"] for one in answer.json()["items"]]


# -- the pool --------------------------------------------------------------------------------


def play(work: Any, **options: Any) -> Any:
    """Run something with a pool, and close it."""

    async def main() -> Any:
        pool = Pool(**{"workers": 2, "within": 30.0, "memory": 1024, **options})
        try:
            return await work(pool)
        finally:
            await asyncio.to_thread(pool.close)
            assert not pool.processes

    return asyncio.run(main())


def sleep(pool: Pool, name: str, seconds: float) -> Any:
    return asyncio.ensure_future(pool.run(name, lambda compute: compute(time.sleep, seconds)))


def test_nothing_is_started_before_it_is_needed() -> None:
    async def work(pool: Pool) -> None:
        assert await pool.run("a", lambda compute: 1) == 1
        assert not pool.processes
        assert await pool.run("a", lambda compute: compute(abs, -2)) == 2
        first = pool.processes
        assert await pool.run("b", lambda compute: compute(os.getpid)) == first[0]
        assert pool.processes == first, "it is used again"

    play(work)


def test_no_principal_has_all_workers() -> None:
    """Ten long ones of one principal, and one of another that comes last."""

    async def work(pool: Pool) -> None:
        many = [sleep(pool, "a", 60.0) for _ in range(10)]
        await asyncio.sleep(0)
        await asyncio.wait_for(sleep(pool, "b", 0.0), 30.0)
        assert not any(one.done() for one in many)
        for one in many:
            one.cancel()
        await asyncio.wait(many, timeout=30.0)
        assert all(one.cancelled() for one in many), "who leaves does not wait"

    play(work, within=120.0)


def test_with_one_worker_principals_take_turns() -> None:
    async def work(pool: Pool) -> None:
        order: list[str] = []

        async def one(name: str) -> None:
            await sleep(pool, name, 0.01)
            order.append(name)

        await asyncio.gather(*(one(name) for name in "aaaaaab"))
        assert order.index("b") <= 2, order

    play(work, workers=1)


def test_a_deadline_ends_what_is_computed() -> None:
    async def work(pool: Pool) -> None:
        begun = time.monotonic()
        with pytest.raises(Problem, match=r"longer than 0\.5 seconds .* nothing was spent") as late:
            await sleep(pool, "a", 60.0)
        assert late.value.status == 503 and late.value.name == "deadline-exceeded"
        assert time.monotonic() - begun < 30
        pool._within = 60.0  # A new worker starts, which takes a while on a busy machine.
        assert await pool.run("a", lambda compute: compute(abs, -1)) == 1

    play(work, within=0.5, workers=1)


def test_a_worker_has_a_limited_memory() -> None:
    async def work(pool: Pool) -> None:
        with pytest.raises(Problem, match="more than 512 MB of memory") as large:
            await pool.run("a", lambda compute: compute(bytes, 2**30))
        assert large.value.status == 503
        assert len(await pool.run("a", lambda compute: compute(bytes, 2**20))) == 2**20

    play(work, memory=512)


def test_who_waits_too_long_is_told_to_retry() -> None:
    async def work(pool: Pool) -> None:
        first, second = sleep(pool, "a", 60.0), sleep(pool, "b", 60.0)
        with pytest.raises(Problem, match=r"no worker was free for 0\.5 seconds") as late:
            await second
        assert late.value.status == 503 and late.value.headers == {"Retry-After": "1"}
        with pytest.raises(Problem, match="longer than"):
            await first

    play(work, workers=1, within=0.5)


def test_a_principal_has_a_quarter_of_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one asks beyond that is refused at once, and the rest of the queue is for others."""
    monkeypatch.setattr(pools, "QUEUE", 8)

    async def work(pool: Pool) -> None:
        of_one = [sleep(pool, "a", 60.0) for _ in range(3)]
        await asyncio.sleep(0)
        others = [sleep(pool, name, 60.0) for name in "bcdefg"]
        await asyncio.sleep(0)
        for name in "ah":
            with pytest.raises(Problem, match="too many requests wait") as full:
                await asyncio.wait_for(sleep(pool, name, 60.0), 10.0)
            assert full.value.status == 503 and full.value.headers == {"Retry-After": "1"}
        others.pop().cancel()
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="too many requests wait"):
            await asyncio.wait_for(sleep(pool, "a", 60.0), 10.0)
        waits = sleep(pool, "h", 60.0)
        await asyncio.sleep(0.05)
        every = [*of_one, *others, waits]
        assert not any(one.done() for one in every)
        for one in every:
            one.cancel()
        await asyncio.wait(every, timeout=30.0)

    play(work, workers=1, within=60.0)


def test_an_error_of_what_is_computed_is_raised_here() -> None:
    async def work(pool: Pool) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            await pool.run("a", lambda compute: compute(int, "x"))
        assert len(pool.processes) == 1, "and the worker goes on"

    play(work)


def test_workers_that_are_idle_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "IDLE", 0.05)

    async def work(pool: Pool) -> None:
        await pool.run("a", lambda compute: compute(abs, 1))
        for _ in range(500):
            if not pool.processes:
                return
            await asyncio.sleep(0.02)
        pytest.fail("it is still there")

    play(work)


def test_closing_ends_what_is_computed() -> None:
    async def work(pool: Pool) -> None:
        long = sleep(pool, "a", 60.0)
        while not any(slot._asking for slot in pool._busy):
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        await asyncio.to_thread(pool.close)
        with pytest.raises(Problem, match="shutting down"):
            await long
        assert time.monotonic() - begun < 10

    play(work)


# -- over HTTP -------------------------------------------------------------------------------


@pytest.fixture
def asking(own: Service) -> Iterator[Callable[..., Future[Any]]]:
    """Spends in a thread each."""
    with ThreadPoolExecutor(8) as threads:
        yield lambda *given, **fields: threads.submit(own.spend, *given, **fields)


def test_a_killed_worker_costs_its_own_request(
    own: Service, asking: Callable[..., Future[Any]]
) -> None:
    own.budget("slow", filter=AUTO)
    own.budget("quick", filter={"kind": "pure", "eps": 1.0})
    lost = asking("slow", mechanism=SLOW, key="k")
    until(lambda: computing(own), "nothing is computed")
    (pid,) = own.office.pool.processes
    os.kill(pid, signal.SIGSTOP)  # However busy the machine is, it does not answer before that.
    assert own.spend("quick", mechanism=CHEAP).json()["admitted"]
    os.kill(pid, signal.SIGKILL)
    answer = lost.result(90)
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:residua:problem:worker-lost"
    assert "signal 9; nothing was spent" in answer.json()["detail"]
    assert records(own, "slow") == ["create"]
    after = own.spend("slow", mechanism={"kind": "gaussian", "sigma": 50.0}, key="k")
    assert after.status_code == 200, after.text
    assert after.json()["admitted"] and pid not in own.office.pool.processes


def test_a_full_queue_says_when_to_retry_and_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "QUEUE", 1)
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with (
        serving(store, anchor, workers=1, compute_within=60.0) as service,
        ThreadPoolExecutor(2) as threads,
    ):
        service.budget("quick", filter={"kind": "pure", "eps": 1.0})
        for name in "abc":
            service.budget(name, filter=AUTO)
        running = [threads.submit(service.spend, name, mechanism=SLOW) for name in "ab"]
        until(lambda: service.office.pool._permits._waiting, "nobody waits")
        full = service.spend("c", "engine", mechanism=SLOW)
        assert full.status_code == 503 and full.headers["retry-after"] == "1"
        assert full.json()["type"] == "urn:residua:problem:overloaded"
        assert "nothing was spent" in full.json()["detail"]
        for path in ("/v1/health", "/v1/ready"):
            begun = time.monotonic()
            assert service.http("GET", path, None).status_code == 200
            assert time.monotonic() - begun < 5
        assert service.spend("quick", mechanism=CHEAP).json()["admitted"]
        stop(service, running)
        assert {one.result().status_code for one in running} <= {200, 503}
        assert records(service, "c") == ["create"]


def test_a_spend_that_takes_too_long_spends_nothing(tmp_path: Path) -> None:
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with serving(store, anchor, compute_within=0.2) as service:
        service.budget("quick", filter={"kind": "pure", "eps": 1.0})
        # Showing the new budget may already take longer than that.
        body = {"name": "slow", "filter": AUTO}
        assert service.http("POST", "/v1/budgets", json=body).status_code in (201, 503)
        late = service.spend("slow", mechanism=SLOW)
        assert late.status_code == 503, late.text
        assert late.json()["type"].endswith((":deadline-exceeded", ":overloaded"))
        assert records(service, "slow") == ["create"]


def test_what_is_committed_is_answered_even_if_what_is_left_is_not_known(
    own: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.budget("b", filter=AUTO)
    query = rz.Gaussian(sigma=50.0)
    assert own.spend("b", mechanism=query.to_dict()).json()["remaining"]["kind"] == "pure_dp"
    # The committer makes the next decision, and then nothing else can be worked out.
    monkeypatch.setattr(committer, "QUICK", OPERATIONS)
    monkeypatch.setattr(routes, "QUICK_ANSWER", 1)
    monkeypatch.setattr(own.office.pool, "_within", 0.001)
    found = own.spend("b", "engine", mechanism=query.to_dict(), key="k")
    assert found.status_code == 200 and found.json()["admitted"], found.text
    assert found.json()["remaining"]["kind"] == "unknown"
    assert len(records(own, "b")) == 3
    with own.client("engine") as client:
        receipt = client.spend("b", query, key="k")
    assert receipt.replayed and "not computed in time" in receipt.remaining


def leave(service: Service, name: str, mechanism: str, key: str, after: Callable[[], None]) -> None:
    """Send a spend, and go away without an answer."""
    body = f'{{"mechanism": {mechanism}, "key": "{key}"}}'
    head = (
        f"POST /v1/budgets/{name}/spend HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {service.tokens['engine']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall((head + body).encode())
        after()


def test_a_client_that_leaves_before_the_commit_is_not_charged(
    own: Service, caplog: pytest.LogCaptureFixture
) -> None:
    own.budget("slow", filter=AUTO)
    slow = '{"kind": "subsampled_gaussian", "sigma": 5.0, "sampling_rate": 0.01}'
    leave(own, "slow", slow, "k", lambda: until(lambda: computing(own), "nothing is computed"))
    until(lambda: not own.office.pool._busy, "it is still computed", 5.0)
    assert records(own, "slow") == ["create"]
    after = own.spend("slow", "engine", mechanism={"kind": "gaussian", "sigma": 50.0}, key="k")
    assert after.json()["admitted"] and not after.json()["replayed"]
    assert not [one for one in caplog.records if one.name == "asyncio"], caplog.text


def test_clients_that_leave_are_charged_once_at_most(own: Service) -> None:
    own.budget("b", filter={"kind": "pure", "eps": 1.0})
    for n in range(30):
        leave(own, "b", '{"kind": "pure_dp", "eps": 0.001}', str(n), lambda: None)
    with own.client("engine") as client:
        receipts = [client.spend("b", rz.PureDp(0.001), key=str(n)) for n in range(30)]
    assert all(receipt.admitted for receipt in receipts)
    assert records(own, "b").count("spend") == 30


@pytest.mark.parametrize(
    "filter", [{"kind": "pure", "eps": 1.0}, {"kind": "gdp", "mu": 1.0}, {"kind": "zcdp", "rho": 1}]
)
def test_spends_beside_a_hold_of_a_fixed_cost_need_no_worker(
    tmp_path: Path, filter: dict[str, object]
) -> None:
    """A worker may be busy with what others ask, and takes seconds to start."""
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
        service.budget("sums", filter=filter)
        body = {"mechanism": {"kind": "pure_dp", "eps": 0.01}}
        held = service.http("POST", "/v1/budgets/sums/reserve", json=body).json()
        assert held["admitted"]
        spent = service.spend("sums", mechanism={"kind": "pure_dp", "eps": 0.1}).json()
        assert spent["admitted"]
        refused = service.spend("sums", mechanism={"kind": "pure_dp", "eps": 20.0}).json()
        assert not refused["admitted"] and refused["remaining"] == spent["remaining"]
        committed = service.http("POST", f"/v1/holds/{held['id']}/commit", json={}).json()
        assert committed["admitted"] and committed["remaining"] == spent["remaining"]
        assert not service.office.pool.processes


def p99(service: Service) -> float:
    """The 99th percentile of the seconds that a cheap spend takes."""
    took = []
    for _ in range(100):
        begun = time.monotonic()
        assert service.spend("quick", "engine", mechanism=CHEAP).json()["admitted"]
        took.append(time.monotonic() - begun)
    return statistics.quantiles(took, n=100)[98]


def test_cheap_spends_beside_expensive_requests(own: Service) -> None:
    """A smoke test: on a busy machine, the bound is generous."""
    own.budget("quick", filter={"kind": "pure", "eps": 1.0})
    for n in range(4):
        own.budget(f"slow{n}", filter=AUTO)
    alone = p99(own)
    with ThreadPoolExecutor(4) as threads:
        slow = [threads.submit(own.spend, f"slow{n}", mechanism=SLOW) for n in range(4)]
        until(lambda: computing(own), "nothing is computed")
        beside = p99(own)
        still = sum(not one.done() for one in slow)
        stop(own, slow)
    assert still, "they were done before the spends were"
    assert beside < 10 * alone + 1.0, (beside, alone)


@pytest.mark.parametrize("kind", ["check", "verify", "export", "backup"])
def test_cheap_spends_beside_other_work(own: Service, kind: str) -> None:
    """The same beside what another principal does over and over, from another process."""
    own.budget("quick", filter={"kind": "pure", "eps": 1.0})
    own.budget(disturbance.OPENED, filter=AUTO)
    assert own.spend(disturbance.OPENED, mechanism=disturbance.GAUSSIAN).json()["admitted"]
    alone = p99(own)
    work = [sys.executable, "-m", "benchmarks.harness.disturbance"]
    place = [own.url, own.tokens["admin"], own.office.settings.store]
    with subprocess.Popen([*work, kind, *place], cwd=ROOT) as other:
        try:
            time.sleep(2.0)  # It starts.
            beside = p99(own)
            assert other.poll() is None, "it ended"
        finally:
            other.kill()
    assert beside < 10 * alone + 1.0, (beside, alone)


def test_playing_costs_others_nothing(own: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker plays, for anybody without a token: a cheap spend does not wait, nor for what fails.

    What was played is not played again.
    """
    own.budget("quick", filter={"kind": "pure", "eps": 1.0})
    # In this process nothing can be played: a worker imports the game afresh.
    monkeypatch.setattr(playground, "play_plan", lambda name, plan: pytest.fail("played here"))
    path = "/play?first=steady&low=gamble&high=steady"
    with ThreadPoolExecutor(1) as threads:
        play_plan = threads.submit(own.http, "GET", path, None)
        until(lambda: computing(own) or play_plan.done(), "nothing is computed")
        assert own.spend("quick", mechanism=CHEAP).json()["admitted"]
        shown = play_plan.result(90)
    assert shown.status_code == 200 and "Broken" in shown.text
    assert len(own.office.pool.processes) == 1
    own.office.pool._end_idle(0.0)
    assert own.http("GET", path, None).text == shown.text
    assert not own.office.pool.processes, "without a worker"
    assert own.http("GET", "/play?first=nobody&low=steady&x=1", None).status_code == 200
    assert set(own.office.play_plan) == {("steady", "gamble", "steady"), ("stop", "steady", "stop")}


def test_what_partitions_promise_is_worked_out_by_a_worker(
    own: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supremum of different promises takes seconds where there are many."""
    own.budget("quick", filter={"kind": "pure", "eps": 1.0})
    own.budget("whole", filter={"kind": "basic", "eps": 1.0, "delta": 1e-6}, data="d")
    for n in range(3):
        part = {"kind": "basic", "eps": 0.5 + n / 10, "delta": 1e-6 / (n + 1)}
        own.budget(f"part{n}", filter=part, parent="whole", partition=f"p{n}")
    own.budget("alike", filter={"kind": "basic", "eps": 1.0, "delta": 1e-6})
    for n in range(3):
        half = {"kind": "basic", "eps": 0.5, "delta": 1e-6}
        own.budget(f"alike{n}", filter=half, parent="alike", partition=f"p{n}")
    own.budget("inner", filter=half, parent="part0", partition="p")
    office, asked = own.office, []
    promise = views._whole

    def whole(parts: Any, relation: str) -> Any:
        asked.append(parts)
        return promise(parts, relation)

    monkeypatch.setattr(views, "_whole", whole)
    # In this process no promise of different partitions is worked out: a worker does it.
    for path in ("/v1/budgets/whole", "/v1/budgets", "/v1/budgets/alike", "/v1/status"):
        assert own.http("GET", path).status_code == 200, path
    assert all(len(set(parts)) == 1 for parts in asked), asked
    shown = own.http("GET", "/v1/budgets/whole").json()["guarantee"]["text"]
    assert shown == office.ledger.budget("whole").guarantee.text
    assert "the supremum of its partitions" in shown
    assert own.spend("quick", mechanism=CHEAP).json()["admitted"]
