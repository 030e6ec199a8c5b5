"""A network and a service that fail: nothing is spent twice, and nobody is told a wrong outcome."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import residua as rz
from residua.errors import OutcomeUnknown, ServiceError, StoreUnavailable
from residua.service.auth import tokens
from residua.service.auth.token_store import TokenStore
from residua.service.client.calls import RETRY_FOR, Answered, Attempts, Call, Failed, Retries
from service.client.test_client import message
from service.running import LAPLACE, Service, process

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

Fault = Callable[[socket.socket, bytes], None]
"""What happens to an answer instead of being sent."""


def reset(near: socket.socket, answer: bytes) -> None:
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def half(near: socket.socket, answer: bytes) -> None:
    near.sendall(answer[: len(answer) - 20])


def gateway(near: socket.socket, answer: bytes) -> None:
    near.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\n<html")


def failure(near: socket.socket, answer: bytes) -> None:
    near.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")


def nonsense(near: socket.socket, answer: bytes) -> None:
    near.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html")


FAULTS: dict[str, Fault] = {
    "reset": reset,
    "half": half,
    "gateway": gateway,
    "failure": failure,
    "nonsense": nonsense,
}


@contextmanager
def faulty(service: Service, faults: list[Fault | None], refuse: bool = False) -> Iterator[str]:
    """A proxy in front of a service: the first answers meet these faults.

    With `refuse`, nothing listens any more once the faults are over.
    """
    host, _, port = service.url.removeprefix("http://").partition(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def one(near: socket.socket) -> None:
        with near, socket.create_connection((host, int(port))) as far:
            while sent := message(near):
                far.sendall(sent)
                answer = message(far)
                fault = faults.pop(0) if faults else None
                if fault is None:
                    near.sendall(answer)
                    continue
                if refuse and not faults:
                    listener.shutdown(socket.SHUT_RDWR)
                    listener.close()
                fault(near, answer)
                return

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            Thread(target=one, args=(near,), daemon=True).start()

    thread = Thread(target=accept, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield url
    finally:
        if listener.fileno() >= 0:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        thread.join()


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
    with faulty(service, [FAULTS[fault], FAULTS[fault]]) as url:
        receipt = spend(url, service.tokens["engine"], name)
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
        faulty(service, [FAULTS[fault]], refuse=True) as url,
        pytest.raises(OutcomeUnknown, match=f"ask again with the key '{key}'") as caught,
    ):
        spend(url, token, name, key=key, attempts=2)
    assert "nothing was spent" not in str(caught.value)
    assert charged(service, name) == 1
    again = spend(service.url, token, name, key=key)
    assert again.admitted and again.replayed, "the same key tells"


def test_a_problem_after_a_lost_answer_is_an_unknown_outcome(service: Service, name: str) -> None:
    """A token that was revoked meanwhile says nothing of the spend before."""
    service.budget(name)
    denied = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    faults: list[Fault | None] = [reset, lambda near, answer: near.sendall(denied)]
    with (
        faulty(service, faults) as url,
        rz.Client(url, service.tokens["engine"]) as client,
        pytest.raises(OutcomeUnknown),
    ):
        client.spend(name, LAPLACE, key=f"{name}-k")
    assert charged(service, name) == 1


def test_what_carries_no_key_is_not_repeated(service: Service, name: str) -> None:
    token = service.tokens["admin"]
    for place, fault in enumerate(FAULTS.values()):
        there = f"{name}-{place}"
        with faulty(service, [fault]) as url, rz.Client(url, token) as client:
            with pytest.raises(OutcomeUnknown, match="look before you repeat"):
                client.create_budget(there, rz.PureFilter(eps=1.0))
            assert client.budget(there).seq == 0


def test_reading_has_no_outcome(service: Service, name: str) -> None:
    service.budget(name)
    token = service.tokens["admin"]
    with (
        faulty(service, [reset], refuse=True) as url,
        rz.Client(url, token, attempts=2) as client,
        pytest.raises(StoreUnavailable),
    ):
        client.check(name, LAPLACE)
    with (
        faulty(service, [nonsense]) as url,
        rz.Client(url, token) as client,
        pytest.raises(ServiceError, match="not the budget service"),
    ):
        client.budget(name)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_spend_outlives_a_restart(tmp_path: Path, end: signal.Signals) -> None:
    """The service is killed with spends in flight and comes back seconds later at its address."""
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("web", rz.PureFilter(eps=500.0))
        made, token = tokens.made("engine", principal="engine")
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
from residua.service.client import verbs
made = [verbs.spend("web", rz.laplace(scale=4.0), None, False) for _ in range(2)]
child = os.fork()
os.write(1, f"{next(made[0]).key}\\n".encode())
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
    host, _, port = service.url.removeprefix("http://").partition(":")
    opened = []
    listener = socket.create_server(("127.0.0.1", 0))

    def relay() -> None:
        near, _ = listener.accept()
        opened.append(near)
        with near, socket.create_connection((host, int(port))) as far:
            while sent := message(near):
                far.sendall(sent)
                near.sendall(message(far))

    thread = Thread(target=relay, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with listener, rz.Client(url, service.tokens["engine"]) as client:
        for _ in range(5):
            client.spend(name, rz.laplace(scale=400.0))
    thread.join()
    assert len(opened) == 1


def test_a_proxy_is_used(service: Service, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, or of the environment; it sees the whole address."""
    service.budget(name)
    seen: list[bytes] = []
    host, _, port = service.url.removeprefix("http://").partition(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def relay() -> None:
        for _ in range(2):
            near, _ = listener.accept()
            with near, socket.create_connection((host, int(port))) as far:
                while sent := message(near):
                    seen.append(sent.split(b"\r\n", 1)[0])
                    far.sendall(sent.replace(b"http://budgets.example", b"", 1))
                    near.sendall(message(far))

    thread = Thread(target=relay, daemon=True)
    thread.start()
    proxy, token = f"http://127.0.0.1:{listener.getsockname()[1]}", service.tokens["engine"]
    with listener:
        with rz.Client("http://budgets.example", token, proxy=proxy) as client:
            assert client.spend(name, LAPLACE).admitted
        monkeypatch.setenv("HTTP_PROXY", proxy)
        with rz.Client("http://budgets.example", token) as client:
            assert client.spend(name, LAPLACE).admitted
    thread.join()
    assert seen == 2 * [f"POST http://budgets.example/v1/budgets/{name}/spend HTTP/1.1".encode()]
    with pytest.raises(ValueError, match="proxy must be"):
        rz.Client("http://a", proxy="nonsense://x:y")


@pytest.mark.parametrize("seed", range(3))
def test_a_history_through_a_network_that_cuts_answers(
    service: Service, name: str, seed: int
) -> None:
    """What callers were told, compared with what was recorded: once each, and nothing else."""
    service.budget(name, filter={"kind": "pure", "eps": 0.3})
    chance = random.Random(seed)
    faults = [
        chance.choice([None, None, reset, half, gateway, nonsense, failure]) for _ in range(120)
    ]
    told: list[rz.Receipt] = []
    unknown: list[str] = []

    def work(place: int) -> None:
        with rz.Client(url, service.tokens["engine"]) as client:
            for turn in range(12):
                key = f"{name}-{place}-{turn}"
                try:
                    told.append(client.spend(name, rz.mechanisms.PureDp(eps=0.01), key=key))
                except OutcomeUnknown as error:
                    assert key in str(error)
                    unknown.append(key)

    with faulty(service, faults) as url:
        threads = [Thread(target=work, args=(place,)) for place in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(told) + len(unknown) == 48
    records = [one for one in service.office.ledger.history(name) if one.type == "spend"]
    kept = {one.key: one for one in records}
    assert len(kept) == len(records), "no key was recorded twice"
    assert all(kept[one.key].hash == one.head for one in told)
    assert all(kept[one.key].admitted is one.admitted for one in told)
    assert set(kept) <= {one.key for one in told} | set(unknown)
    assert sum(one.admitted is True for one in records) == 30
    with service.client("engine") as client:
        for key in unknown:
            again = client.spend(name, rz.mechanisms.PureDp(eps=0.01), key=key)
            assert again.replayed is (key in kept), "the key tells"
