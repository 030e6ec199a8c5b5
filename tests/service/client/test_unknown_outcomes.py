"""A network and a service that fail: nothing is spent twice, and nobody is told a wrong outcome."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import residua as rz
from residua.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from residua.service import auth
from residua.service.auth import TokenStore
from residua.service.client.calls import RETRY_FOR, Answered, Attempts, Call, Failed, Retries
from service.proxy import FAULTS, instead, nonsense, proxied, reset
from service.running import LAPLACE, Service, process

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")


def charged(service: Service, name: str) -> int:
    return int(service.http("GET", f"/v1/budgets/{name}").json()["seq"])


def spend_awaited(url: str, token: str, name: str, **options: Any) -> rz.Receipt:
    async def work() -> rz.Receipt:
        key = options.pop("key", None)
        async with rz.AsyncClient(url, token, **options) as client:
            return await client.spend(name, LAPLACE, key=key)

    return asyncio.run(work())


def spend_waiting(url: str, token: str, name: str, **options: Any) -> rz.Receipt:
    key = options.pop("key", None)
    with rz.Client(url, token, **options) as client:
        return client.spend(name, LAPLACE, key=key)


SPENDS = {"waiting": spend_waiting, "awaited": spend_awaited}


@pytest.mark.parametrize("spend", SPENDS.values(), ids=SPENDS)
@pytest.mark.parametrize("fault", ["reset", "half", "gateway"])
def test_a_lost_answer_is_asked_for_again(
    service: Service, name: str, fault: str, spend: Callable[..., rz.Receipt]
) -> None:
    service.budget(name)
    with proxied(service.url, [FAULTS[fault], FAULTS[fault]]) as proxy:
        receipt = spend(proxy.url, service.tokens["engine"], name)
    assert receipt.admitted and receipt.replayed
    assert charged(service, name) == 1


@pytest.mark.parametrize("spend", SPENDS.values(), ids=SPENDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_lost_answer_nothing_but_an_unknown_outcome(
    service: Service, name: str, fault: str, spend: Callable[..., rz.Receipt]
) -> None:
    """The last attempt is refused a connection: nothing was spent by that one."""
    service.budget(name)
    key, token = f"{name}-k", service.tokens["engine"]
    with (
        proxied(service.url, [FAULTS[fault]], refuse=True) as proxy,
        pytest.raises(OutcomeUnknown, match=f"repeat the call with the key '{key}'") as caught,
    ):
        spend(proxy.url, token, name, key=key, attempts=2)
    assert "nothing was spent" not in str(caught.value)
    assert charged(service, name) == 1
    again = spend(service.url, token, name, key=key)
    assert again.admitted and again.replayed, "the same key tells"


def test_a_problem_after_a_lost_answer_is_an_unknown_outcome(service: Service, name: str) -> None:
    """A token that was revoked meanwhile says nothing of the spend before."""
    service.budget(name)
    denied = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    faults = [reset, instead(denied)]
    with (
        proxied(service.url, faults) as proxy,
        rz.Client(proxy.url, service.tokens["engine"]) as client,
        pytest.raises(OutcomeUnknown),
    ):
        client.spend(name, LAPLACE, key=f"{name}-k")
    assert charged(service, name) == 1


def test_what_carries_no_key_is_not_repeated(service: Service, name: str) -> None:
    token = service.tokens["admin"]
    for place, fault in enumerate(FAULTS.values()):
        there = f"{name}-{place}"
        with proxied(service.url, [fault]) as proxy, rz.Client(proxy.url, token) as client:
            with pytest.raises(OutcomeUnknown, match="check before you repeat"):
                client.create_budget(there, rz.PureFilter(eps=1.0))
            assert client.budget(there).seq == 0


def test_reading_has_no_outcome(service: Service, name: str) -> None:
    service.budget(name)
    token = service.tokens["admin"]
    with (
        proxied(service.url, [reset], refuse=True) as proxy,
        rz.Client(proxy.url, token, attempts=2) as client,
        pytest.raises(StoreUnavailable),
    ):
        client.check(name, LAPLACE)
    with (
        proxied(service.url, [nonsense]) as proxy,
        rz.Client(proxy.url, token) as client,
        pytest.raises(ServiceError, match="not come from a budget service"),
    ):
        client.budget(name)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_spend_outlives_a_restart(tmp_path: Path, end: signal.Signals) -> None:
    """The service is killed with spends in flight and comes back seconds later at its address."""
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("web", rz.PureFilter(eps=500.0))
        made, token = auth.new_token("engine", principal="engine")
        TokenStore(ledger).add(made)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, query = f"http://127.0.0.1:{port}", rz.mechanisms.PureDp(eps=0.001)
    found: list[rz.Receipt] = []
    errors: list[Exception] = []
    stop = [False]

    def work() -> None:
        with rz.Client(url, token) as client:
            while not stop[0]:
                try:
                    found.append(client.spend("web", query))
                except StoreUnavailable:
                    time.sleep(0.05)  # it surely spent nothing
                except Exception as error:
                    errors.append(error)

    with process(store, anchor, port=port) as first:
        assert first.url == url
        threads = [Thread(target=work) for _ in range(4)]
        for one in threads:
            one.start()
        deadline = time.monotonic() + 60
        while len(found) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        first.child.send_signal(end)
        first.child.wait(60)
    time.sleep(1.5)
    before = len(found)
    with process(store, anchor, port=port) as second:
        assert second.url == url
        deadline = time.monotonic() + 60
        while len(found) < before + 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        stop[0] = True
        for one in threads:
            one.join()
    assert not errors and len(found) >= before + 20
    with rz.open_ledger(store, anchor=anchor) as ledger:
        kept = [record.key for record in ledger.history("web") if record.type == "spend"]
    assert sorted(kept) == sorted(one.key for one in found), "each was spent once, and answered"


KEYS = """
import os, sys
import residua as rz
class Keys(rz.Client):
    def _run(self, steps):
        return next(iter(steps)).key
client = Keys("http://budgets.example")
child = os.fork()
key = client.spend("web", rz.laplace(scale=4.0))
os.write(1, f"{key}\\n".encode())
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_clone_makes_keys_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, timeout=60)
    first, second = done.stdout.split()
    assert first != second, done.stderr


def unsure(status: int, kind: str | None) -> Answered:
    body = {} if kind is None else {"type": f"urn:residua:problem:{kind}", "detail": "x"}
    return Answered(status, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("outcome", "known"),
    [
        (unsure(503, "store-unavailable"), True),
        (unsure(503, "overloaded"), True),
        (unsure(503, "shutting-down"), True),
        (unsure(429, "too-many-requests"), True),
        (unsure(422, "argument-error"), True),
        (Failed(OSError("refused"), arrived=False), True),
        (unsure(503, "outcome-unknown"), False),
        (unsure(500, "internal-error"), False),
        (unsure(503, None), False),
        (unsure(504, None), False),
        (Failed(OSError("reset"), arrived=True), False),
    ],
)
def test_what_an_attempt_tells(outcome: Answered | Failed, known: bool) -> None:
    """Whatever the last attempt of several says, the worst one counts."""
    refused = Failed(OSError("refused"), arrived=False)
    call = Call("POST", "/spend", lambda data: data, {}, key="k", writes=True)
    attempts = Attempts(call, "http://a", Retries(attempts=2))
    attempts.pause(outcome)
    attempts.pause(refused)
    with pytest.raises(StoreUnavailable if known else OutcomeUnknown) as caught:
        attempts.result(refused)
    assert ("nothing was spent" in str(caught.value)) is known


def test_an_unknown_outcome_is_asked_for_until_a_restart_is_over() -> None:
    now = [0.0]
    call = Call("POST", "/spend", lambda data: data, {}, key="k", writes=True)
    for first, least, most in ((True, 0.8 * RETRY_FOR, RETRY_FOR), (False, 0.0, 5.0)):
        now[0] = 0.0
        attempts = Attempts(call, "http://a", Retries(), clock=lambda: now[0])
        outcome = Failed(OSError("x"), arrived=first)
        while (pause := attempts.pause(outcome)) is not None:
            now[0] += pause
            outcome = Failed(OSError("refused"), arrived=False)
        assert least <= now[0] <= most


def test_connections_are_used_again_and_awaited_calls_run_together(
    service: Service, name: str
) -> None:
    service.budget(name)
    threads: set[str] = set()

    async def work() -> None:
        from threading import enumerate as every

        async with rz.AsyncClient(service.url, service.tokens["engine"], connections=4) as client:
            await asyncio.gather(*(client.spend(name, rz.laplace(scale=400.0)) for _ in range(24)))
            threads.update(one.name for one in every())

    asyncio.run(work())
    assert not [one for one in threads if "client" in one], "it needs no threads"
    assert charged(service, name) == 24
    with proxied(service.url) as proxy, rz.Client(proxy.url, service.tokens["engine"]) as client:
        for _ in range(5):
            client.spend(name, rz.laplace(scale=400.0))
    assert proxy.connections == 1 and len(proxy.requests) == 5


def test_a_proxy_is_used(service: Service, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, or of the environment; it sees the whole address."""
    service.budget(name)
    token = service.tokens["engine"]
    with proxied(service.url) as proxy:
        with rz.Client("http://budgets.example", token, proxy=proxy.url) as client:
            assert client.spend(name, LAPLACE).admitted
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with rz.Client("http://budgets.example", token) as client:
            assert client.spend(name, LAPLACE).admitted
    line = f"POST http://budgets.example/v1/budgets/{name}/spend HTTP/1.1".encode()
    assert proxy.requests == [line, line]
    with pytest.raises(ValueError, match="proxy must be"):
        rz.Client("http://a", proxy="nonsense://x:y")
