"""What is done with every spend, beside the slow way of doing it."""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

import residua as rz
from residua.errors import KeyReused, ResiduaError, UnsupportedError
from residua.filters.describe import as_mechanism
from residua.filters.query import described
from residua.ledger.domain.receipts import plain
from residua.service.api import models
from residua.service.api.reading import parsed, validated
from residua.service.client.wire import Wire, common
from residua.service.dispatch import _settle, query_of
from residua.service.fast_path.bodies import Bodies, Spend
from residua.service.metrics import SECONDS, Counts, Times
from residua.service.middleware import encoded
from residua.service.problems import Problem

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "prometheus_client")

TEXTS = st.text(st.sampled_from('abk"{}[],: \\é\u2028'), max_size=8)
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.booleans(), TEXTS
)
MECHANISMS = st.one_of(
    st.builds(lambda sigma: {"kind": "gaussian", "sigma": sigma}, VALUES),
    st.builds(lambda scale: {"kind": "laplace", "scale": scale}, st.floats(0.5, 100.0)),
    st.builds(lambda eps: {"kind": "pure_dp", "eps": eps, "steps": 2}, st.floats(0.01, 1.0)),
    st.dictionaries(TEXTS, VALUES, max_size=2),
    st.dictionaries(TEXTS, st.dictionaries(TEXTS, VALUES, max_size=1), max_size=1),
)
KEYS = st.one_of(st.none(), TEXTS, st.text("ab.:-_9", min_size=1, max_size=5))
BODIES = st.builds(
    lambda mechanism, key, tight, ascii: json.dumps(
        {"mechanism": mechanism, "key": key},
        separators=(",", ":") if tight else None,
        ensure_ascii=ascii,
    ).encode(),
    MECHANISMS,
    KEYS,
    st.booleans(),
    st.booleans(),
)
BROKEN = st.builds(
    lambda raw, place, put: raw[: place % len(raw)] + put + raw[place % len(raw) + 1 :],
    BODIES,
    st.integers(0, 200),
    st.sampled_from([b"", b"{", b"}", b'"', b"\\", b"\xff", b", ", b"NaN", b'"kind": 1,']),
)


def in_full(raw: bytes) -> Any:
    ask = validated(models.Ask, parsed(raw))
    query = query_of(ask.mechanism)
    return Spend(query, ask.key, tuple(ask.also), ask.assume_budget_relation)


def outcome(read: Any, raw: bytes) -> Any:
    try:
        return read(raw)
    except (Problem, ResiduaError) as error:
        return type(error), str(error)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(BODIES, BROKEN), min_size=1, max_size=4))
def test_bodies_that_came_before_say_the_same(raws: list[bytes]) -> None:
    bodies = Bodies()
    for raw in raws * 2:
        assert outcome(bodies.read, raw) == outcome(in_full, raw)


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 1e3), st.floats(1e-3, 1e3), st.integers(1, 3))
def test_what_is_left_is_said_as_of_a_mechanism(sigma: float, mu: float, n: int) -> None:
    for one in (
        rz.gaussian(mu=mu),
        rz.gaussian(sigma=sigma),
        rz.gaussian(sigma=sigma, sensitivity=mu),
        n * rz.gaussian(mu=mu),
        rz.gaussian(mu=mu) + rz.laplace(scale=sigma),
        rz.gaussian(mu=mu) + rz.gaussian(sigma=sigma),
    ):
        slow = {**as_mechanism(one).to_dict(), "text": described(one)}
        assert list(plain(one).items()) == list(slow.items())


def test_every_error_reaches_its_caller_and_those_behind_it() -> None:
    errors = [
        rz.MissingPackage("reading it", "flint"),
        UnsupportedError("no", culprit=3),
        KeyReused("the key 'k' came before"),
        KeyError("k"),
    ]

    async def work() -> list[Any]:
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in errors]
        _settle(list(zip(futures, errors, strict=True)))
        return await asyncio.gather(*futures, return_exceptions=True)

    for found, error in zip(asyncio.run(work()), errors, strict=True):
        assert type(found) is type(error) and str(found) == str(error)
        assert vars(found) == vars(error)


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.text(), inner), st.tuples(inner, inner)
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_answers_are_encoded_as_by_the_library(value: Any) -> None:
    assert encoded(value).decode() == json.dumps(value, separators=(",", ":"), allow_nan=False)


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [-math.inf]}])
def test_no_answer_has_what_json_has_not(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encoded(value)


SAMPLES = st.lists(
    st.tuples(
        st.sampled_from(["/v1/a", 'b"\n']),
        st.sampled_from(["200", "404"]),
        st.one_of(st.sampled_from(SECONDS), st.floats(0.0, 20.0)),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(SAMPLES)
def test_counts_read_out_as_those_of_the_library(samples: list[tuple[str, str, float]]) -> None:
    theirs, ours = CollectorRegistry(), CollectorRegistry()
    counter = Counter("n", "How many.", ("route", "status"), registry=theirs)
    histogram = Histogram("s", "How long.", ("route",), buckets=SECONDS, registry=theirs)
    counts, times = Counts("n", "How many.", ("route", "status")), Times("s", "How long.", "route")
    ours.register(counts)
    ours.register(times)
    for route, status, seconds in samples:
        counter.labels(route, status).inc()
        histogram.labels(route).observe(seconds)
        counts.add(route, status)
        times.add(route, seconds)
    assert generate_latest(ours) == generate_latest(theirs)


# -- the wire -----------------------------------------------------------------------------------

ANSWERS = {
    "whole": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nRetry-After: 3\r\n\r\nhello",
    "empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    "closes": b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    "old": b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "old but stays": b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\ncontent-length: 2\r\n\r\nok",
    "to the end": b"HTTP/1.1 200 OK\r\n\r\nall that comes",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n"
    b"0123456789\r\n0\r\nTrailer: 1\r\n\r\n",
    "after others": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 \r\ncontent-length: 1\r\n\r\n!",
    "no reason": b"HTTP/1.1 404\r\ncontent-length: 0\r\n\r\n",
    "nothing": b"",
    "no status": b"SSH-2.0-x\r\n",
    "cut in the body": b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell",
    "cut in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
    "cut between chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "no number": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "a long line": b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 120 + b"\r\n",
}

NO_ANSWERS = {
    "cut in the head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "cut behind a header": b"HTTP/1.1 200 OK\r\na: b\r\n",
    "no number": b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok",
    "beyond all sizes": b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\nok",
    "less than nothing": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n\r\n",
    "a number of Python": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0x2\r\nok\r\n0\r\n\r\n",
}
"""What the library takes for an answer, or fails on with any exception."""


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server that says these bytes to everyone who has sent a request, and leaves."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as reader:
                    head = b""
                    while (line := reader.readline()) not in (b"\r\n", b""):
                        head += line
                    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
                    heard.append(head + reader.read(int(length or 0)))
                    connection.sendall(answer)

        thread = Thread(target=work, daemon=True)
        thread.start()
        yield listener.getsockname()[1], heard
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def by_library(port: int, method: str, body: bytes | None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, "/x?y=1", body, {"A": "b"})
        response = connection.getresponse()
        found = response.read()
        told = response.headers.get("retry-after")
        return response.status, found, told, connection.sock is not None
    finally:
        connection.close()


def by_wire(port: int, method: str, body: bytes | None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.connect()
    wire = Wire(connection)
    try:
        got = wire.ask(method, "/x?y=1", common(f"http://127.0.0.1:{port}", {"A": "b"}), body)
        told = got.headers.get(b"retry-after")
        return got.status, got.content, told.decode() if told else None, wire.is_open
    finally:
        wire.close()


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_are_read_as_by_the_library(case: str) -> None:
    with answering(ANSWERS[case]) as (port, _):
        try:
            expected: Any = by_library(port, "POST", b"{}")
        except (OSError, http.client.HTTPException) as error:
            expected = type(error)
        try:
            found: Any = by_wire(port, "POST", b"{}")
        except (OSError, http.client.HTTPException) as error:
            found = type(error)
    assert found == expected


@pytest.mark.parametrize("case", NO_ANSWERS)
def test_what_is_no_answer_is_not_taken_for_one(case: str) -> None:
    with answering(NO_ANSWERS[case]) as (port, _), pytest.raises(http.client.HTTPException):
        by_wire(port, "POST", b"{}")


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", b'{"a": 1}'), ("POST", None)])
def test_requests_say_the_same_as_those_of_the_library(method: str, body: bytes | None) -> None:
    with answering(ANSWERS["whole"]) as (port, heard):
        by_library(port, method, body)
        by_wire(port, method, body)
    first, second = (sorted(one.replace(b"\r\n", b"\n").split(b"\n")) for one in heard)
    assert first == second


def test_nothing_is_smuggled_into_a_head() -> None:
    with pytest.raises(ValueError, match="one line"):
        common("http://a", {"Authorization": "Bearer a\r\nB: c"})
    with answering(ANSWERS["whole"]) as (port, heard):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.connect()
        wire = Wire(connection)
        with pytest.raises(http.client.InvalidURL):
            wire.ask("GET", "/a b", b"", None)
        wire.close()
    assert heard in ([], [b""])
    assert b"Host: [::1]:81\r\n" in common("http://[::1]:81/base", {})
    assert b"Host: a\r\n" in common("https://a:443", {})
