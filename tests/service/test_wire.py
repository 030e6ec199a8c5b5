"""Requests byte by byte: what is answered, what is charged, and whether the connection stays.

A request is charged if and only if its own answer says so. Whatever cannot be read in one way only
is refused, and the connection is closed behind it.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from residua.service import limits
from service.running import Service, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

MECHANISM = '{"kind": "laplace", "scale": 40.0}'
QUIET = 0.5
"""Seconds without a byte after which an answer is taken to be complete."""


@dataclass(frozen=True)
class Target:
    """Where a request goes, and in whose name."""

    name: str
    token: str

    def spend(self, key: str = "k", *, more: str = "", length: int | None = None) -> bytes:
        """A spend in good order, with further lines in its head."""
        body = f'{{"mechanism": {MECHANISM}, "key": "{self.name}-{key}"}}'
        return self.head(f"Content-Length: {len(body) if length is None else length}\r\n{more}") + (
            body.encode()
        )

    def head(self, lines: str, path: str | None = None, method: str = "POST") -> bytes:
        path = f"/v1/budgets/{self.name}/spend" if path is None else path
        return (
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\n{lines}\r\n"
        ).encode()

    def chunked(self, *pieces: bytes, lines: str = "", end: bytes = b"0\r\n\r\n") -> bytes:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces)
        return self.head(f"Transfer-Encoding: chunked\r\n{lines}") + chunks + end

    def body(self, key: str = "k") -> bytes:
        return f'{{"mechanism": {MECHANISM}, "key": "{self.name}-{key}"}}'.encode()


@dataclass(frozen=True)
class Seen:
    """What came back."""

    statuses: tuple[int, ...]
    charged: int
    closed: bool


def exchange(service: Service, sent: bytes, half_close: bool = False) -> tuple[bytes, bool]:
    """All bytes that come back, and whether the service closed the connection."""
    host, _, port = service.url.removeprefix("http://").partition(":")
    found = b""
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(sent)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        try:
            while True:
                connection.settimeout(QUIET if found else 5.0)
                piece = connection.recv(65536)
                if not piece:
                    return found, True
                found += piece
        except TimeoutError:
            return found, False
        except ConnectionResetError:
            return found, True


def statuses(found: bytes) -> tuple[int, ...]:
    return tuple(map(int, re.findall(rb"HTTP/1\.1 (\d{3}) ", found)))


Case = Callable[[Target], bytes]

CASES: dict[str, Case] = {
    # ordinary requests
    "a spend": lambda t: t.spend(),
    "a spend that ends the connection": lambda t: t.spend(more="Connection: close\r\n"),
    "a chunked spend": lambda t: t.chunked(t.body()[:9], t.body()[9:]),
    "chunk extensions": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n")
        + b"%x;a=b\r\n%s\r\n0\r\n\r\n" % (len(t.body()), t.body())
    ),
    "trailers": lambda t: t.chunked(t.body(), end=b"0\r\nX-Trailer: 1\r\n\r\n"),
    "three pipelined spends": lambda t: t.spend("1") + t.spend("2") + t.spend("3"),
    "a header that nobody reads, twice": lambda t: t.spend(more="X-A: 1\r\nX-A: 2\r\n"),
    "an absolute address": lambda t: t.spend().replace(b"POST /", b"POST http://a/", 1),
    "HTTP/1.0": lambda t: t.spend().replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "a request of HTTP/2": lambda t: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + t.spend(),
    "an upgrade": lambda t: t.spend(more="Connection: upgrade\r\nUpgrade: websocket\r\n"),
    "an upgrade to HTTP/2": lambda t: t.spend(
        more="Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    ),
    "lines that end in a line feed alone": lambda t: t.spend().replace(b"\r\n", b"\n"),
    "an empty line before": lambda t: b"\r\n" + t.spend(),
    # duplicate headers
    "two equal tokens": lambda t: t.spend(more=f"Authorization: Bearer {t.token}\r\n"),
    "a token behind a bad one": lambda t: t.spend(
        more=f"Authorization: Bearer {t.token}\r\n"
    ).replace(f"Bearer {t.token}".encode(), b"Bearer nobody", 1),
    "a bad token behind a good one": lambda t: t.spend(more="Authorization: Bearer nobody\r\n"),
    "two types": lambda t: t.spend(more="Content-Type: text/plain\r\n"),
    "two keys": lambda t: t.spend(
        more=f"Idempotency-Key: {t.name}-k\r\nIdempotency-Key: {t.name}-l\r\n"
    ),
    "two hosts": lambda t: t.spend(more="Host: b\r\n"),
    "two ids": lambda t: t.spend(more="X-Request-Id: a\r\nX-Request-Id: b\r\n"),
    "two equal lengths": lambda t: t.spend(more=f"Content-Length: {len(t.body())}\r\n"),
    "two lengths": lambda t: t.spend(more="Content-Length: 5\r\n"),
    # lengths and chunks
    "a length and chunks": lambda t: t.chunked(
        t.body(), lines=f"Content-Length: {len(t.body())}\r\n"
    ),
    "chunks twice": lambda t: t.chunked(t.body(), lines="Transfer-Encoding: chunked\r\n"),
    "gzip and chunks": lambda t: t.chunked(t.body(), lines="Transfer-Encoding: gzip\r\n"),
    "a chunk that is no number": lambda t: t.head("Transfer-Encoding: chunked\r\n") + b"xyz\r\n",
    "a chunk of less than nothing": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n") + b"-5\r\nabcde\r\n0\r\n\r\n"
    ),
    "a chunk longer than it says": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n") + b"5\r\n" + t.body() + b"\r\n0\r\n\r\n"
    ),
    "no length": lambda t: t.head("") + t.body(),
    "a length that is too short": lambda t: t.spend(length=9),
    "a length beyond the limit": lambda t: t.head("Content-Length: 99999999\r\n"),
    "chunks beyond the limit": lambda t: t.chunked(b" " * 200_000, b" " * 200_000, t.body()),
    "a length below zero": lambda t: t.head("Content-Length: -1\r\n") + t.body(),
    "a length with a sign": lambda t: t.head(f"Content-Length: +{len(t.body())}\r\n") + t.body(),
    "a length of no ASCII digits": lambda t: t.head("Content-Length: \u0665\r\n") + b"12345",
    "a length of many digits": lambda t: t.head(f"Content-Length: {'9' * 400}\r\n") + t.body(),
    "a chunk of many digits": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n") + b"f" * 400 + b"\r\n" + t.body()
    ),
    "chunks that are not the last coding": lambda t: (
        t.head("Transfer-Encoding: chunked, identity\r\n") + t.body()
    ),
    "chunks under HTTP/1.0": lambda t: t.chunked(t.body()).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "a client that waits to go on": lambda t: t.spend(more="Expect: 100-continue\r\n"),
    "a length with a zero before": lambda t: t.head(f"Content-Length: 00{len(t.body())}\r\n")
    + t.body(),
    "a length in hexadecimal": lambda t: t.head(f"Content-Length: {len(t.body()):#x}\r\n")
    + t.body(),
    "an empty length": lambda t: t.head("Content-Length: \r\n") + t.body(),
    "chunks in capitals": lambda t: t.chunked(t.body()).replace(b": chunked", b": CHUNKED", 1),
    "chunks of another name": lambda t: t.chunked(t.body()).replace(b": chunked", b": xchunked", 1),
    "chunks behind a tab": lambda t: t.chunked(t.body()).replace(b": chunked", b":\tchunked", 1),
    "chunks that end in a line feed alone": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n")
        + b"%x\n%s\n0\n\n" % (len(t.body()), t.body())
    ),
    "a chunk with a sign": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n")
        + b"+%x\r\n%s\r\n0\r\n\r\n" % (len(t.body()), t.body())
    ),
    "a chunk in hexadecimal, said twice": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n")
        + b"0x%x\r\n%s\r\n0\r\n\r\n" % (len(t.body()), t.body())
    ),
    "a chunk extension beyond the limit": lambda t: (
        t.head("Transfer-Encoding: chunked\r\n")
        + b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(t.body()), b"a" * 500_000, t.body())
    ),
    "trailers beyond the limit": lambda t: t.chunked(
        t.body(), end=b"0\r\nX-Trailer: " + b"a" * 500_000 + b"\r\n\r\n"
    ),
    "a length among the trailers": lambda t: t.chunked(
        t.body(), end=b"0\r\nContent-Length: 5\r\n\r\n"
    ),
    # heads
    "a head up to the limit": lambda t: t.spend(more=f"X-A: {'a' * 60_000}\r\n"),
    "obs-fold with a tab": lambda t: t.spend(more="X-A: 1\r\n\t2\r\n"),
    "obs-fold before every header": lambda t: t.spend().replace(
        b"Host: a\r\n", b" folded: 1\r\nHost: a\r\n", 1
    ),
    "obs-fold in chunks": lambda t: t.chunked(t.body()).replace(b": chunked", b":\r\n chunked", 1),
    "obs-fold that hides chunks": lambda t: t.spend(
        more="X-A: 1\r\n Transfer-Encoding: chunked\r\n"
    ),
    "two keys that are equal": lambda t: t.spend(
        more=f"Idempotency-Key: {t.name}-k\r\nIdempotency-Key: {t.name}-k\r\n"
    ),
    "two headers that differ by case": lambda t: t.spend(more="HOST: b\r\n"),
    "two origins": lambda t: t.spend(more="Origin: http://a\r\nOrigin: http://b\r\n"),
    "obs-fold in a header that nobody reads": lambda t: t.spend(more="X-A: 1\r\n  2\r\n"),
    "obs-fold in a token": lambda t: t.spend().replace(b"Bearer ", b"Bearer\r\n ", 1),
    "obs-fold in a length": lambda t: t.spend(more="").replace(
        b"Content-Length: ", b"Content-Length:\r\n ", 1
    ),
    "a space before a colon": lambda t: t.spend(more="X-A : 1\r\n"),
    "a header without a name": lambda t: t.spend(more=": 1\r\n"),
    "a header without a colon": lambda t: t.spend(more="nothing\r\n"),
    "a zero in a header": lambda t: t.spend(more="X-A: 1\0\r\n"),
    "a carriage return in a header": lambda t: t.spend(more="X-A: 1\r2\r\n"),
    "letters of no ASCII in a header": lambda t: t.spend(more="X-A: \u00e9\r\n"),
    "a head that is too large": lambda t: t.spend(more=f"X-A: {'a' * 500_000}\r\n"),
    "too many headers": lambda t: t.spend(more="X-A: a\r\n" * 60_000),
    "a long address": lambda t: t.head("Content-Length: 0\r\n", "/v1/" + "a" * 500_000),
    "no host": lambda t: t.spend().replace(b"Host: a\r\n", b"", 1),
    "no version": lambda t: t.spend().replace(b" HTTP/1.1", b"", 1),
    "a version of the future": lambda t: t.spend().replace(b"HTTP/1.1", b"HTTP/3.7", 1),
    "a method of our own": lambda t: t.head("Content-Length: 0\r\n", method="SPEND"),
    "an address with a space": lambda t: t.spend().replace(b"/spend HTTP", b"/spend x HTTP", 1),
    "an address with a zero": lambda t: t.spend().replace(b"/spend HTTP", b"/spend\0 HTTP", 1),
    "a slash in disguise": lambda t: t.spend().replace(b"/v1/budgets/", b"/v1%2fbudgets/", 1),
    "not HTTP at all": lambda t: b"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n",
    # pipelines with something wrong in them
    "a spend and garbage": lambda t: t.spend() + b"\0\r\n\r\n",
    "a spend and half a head": lambda t: t.spend() + b"GET /v1/hea",
    "a spend and a bad spend": lambda t: t.spend("1") + t.spend("2", more="X-A : 1\r\n"),
    "a bad body and a spend": lambda t: (
        t.head("Content-Length: 2\r\n") + b"{]" + t.spend()
    ),
    "a wrong type and a spend": lambda t: (
        t.head("Content-Length: 2\r\n").replace(b"application/json", b"text/plain") + b"{}"
        + t.spend()
    ),
    "two lengths, 5 and 5, and a spend": lambda t: (
        t.head("Content-Length: 5, 5\r\n") + b"12345" + t.spend()
    ),
    "a spend behind the end": lambda t: t.spend("1", more="Connection: close\r\n") + t.spend("2"),
    "a spend behind a body that is too large": lambda t: (
        t.head("Content-Length: 300000\r\n") + b" " * 300_000 + t.spend()
    ),
    "a spend behind chunks and a spend": lambda t: (
        t.chunked(t.body("1")) + t.spend("2") + t.chunked(t.body("3"))
    ),
    "a spend behind one without a right to": lambda t: (
        t.spend("1").replace(b"Bearer ", b"Bearer x", 1) + t.spend("2")
    ),
    "a length, chunks and a spend": lambda t: (
        t.head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + b"0\r\n\r\n" + t.spend()
    ),
}  # fmt: skip


ANSWERS: dict[str, tuple[tuple[int, ...], int, bool]] = {
    "a spend": ((200,), 1, False),
    "a spend that ends the connection": ((200,), 1, True),
    "a chunked spend": ((200,), 1, False),
    "chunk extensions": ((200,), 1, False),
    "trailers": ((200,), 1, False),
    "three pipelined spends": ((200, 200, 200), 3, False),
    "a header that nobody reads, twice": ((200,), 1, False),
    "an absolute address": ((404,), 0, False),
    "HTTP/1.0": ((200,), 1, True),
    "a request of HTTP/2": ((400,), 0, True),
    "an upgrade": ((200,), 1, False),
    "an upgrade to HTTP/2": ((200,), 1, False),
    "lines that end in a line feed alone": ((200,), 1, False),
    "an empty line before": ((400,), 0, True),
    "two equal tokens": ((400,), 0, True),
    "a token behind a bad one": ((400,), 0, True),
    "a bad token behind a good one": ((400,), 0, True),
    "two types": ((400,), 0, True),
    "two keys": ((400,), 0, True),
    "two hosts": ((400,), 0, True),
    "two ids": ((400,), 0, True),
    "two equal lengths": ((200,), 1, False),
    "two lengths": ((400,), 0, True),
    "a length and chunks": ((400,), 0, True),
    "chunks twice": ((400,), 0, True),
    "gzip and chunks": ((400,), 0, True),
    "a chunk that is no number": ((400,), 0, True),
    "a chunk of less than nothing": ((400,), 0, True),
    "a chunk longer than it says": ((400,), 0, True),
    "no length": ((400,), 0, True),
    "a length that is too short": ((400,), 0, True),
    "a length beyond the limit": ((413,), 0, False),
    "chunks beyond the limit": ((413,), 0, False),
    "a length below zero": ((400,), 0, True),
    "a length with a sign": ((400,), 0, True),
    "a length of no ASCII digits": ((400,), 0, True),
    "a length of many digits": ((400,), 0, True),
    "a chunk of many digits": ((400,), 0, True),
    "chunks that are not the last coding": ((400,), 0, True),
    "chunks under HTTP/1.0": ((200,), 1, True),
    "a client that waits to go on": ((100, 200), 1, False),
    "obs-fold in a header that nobody reads": ((200,), 1, False),
    "obs-fold in a token": ((200,), 1, False),
    "obs-fold in a length": ((200,), 1, False),
    "a space before a colon": ((400,), 0, True),
    "a header without a name": ((400,), 0, True),
    "a header without a colon": ((400,), 0, True),
    "a zero in a header": ((400,), 0, True),
    "a carriage return in a header": ((400,), 0, True),
    "letters of no ASCII in a header": ((200,), 1, False),
    "a head that is too large": ((400,), 0, True),
    "too many headers": ((400,), 0, True),
    "a long address": ((400,), 0, True),
    "no host": ((400,), 0, True),
    "no version": ((400,), 0, True),
    "a version of the future": ((400,), 0, True),
    "a method of our own": ((405,), 0, False),
    "an address with a space": ((400,), 0, True),
    "an address with a zero": ((400,), 0, True),
    "a slash in disguise": ((404,), 0, False),
    "not HTTP at all": ((400,), 0, True),
    "a spend and garbage": ((200, 400), 1, True),
    "a spend and half a head": ((200,), 1, False),
    "a spend and a bad spend": ((200, 400), 1, True),
    "a bad body and a spend": ((400,), 0, True),
    "a wrong type and a spend": ((415,), 0, True),
    "two lengths, 5 and 5, and a spend": ((422, 200), 1, False),
    "a length, chunks and a spend": ((400,), 0, True),
    "a length with a zero before": ((200,), 1, False),
    "a length in hexadecimal": ((400,), 0, True),
    "an empty length": ((400,), 0, True),
    "chunks in capitals": ((200,), 1, False),
    "chunks of another name": ((400,), 0, True),
    "chunks behind a tab": ((200,), 1, False),
    "chunks that end in a line feed alone": ((), 0, False),
    "a chunk with a sign": ((400,), 0, True),
    "a chunk in hexadecimal, said twice": ((400,), 0, True),
    "a chunk extension beyond the limit": ((400,), 0, True),
    "trailers beyond the limit": ((400,), 0, True),
    "a length among the trailers": ((200,), 1, False),
    "a head up to the limit": ((200,), 1, False),
    "obs-fold with a tab": ((200,), 1, False),
    "obs-fold before every header": ((400,), 0, True),
    "obs-fold in chunks": ((200,), 1, False),
    "obs-fold that hides chunks": ((200,), 1, False),
    "two keys that are equal": ((400,), 0, True),
    "two headers that differ by case": ((400,), 0, True),
    "two origins": ((400,), 0, True),
    "a spend behind the end": ((200,), 1, True),
    "a spend behind a body that is too large": ((413, 200), 1, False),
    "a spend behind chunks and a spend": ((200, 200, 200), 3, False),
    "a spend behind one without a right to": ((401, 200), 1, False),
}
"""Of each case: the statuses of the answers, how many spends were charged, and whether it ended."""


def seen(service: Service, name: str, case: Case) -> Seen:
    service.budget(name)
    found, closed = exchange(service, case(Target(name, service.tokens["engine"])))
    deadline = time.monotonic() + 1.0
    while service.office.ledger.budget(name).seq == 0 and time.monotonic() < deadline:
        time.sleep(0.05)  # perhaps one that was not answered is charged yet
    return Seen(statuses(found), service.office.ledger.budget(name).seq, closed)


@pytest.mark.parametrize("case", CASES)
def test_what_is_sent_has_one_meaning(service: Service, name: str, case: str) -> None:
    found = seen(service, name, CASES[case])
    assert found == Seen(*ANSWERS[case])
    assert found.charged <= found.statuses.count(200), "nothing is charged without its answer"


def test_two_equal_lengths_are_one(service: Service, name: str) -> None:
    """As RFC 9110 has it (8.6); and a folded header is one line with a space (RFC 9112, 5.2)."""
    service.budget(name)
    target = Target(name, service.tokens["engine"])
    for place, more in enumerate(("Content-Length: {0}\r\n", "X-A: 1\r\n 2\r\n")):
        body = target.body(str(place))
        found, _ = exchange(service, target.spend(str(place), more=more.format(len(body))))
        assert statuses(found) == (200,)
    assert service.office.ledger.budget(name).seq == 2


def test_in_pieces_of_a_byte(service: Service, name: str) -> None:
    service.budget(name)
    whole = Target(name, service.tokens["engine"]).spend(more="Connection: close\r\n")
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(len(whole)):
            connection.sendall(whole[place : place + 1])
        found = b""
        while piece := connection.recv(65536):
            found += piece
    assert statuses(found) == (200,) and b'"replayed":false' in found


def test_pipelined_requests_are_answered_in_order(service: Service, name: str) -> None:
    service.budget(name)
    target = Target(name, service.tokens["engine"])
    found, _ = exchange(service, b"".join(target.spend(str(place)) for place in range(5)))
    keys = re.findall(rb'"key":"([^"]*)"', found)
    assert keys == [f"{name}-{place}".encode() for place in range(5)]


@pytest.mark.parametrize("apart", [False, True])
def test_garbage_does_not_take_the_answer_of_a_spend(
    service: Service, name: str, apart: bool
) -> None:
    """Charged and answered 400 would be a budget that nobody can use."""
    service.budget(name)
    target = Target(name, service.tokens["engine"])
    host, _, port = service.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(target.spend() + (b"" if apart else b"\0\r\n\r\n"))
        if apart:
            connection.sendall(b"\0\r\n\r\n")
        found = b""
        while piece := connection.recv(65536):
            found += piece
    assert statuses(found) == (200, 400) and b'"admitted":true' in found
    assert service.office.ledger.budget(name).seq == 1


def test_early_disconnects(service: Service, name: str) -> None:
    """A request that came whole is charged once, and its key tells; another never is."""
    service.budget(name)
    target = Target(name, service.tokens["engine"])
    host, _, port = service.url.removeprefix("http://").partition(":")
    whole = target.spend("whole")
    for sent in (whole[:30], whole[: whole.index(b"\r\n\r\n") + 9], whole):
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(sent)
    deadline = time.monotonic() + 20
    while service.office.ledger.budget(name).seq == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    found, _ = exchange(service, whole)
    assert b'"replayed":true' in found
    assert service.office.ledger.budget(name).seq == 1


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_connections_that_end_in_the_middle(service: Service, name: str, reset: bool) -> None:
    """Nothing is charged of half a request, in whatever part it ends; the service goes on."""
    service.budget(name)
    target = Target(name, service.tokens["engine"])
    body = target.body()
    chunked = target.chunked(body[:20], body[20:])
    pieces = [
        target.head("Content-Length: 10\r\n")[:-2],
        target.spend()[:-1],
        target.head("Transfer-Encoding: chunked\r\n"),
        chunked[: chunked.index(b"14\r\n") + 10],
        chunked[:-5],
        chunked[:-2],
    ]
    host, _, port = service.url.removeprefix("http://").partition(":")
    for sent in pieces:
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            if reset:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(sent)
            time.sleep(0.05)
    found, _ = exchange(service, target.spend("after"))
    assert statuses(found) == (200,) and b'"replayed":false' in found
    assert service.office.ledger.budget(name).seq == 1


def test_an_answer_whose_reader_is_gone(service: Service, name: str) -> None:
    """Charged once each, and their keys tell; connections and tasks end."""
    service.budget(name)
    target = Target(name, service.tokens["engine"])
    host, _, port = service.url.removeprefix("http://").partition(":")
    for n in range(10):
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(target.spend(str(n)))
            connection.recv(1)
    found, _ = exchange(service, b"".join(target.spend(str(n)) for n in range(10)))
    assert statuses(found) == (200,) * 10 and found.count(b'"replayed":true') == 10
    assert service.office.ledger.budget(name).seq == 10
    deadline = time.monotonic() + 20
    while len(service.office.connections._open) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(service.office.connections._open) <= 1


def test_a_body_that_does_not_come(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_TIMEOUT", 0.3)
    target = Target("none", service.tokens["engine"])
    found, closed = exchange(service, target.head("Content-Length: 50\r\n") + b"{")
    assert statuses(found) == (408,) and closed


def test_an_answer_that_is_not_read(
    service: Service, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection ends, and so does its task."""
    monkeypatch.setattr(limits, "READ_TIMEOUT", 0.3)
    service.budget(name)
    for _ in range(20):
        service.spend(name, mechanism={"kind": "laplace", "scale": 400.0})
    target = Target(name, service.tokens["admin"])
    asked = target.head("", f"/v1/budgets/{name}/history?limit=1000", "GET") * 400
    host, _, port = service.url.removeprefix("http://").partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    connection.connect((host, int(port)))
    with connection:
        connection.sendall(asked)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                connection.sendall(b"\r\n")
            except OSError:
                return
            time.sleep(0.05)
    pytest.fail("the connection stayed")


def test_who_sends_no_head_is_let_go(tmp_path: Path) -> None:
    """From the beginning, or after an answer; a request that takes long is not cut."""
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    with serving(store, anchor, head_within=0.5) as service:
        for sent in (b"", b"GET /v1/heal", b"GET /v1/health HTTP/1.1\r\nHost: a\r\n\r\nGET /v1"):
            begun = time.monotonic()
            host, _, port = service.url.removeprefix("http://").partition(":")
            with socket.create_connection((host, int(port)), timeout=20) as connection:
                connection.sendall(sent)
                found = b""
                try:
                    while piece := connection.recv(65536):
                        found += piece
                except ConnectionResetError:
                    pass
            assert statuses(found) == ((200,) if b"Host" in sent else ())
            assert 0.4 < time.monotonic() - begun < 10


def test_too_many_connections_are_told_so_as_a_problem(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
        service.office.connections._most = 1
        assert service.http("GET", "/v1/health", None).status_code == 200
        with httpx.Client(base_url=service.url, timeout=30) as other:
            full = other.get("/v1/health")
        assert full.status_code == 503 and full.headers["retry-after"] == "1"
        assert full.headers["content-type"] == "application/problem+json"
        assert full.headers["connection"] == "close"
        assert full.json()["type"] == "urn:residua:problem:overloaded"
        assert service.http("GET", "/v1/health", None).status_code == 200
