"""Rates: a bucket for each caller, and a small one for strangers."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from residua.service.limits import ANONYMOUS_BURST, FairSemaphore, RateLimiter
from residua.service.problems import Problem
from service.running import serving


def test_a_bucket_empties_and_fills() -> None:
    now = [0.0]
    rate = RateLimiter(10.0, 3, clock=lambda: now[0])
    for _ in range(3):
        rate.take("a")
    with pytest.raises(Problem) as caught:
        rate.take("a")
    assert caught.value.status == 429 and caught.value.headers["Retry-After"] == "1"
    rate.take("b")
    now[0] = 0.1
    rate.take("a")
    with pytest.raises(Problem):
        rate.take("a")
    now[0] = 100.0
    for _ in range(3):
        rate.take("a")
    with pytest.raises(Problem):
        rate.take("a")


def test_no_limit() -> None:
    rate = RateLimiter(0.0, 1)
    for _ in range(1000):
        rate.take("a")


def test_buckets_do_not_fill_the_memory() -> None:
    now = [0.0]
    rate = RateLimiter(1.0, 2, clock=lambda: now[0])
    for place in range(25_000):
        now[0] += 1e-6
        rate.take(str(place))
    assert len(rate._buckets) <= 10_000


def test_permits_are_shared_fairly() -> None:
    """One who asks for much waits for their own, another does not, and nothing is kept after."""

    async def play_plan() -> None:
        permits, running, most = FairSemaphore(3, 2, 100, 100), Counter[str](), Counter[str]()
        order: list[str] = []

        async def work(name: str) -> None:
            async with permits.permit(name):
                order.append(name)
                running[name] += 1
                most[name] = max(most[name], running[name])
                await asyncio.sleep(0)
                running[name] -= 1

        await asyncio.gather(*(work(name) for name in "aaaaaaaabbbbc"))
        assert most["a"] == 2 and most["c"] == 1
        assert order.index("c") < 6, "who came last, behind twelve others"
        assert order.index("b") == 2 and not permits._waiting and not permits._held

    asyncio.run(play_plan())


def test_a_queue_is_bounded_for_each_name_and_for_all() -> None:
    async def play_plan() -> None:
        permits = FairSemaphore(1, 1, 3, 2)
        await permits.acquire("a")
        waiting = [asyncio.ensure_future(permits.acquire(name)) for name in "aab"]
        await asyncio.sleep(0)
        for name in ("a", "b", "c"):
            with pytest.raises(Problem, match="nothing was spent") as full:
                await permits.acquire(name)
            assert full.value.status == 503 and full.value.headers["Retry-After"] == "1"
        waiting[0].cancel()
        await asyncio.sleep(0)
        permits.release("a")
        await waiting[2]
        permits.release("b")
        await waiting[1]
        permits.release("a")
        assert not permits._waiting and not permits._held

    asyncio.run(play_plan())


def test_a_permit_that_came_too_late_goes_to_the_next() -> None:
    async def play_plan() -> None:
        permits = FairSemaphore(1, 1, 10, 10)
        await permits.acquire("a")
        first, second = (asyncio.ensure_future(permits.acquire(name)) for name in "bc")
        await asyncio.sleep(0)
        permits.release("a")
        first.cancel()
        await second
        permits.release("c")
        assert not permits._waiting and not permits._held

    asyncio.run(play_plan())


@pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")
def test_over_http(tmp_path: Path) -> None:
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with serving(store, anchor, rate=0.001, burst=5) as service:
        answers = [service.http("GET", "/v1/me", "engine") for _ in range(6)]
        assert [one.status_code for one in answers] == 5 * [200] + [429]
        assert answers[-1].json()["type"].endswith(":too-many-requests")
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert service.http("GET", "/v1/me", "analyst").status_code == 200
        assert service.http("GET", "/v1/me", "x").status_code == 401
        # It fills again while we look, so it may take a few tries on a slow machine.
        tries = []
        while 429 not in tries and len(tries) < 500:
            with pytest.raises(Problem):
                for _ in range(ANONYMOUS_BURST + 5):
                    service.office.anonymous_limiter.take("127.0.0.1")
            tries.append(service.http("GET", "/v1/me", "x").status_code)
        assert tries[-1] == 429
        assert service.http("GET", "/v1/health", None).status_code == 200
