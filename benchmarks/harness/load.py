"""A load for the service: connections that send a spend when the last one is answered.

HTTP/1.1 on sockets of one thread, and no more of it than that takes: what is measured is the
service. Every answer is looked at; one that did not admit the spend ends the run.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from urllib.parse import urlsplit

from residua.ledger.domain import arguments
from residua.mechanisms import Mechanism

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length: "


class _Connection(asyncio.Protocol):
    """One caller."""

    def __init__(self, head: bytes, start: bytes, until: float, found: list[float], pause: float):
        self._head, self._start, self._until, self._found = head, start, until, found
        self._pause = pause
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._read = b""
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent >= self._until:
            self._transport.close()
            return
        body = self._start + arguments.key(None).encode() + b'"}'
        self._transport.write(self._head % len(body) + body)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(_HEAD_END)
        if not found or len(body) < int(head.lower().split(_LENGTH)[1].split(b"\r")[0]):
            return
        self._read = b""
        if b'"admitted":true' not in body:
            self.ended.set_exception(AssertionError(f"{head[:80]!r} {body[:400]!r}"))
            self._transport.close()
            return
        self._found.append(time.perf_counter() - self._sent)
        if self._pause:
            asyncio.get_running_loop().call_later(self._pause, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)


async def _run(
    head: bytes, start: bytes, where: tuple[str, int], end: float, n: int, pause: float
) -> list[float]:
    loop, found = asyncio.get_running_loop(), list[float]()
    made = [
        (await loop.create_connection(lambda: _Connection(head, start, end, found, pause), *where))[
            1
        ]
        for _ in range(n)
    ]
    await asyncio.gather(*(each.ended for each in made))
    return found


def load_of(
    url: str, token: str, query: Mechanism, seconds: float, callers: int, pause: float = 0.0
) -> list[float]:
    """Latencies of spends on the budget `bench`, by so many connections at once.

    Each sends its next spend `pause` seconds after an answer.
    """
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    head = (
        f"POST /v1/budgets/bench/spend HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    ).encode() + b"Content-Length: %d\r\n\r\n"
    start = json.dumps({"mechanism": query.to_dict()})[:-1].encode() + b', "key": "'
    end = time.perf_counter() + seconds
    work = _run(head, start, (parts.hostname, parts.port), end, callers, pause)
    try:
        import uvloop
    except ModuleNotFoundError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
