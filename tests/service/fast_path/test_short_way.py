"""The short way of a spend: what it takes, and that nobody can tell it from the ordinary one."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from uvicorn.server import ServerState

import residua as rz
from residua.service.auth import tokens
from residua.service.auth.access import Gatekeeper
from residua.service.context import Office, opened
from residua.service.fast_path.short import Head, ShortWay
from residua.service.serving import config
from residua.service.settings import Settings
from service.running import Service, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "httptools")

GAUSSIAN = {"kind": "gaussian", "sigma": 100.0}


@dataclass
class Watched:
    """The short way, and what it took."""

    office: Office
    took: list[bool] = field(default_factory=list)
    parsed: int = 0
    instances: ClassVar[list[Watched]] = []

    def __post_init__(self) -> None:
        self.way = ShortWay(self.office)
        self.instances.append(self)

    def head(self, path: bytes, headers: list[tuple[bytes, bytes]]) -> Any:
        found = self.way.head(path, headers)
        self.parsed += 1
        if found is None:
            self.took.append(False)
        return found

    def begun(self, head: Head, *given: Any) -> Any:
        found = self.way.begun(head, *given)
        self.took.append(found is not None)
        return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, list[bool]]]:
    folder = tmp_path_factory.mktemp("short")
    store, still = f"sqlite:///{folder}/b.db", lambda: 0.0
    # A token that was looked up stays known.
    with serving(store, folder / "anchor", way=Watched, clock=still) as running:
        running.http("GET", "/v1/me", "engine")
        running.http("GET", "/v1/me", "analyst")
        yield running, Watched.instances[-1].took


class Caller:
    """A connection that stays, and says what it sends byte by byte."""

    def __init__(self, service: Service):
        host, _, port = service.url.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._read = self._socket.makefile("rb")
        self._token = service.tokens["engine"]

    def request(self, name: str, body: Any, **headers: str) -> tuple[bytes, bytes]:
        """Head and body of a spend."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        common = {
            "Host": "localhost",
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(raw)),
        }
        named = {**common, **{name.replace("_", "-"): text for name, text in headers.items()}}
        lines = "".join(f"{name}: {text}\r\n" for name, text in named.items())
        return f"POST /v1/budgets/{name}/spend HTTP/1.1\r\n{lines}\r\n".encode(), raw

    def send(self, *pieces: bytes, pause: float = 0.02) -> None:
        for place, piece in enumerate(pieces):
            if place:
                time.sleep(pause)  # so that they come apart
            self._socket.sendall(piece)

    def answer(self) -> tuple[int, list[tuple[str, str]], Any]:
        status = int(self._read.readline().split()[1])
        headers = []
        while (line := self._read.readline().decode()) != "\r\n":
            name, _, value = line.rstrip().partition(": ")
            headers.append((name, value))
        content = self._read.read(int(dict(headers)["content-length"]))
        return status, headers, json.loads(content)

    def spend(self, name: str, body: Any, **headers: str) -> tuple[int, list[Any], Any]:
        head, raw = self.request(name, body, **headers)
        self.send(head + raw)
        return self.answer()

    def spend_ordinarily(self, name: str, body: Any, **headers: str) -> tuple[int, list[Any], Any]:
        """The same on the other way: a header that nobody looks at comes twice."""
        head, raw = self.request(name, body, **headers)
        self.send(doubled(head) + raw)
        return self.answer()

    def is_closed(self) -> bool:
        return self._read.read(1) == b""

    def close(self) -> None:
        self._read.close()
        self._socket.close()

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def doubled(head: bytes) -> bytes:
    """A head with a header that is there twice, and so goes the ordinary way."""
    return head[:-2] + b"X-Twice: 1\r\nX-Twice: 2\r\n\r\n"


@pytest.fixture
def caller(watched: tuple[Service, list[bool]]) -> Iterator[Caller]:
    with Caller(watched[0]) as made:
        yield made


@pytest.fixture
def other(watched: tuple[Service, list[bool]]) -> Iterator[Caller]:
    with Caller(watched[0]) as made:
        yield made


def ready(service: Service, name: str, caller: Caller, mechanism: Any = GAUSSIAN) -> None:
    """A new budget, and a query that is known, from others, to be decided at once anywhere."""
    service.budget(name)
    while not service.office.ledger.decides_quickly(name, mechanism):
        another = f"first-{uuid.uuid4().hex[:12]}"
        service.budget(another)
        assert caller.spend(another, {"mechanism": mechanism})[0] == 200


def neutral(found: tuple[int, list[tuple[str, str]], Any], *names: str) -> Any:
    """An answer without what differs between any two of them."""
    text = json.dumps([found[0], found[1], found[2]])
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "NAME")
    text = re.sub(r'"x-request-id", "[0-9a-f]+"', "ID", text)
    text = re.sub(r"urn:residua:request:[0-9a-f]+", "ID", text)
    text = re.sub(r"[0-9a-f]{64}", "HASH", text)
    return re.sub(r"[0-9a-f]{32}", "KEY", text)


SAME: dict[str, list[tuple[dict[str, Any], dict[str, str]]]] = {
    "admitted": [({"mechanism": GAUSSIAN, "key": "k"}, {})],
    "without a key": [({"mechanism": GAUSSIAN}, {})],
    "key in a header": [({"mechanism": GAUSSIAN}, {"Idempotency_Key": "k"})],
    "key in both": [({"mechanism": GAUSSIAN, "key": "k"}, {"Idempotency_Key": "k"})],
    "own id": [({"mechanism": GAUSSIAN, "key": "k"}, {"X_Request_Id": "mine"})],
    "no plain id": [({"mechanism": GAUSSIAN, "key": "k"}, {"X_Request_Id": "mine or not"})],
    "replayed": [({"mechanism": GAUSSIAN, "key": "k"}, {})] * 2,
    "key reused": [
        ({"mechanism": GAUSSIAN, "key": "k"}, {}),
        ({"mechanism": GAUSSIAN, "key": "k", "assume_budget_relation": True}, {}),
    ],
    "key of many letters": [({"mechanism": GAUSSIAN, "key": "schlüssel ✓"}, {})],
    "ends": [({"mechanism": GAUSSIAN, "key": "k"}, {"Connection": "close"})],
}


@pytest.mark.parametrize("case", SAME)
def test_both_ways_say_the_same(
    watched: tuple[Service, list[bool]], caller: Caller, other: Caller, name: str, case: str
) -> None:
    service, took = watched
    short, ordinary = f"{name}-s", f"{name}-o"
    ready(service, short, caller)
    ready(service, ordinary, other)
    took.clear()
    for body, headers in SAME[case]:
        # A key is the caller's own for all budgets.
        keyed = [{**body, **({"key": f"{one}{body['key']}"} if "key" in body else {})}
                 for one in (short, ordinary)]  # fmt: skip
        given = [{h: f"{one}{v}" if h == "Idempotency_Key" else v for h, v in headers.items()}
                 for one in (short, ordinary)]  # fmt: skip
        found = caller.spend(short, keyed[0], **given[0])
        beside = other.spend_ordinarily(ordinary, keyed[1], **given[1])
        assert neutral(found, short) == neutral(beside, ordinary)
    assert took == [True, False] * len(SAME[case])
    if case == "ends":
        assert caller.is_closed() and other.is_closed()


def test_refusals_and_problems_are_the_same(
    watched: tuple[Service, list[bool]], caller: Caller, other: Caller, name: str
) -> None:
    service, took = watched
    large = {"kind": "gaussian", "sigma": 0.5}
    short, ordinary = f"{name}-s", f"{name}-o"
    ready(service, short, caller, large)
    ready(service, ordinary, other, large)
    took.clear()

    def both(key: str) -> int:
        found = caller.spend(short, {"mechanism": large, "key": f"{short}{key}"})
        beside = other.spend_ordinarily(ordinary, {"mechanism": large, "key": f"{ordinary}{key}"})
        assert neutral(found, short) == neutral(beside, ordinary)
        return found[0]

    assert both("refused") == 200
    for one in (short, ordinary):
        path = f"/v1/budgets/{one}/retire"
        assert service.http("POST", path, json={"reason": "over"}).is_success
    assert both("retired") == 409
    # A budget that is not there is met at the gate: the query is known to be quick anywhere.
    short, ordinary = f"{name}-x", f"{name}-y"
    assert both("none") == 404
    assert took == [True, False] * 3


UNUSUAL: dict[str, tuple[Any, dict[str, str], int]] = {
    "no JSON": (b"{", {}, 400),
    "NaN": (b'{"mechanism": {"kind": "gaussian", "sigma": NaN}, "key": "k"}', {}, 400),
    "doubled": (b'{"mechanism": {"kind": "gaussian", "sigma": 1.0, "sigma": 2.0}}', {}, 400),
    "not a field": ({"mechanism": GAUSSIAN, "also_this": 1}, {}, 422),
    "no mechanism": ({"mechanism": {"kind": "gaussian", "sigma": -1.0}}, {}, 422),
    "no type": ({"mechanism": GAUSSIAN}, {"Content_Type": "text/plain"}, 415),
    "no token": ({"mechanism": GAUSSIAN}, {"Authorization": "Bearer nobody"}, 401),
    "two keys": ({"mechanism": GAUSSIAN, "key": "k"}, {"Idempotency_Key": "other"}, 422),
    "no key": ({"mechanism": GAUSSIAN}, {"Idempotency_Key": "k" * 201}, 422),
    "large": (b" " * 300_000, {}, 413),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_what_is_not_in_order_goes_the_ordinary_way(
    watched: tuple[Service, list[bool]], caller: Caller, name: str, case: str
) -> None:
    service, took = watched
    ready(service, name, caller)
    took.clear()
    body, headers, status = UNUSUAL[case]
    assert caller.spend(name, body, **headers)[0] == status
    assert not any(took)


def test_slow_queries_and_others_roles_go_the_ordinary_way(
    watched: tuple[Service, list[bool]], caller: Caller, name: str
) -> None:
    service, took = watched
    service.budget(name)
    took.clear()
    never = {"kind": "gaussian", "sigma": 100.0 + len(name) + time.time() % 1}
    assert caller.spend(name, {"mechanism": never})[0] == 200
    assert took == [False], "a query that is new may take long"
    while not service.office.ledger.decides_quickly(name, never):
        assert caller.spend(name, {"mechanism": never})[0] == 200
    took.clear()
    assert caller.spend(name, {"mechanism": never})[0] == 200
    analyst = {"Authorization": f"Bearer {service.tokens['analyst']}"}
    assert caller.spend(name, {"mechanism": never}, **analyst)[0] == 403
    assert took == [True, False]


def test_what_is_left_beside_a_hold_takes_time(
    watched: tuple[Service, list[bool]], caller: Caller, other: Caller, name: str
) -> None:
    """It is worked out in another thread, and the answer is the same."""
    service, took = watched
    names = f"{name}-s", f"{name}-o"
    for one in names:
        ready(service, one, caller)
        held = service.http("POST", f"/v1/budgets/{one}/reserve", json={"mechanism": GAUSSIAN})
        assert held.is_success
    took.clear()
    short = caller.spend(names[0], {"mechanism": GAUSSIAN, "key": f"{names[0]}-k"})
    beside = other.spend_ordinarily(names[1], {"mechanism": GAUSSIAN, "key": f"{names[1]}-k"})
    assert neutral(short, *names) == neutral(beside, *names)
    assert took == [True, False] and short[0] == 200


def test_in_pieces_of_a_byte(
    watched: tuple[Service, list[bool]], caller: Caller, name: str
) -> None:
    service, _ = watched
    ready(service, name, caller)
    whole = b"".join(caller.request(name, {"mechanism": GAUSSIAN, "key": f"{name}-slow"}))
    caller.send(*(whole[place : place + 1] for place in range(len(whole))), pause=0.0005)
    status, _, said = caller.answer()
    assert status == 200 and said["admitted"] and not said["replayed"]


def test_pipelined_requests_are_answered_in_order(
    watched: tuple[Service, list[bool]], caller: Caller, name: str
) -> None:
    service, took = watched
    ready(service, name, caller)
    took.clear()
    keys = [f"{name}-{place}" for place in range(5)]
    asked = [b"".join(caller.request(name, {"mechanism": GAUSSIAN, "key": key})) for key in keys]
    caller.send(b"".join(asked))
    assert [caller.answer()[2]["key"] for _ in keys] == keys
    assert took == [True], "those behind another wait their turn"
    # The same with the last one cut in two, and then one by itself again.
    caller.send(asked[0] + asked[1][:-7], asked[1][-7:])
    assert [caller.answer()[2]["key"] for _ in range(2)] == keys[:2]
    assert caller.spend(name, {"mechanism": GAUSSIAN, "key": f"{name}-end"})[0] == 200
    assert took == [True, True, True]


def test_a_head_that_came_before_is_not_parsed_again(
    watched: tuple[Service, list[bool]], caller: Caller, other: Caller, name: str
) -> None:
    service, took = watched
    seen = Watched.instances[-1]
    ready(service, name, caller)
    ready(service, f"{name}-x", caller)
    before, heads = seen.parsed, [{}, {"Accept": "*/*"}, {"X_A": "1"}, {"X_A": "22"}]
    took.clear()

    def spend(by: Caller, key: str, **headers: str) -> None:
        body = {"mechanism": GAUSSIAN, "key": f"{name}-{key}"}
        status, answered, said = by.spend(name, body, **headers)
        assert (status, said["key"], said["replayed"]) == (200, body["key"], False)
        # Of its own connection alone, and of one request alone is what names it.
        given = headers.get("X_Request_Id")
        assert given is None or dict(answered)["x-request-id"] == given

    for turn in range(3):
        for place, headers in enumerate(heads):
            spend(caller, f"{turn}-{place}", **headers)
    assert took == [True] * 12 and seen.parsed == before + len(heads)
    spend(other, "o-0")
    assert seen.parsed == before + len(heads) + 1
    for place in range(2):
        spend(caller, f"i-{place}", X_Request_Id=f"i-{place}")
    for place in range(2):
        spend(caller, f"n-{place}", X_Request_Id="same")
    assert seen.parsed == before + len(heads) + 5 and all(took)
    # A known head and another body: shorter, longer, in pieces, or with a request behind it.
    parsed = seen.parsed
    head, body = caller.request(name, {"mechanism": GAUSSIAN, "key": f"{name}-0-0"})
    longer, more = caller.request(name, {"mechanism": GAUSSIAN, "key": f"{name}-0-0-longer"})
    caller.send(head + body[:-1], body[-1:])
    assert caller.answer()[2]["replayed"]
    caller.send(head + body + longer + more)
    assert caller.answer()[2]["replayed"] and caller.answer()[2]["key"].endswith("longer")
    caller.send(longer + more)
    assert caller.answer()[2]["replayed"]
    assert seen.parsed > parsed
    wrong = bytearray(body)
    wrong[0:1] = b"["
    caller.send(head + bytes(wrong))
    assert caller.answer()[0] == 400
    for place in range(20):  # more than are remembered
        spend(caller, f"m-{place}", X_A="1" * place)
    spend(caller, "end")


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_no_request_is_not_the_answer_to_a_spend(
    watched: tuple[Service, list[bool]], caller: Caller, name: str, apart: bool
) -> None:
    service, took = watched
    ready(service, name, caller)
    took.clear()
    asked = b"".join(caller.request(name, {"mechanism": GAUSSIAN, "key": f"{name}-k"}))
    pieces = (asked, b"\0\r\n\r\n")
    caller.send(*(pieces if apart else [b"".join(pieces)]), pause=0.0)
    status, headers, said = caller.answer()
    assert status == 200 and said["key"] == f"{name}-k" and took == [True]
    assert apart or (("connection", "close") in headers and caller.is_closed())


def test_who_goes_away_has_spent(
    watched: tuple[Service, list[bool]], caller: Caller, name: str
) -> None:
    service, took = watched
    ready(service, name, caller)
    took.clear()
    for place in range(3):
        with Caller(service) as gone:
            head, body = gone.request(name, {"mechanism": GAUSSIAN, "key": f"{name}-gone-{place}"})
            gone.send(head + body)
    deadline = time.monotonic() + 20
    metrics = service.office.metrics
    while (metrics.in_flight or len(took) < 3) and time.monotonic() < deadline:
        time.sleep(0.005)
    kept = {record.key for record in service.office.ledger.history(name)}
    assert {f"{name}-gone-{place}" for place in range(3)} <= kept
    assert metrics.in_flight == 0 and took == [True] * 3


def test_counts_are_those_of_the_ordinary_way(
    watched: tuple[Service, list[bool]], caller: Caller, name: str
) -> None:
    service, took = watched
    ready(service, name, caller)

    def counted() -> dict[str, float]:
        lines = service.office.metrics.text().decode().splitlines()
        found = (line.rpartition(" ") for line in lines if "spend" in line)
        return {text: float(value) for text, _, value in found if "_sum" not in text}

    def added(send: Any) -> dict[str, float]:
        before = counted()
        send()
        caller.answer()
        deadline = time.monotonic() + 20
        while counted() == before and time.monotonic() < deadline:
            time.sleep(0.005)
        after = counted()
        return {
            text: value - before.get(text, 0.0)
            for text, value in after.items()
            if "bucket" not in text or "+Inf" in text
        }

    head, body = caller.request(name, {"mechanism": GAUSSIAN})
    took.clear()
    short = added(lambda: caller.send(head + body))
    assert took == [True]
    assert short == added(lambda: caller.send(doubled(head) + body))
    assert sum(short.values()) == 4 and took == [True, False]


def test_the_line_in_the_log_is_the_same(
    watched: tuple[Service, list[bool]],
    caller: Caller,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service, _ = watched
    ready(service, name, caller)
    caplog.set_level("INFO", logger="residua.service")
    head, body = caller.request(name, {"mechanism": GAUSSIAN}, X_Request_Id="seen")
    for sent in (head + body, doubled(head) + body):
        caller.send(sent)
        caller.answer()
    deadline = time.monotonic() + 20
    lines: list[dict[str, Any]] = []
    while len(lines) < 2 and time.monotonic() < deadline:
        facts = [getattr(record, "facts", {}) for record in caplog.records]
        lines = [each for each in facts if each.get("request") == "seen"]
        time.sleep(0.005)
    first, second = ({k: v for k, v in each.items() if k != "ms"} for each in lines)
    assert first == second
    assert first["by"] == "engine" and first["status"] == 200


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_old_clients_are_answered_and_let_go(
    watched: tuple[Service, list[bool]], caller: Caller, name: str, version: str
) -> None:
    service, _ = watched
    ready(service, name, caller)
    head, body = caller.request(name, {"mechanism": GAUSSIAN})
    caller.send(head.replace(b"HTTP/1.1", f"HTTP/{version}".encode()) + body)
    status, headers, _ = caller.answer()
    assert status == 200
    assert (("connection", "close") in headers) == (version == "1.0")
    assert version == "1.1" or caller.is_closed()


def test_who_does_not_read_is_not_written_to(tmp_path: Path) -> None:
    """While the other side is not reading, an answer waits; a shutdown that is over says so."""
    settings = Settings(store=f"sqlite:///{tmp_path}/b.db", rate=0.0)
    ledger = rz.open_ledger(settings.store, anchor=tmp_path / "anchor")
    ledger.create_budget("web", rz.GdpResidueFilter(mu=1.0))
    while not ledger.decides_quickly("web", GAUSSIAN):
        ledger.spend("web", GAUSSIAN)
    office = opened(settings, ledger)
    office = replace(office, gatekeeper=Gatekeeper(office.tokens.find, False, lambda: 0.0))
    made, token = tokens.made("engine")
    office.tokens.add(made)
    office.gatekeeper.caller(f"Bearer {token}")
    body = json.dumps({"mechanism": GAUSSIAN}).encode()
    request = (
        f"POST /v1/budgets/web/spend HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body

    async def work() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        settled = config(office)
        settled.load()
        state = ServerState()
        _, connection = await loop.connect_accepted_socket(
            lambda: settled.http_protocol_class(config=settled, server_state=state, app_state={}),
            ours,
        )
        reader, writer = await asyncio.open_connection(sock=theirs)
        connection.pause_writing()
        writer.write(request)
        while not connection.cycle or office.metrics.in_flight:
            await asyncio.sleep(0.005)
        assert not connection.cycle.response_complete and len(state.tasks) == 1
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        connection.resume_writing()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
        # Told to stop: what is being answered ends its connection; what takes too long is given up.
        writer.write(request)
        while connection.cycle.response_complete:
            await asyncio.sleep(0)
        connection.shutdown()
        (waiting,) = state.tasks
        waiting.cancel()
        rest = await reader.read()
        assert b"HTTP/1.1 500 " in rest and b"connection: close\r\n" in rest
        assert not state.tasks and office.metrics.in_flight == 0
        writer.close()

    try:
        asyncio.run(work())
    finally:
        office.close()
