"""What reads requests off a connection: uvicorn's protocol, with a limit and a short way.

The parser in C has no limit for the size of a head, which it puts together piece by piece, so that
a hundred megabytes occupy the event loop for a minute; here it has one.

A request that came whole, in one piece of data, and that nothing else is in front of on its
connection, is offered to the short way (`short.py`). All others, and those that it does not take,
are uvicorn's: it is told of the head then, and of the body, as if nothing had happened. The head of
a request that was taken is remembered for its connection: between two requests the parser has no
memory, so the same bytes say the same again, and it need not be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Protocol

from residua.service.fast_path.short import PATH, Head, Sending

_END = b"\r\n\r\n"
LARGEST_HEAD = 64 * 1024
SLACK = 256 * 1024
"""What may have come with the head in one piece: the beginning of a body."""
REMEMBERED, SHORT_HEAD = 8, 2048
"""How many heads are remembered for a connection, and of which size."""


class Way(Protocol):
    """Takes requests, or leaves them."""

    def head(self, path: bytes, headers: list[tuple[bytes, bytes]]) -> Head | None:
        """What a head says; None for one that is not to be taken."""

    def begun(self, head: Head, body: bytes, send: Sending) -> asyncio.Future[Any] | None:
        """Begin to answer, with `send` in the end; None for what is not to be taken."""


class _Nothing:
    """An event that nobody waits for."""

    def set(self) -> None: ...


class _Cycle:
    """What uvicorn knows of a request that is on the short way."""

    __slots__ = ("_connection", "disconnected", "future", "keep_alive", "response_complete")
    message_event = _Nothing()

    def __init__(self, connection: Any, keep_alive: bool):
        self._connection, self.keep_alive = connection, keep_alive
        self.disconnected = self.response_complete = False
        self.future: asyncio.Future[Any] | None = None

    def send(self, status: int, lines: bytes, content: bytes) -> None:
        """Answer, in one piece, as soon as the other side reads what was sent before."""
        tasks = self._connection.tasks
        tasks.discard(self.future)
        if self._connection.flow.write_paused:
            task = self._connection.loop.create_task(self._send_later(status, lines, content))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        else:
            self._send(status, lines, content)

    async def _send_later(self, status: int, lines: bytes, content: bytes) -> None:
        await self._connection.flow.drain()
        self._send(status, lines, content)

    def _send(self, status: int, lines: bytes, content: bytes) -> None:
        connection = self._connection
        self.response_complete = True
        if connection.transport.is_closing():
            return
        connection.transport.write(
            b"".join(
                (
                    _status_line(status),
                    *(b"%s: %s\r\n" % each for each in connection.server_state.default_headers),
                    lines,
                    b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n",
                    content,
                )
            )
        )
        if not self.keep_alive:
            connection.transport.close()
        connection.on_response_complete()


@cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


def protocol(way: Way) -> Any:
    """What uvicorn is to read requests with: the parser in C, or without it its own in Python."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:  # the other one has a limit of 64 KiB by itself
        return "h11"

    class Connection(HttpToolsProtocol):
        """Refuses a head that is too large, and offers what came whole to the short way."""

        in_head, head_size = True, 0
        between = True
        """Whether the parser is between two requests."""
        piece: bytes | None = None
        """What is being parsed, where a request begins with it."""
        held: bytes | None = None
        """The body so far of a request that uvicorn has not heard of."""
        heads: Mapping[bytes, tuple[Head, int]] = MappingProxyType({})
        """Heads that were taken on this connection, each with the length of its body."""

        def on_message_begin(self) -> None:
            self.in_head, self.head_size, self.between = True, 0, False
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self.in_head = False
            free = self.cycle is None or self.cycle.response_complete
            if free and PATH.fullmatch(self.url) and self.parser.get_method() == b"POST":
                self.held = b""
            else:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self.held is None:
                super().on_body(body)
            else:
                self.held += body

        def on_message_complete(self) -> None:
            self.between = True
            if self.held is None:
                super().on_message_complete()
            elif not self._is_taken(self.held):
                self._let_go()
                super().on_message_complete()

        def _is_taken(self, body: bytes) -> bool:
            head = way.head(self.url, self.headers)
            keep = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
            if head is None or not self._is_begun(head, body, keep):
                return False
            self.held = None
            if keep and head.recurs:
                self._remember(head, len(body))
            return True

        def _is_begun(self, head: Head, body: bytes, keep: bool) -> bool:
            cycle = _Cycle(self, keep)
            future = way.begun(head, body, cycle.send)
            if future is None:
                return False
            self.cycle = cycle  # type: ignore[assignment]
            # A shutdown waits for these, and cancels them when its time is over.
            cycle.future = future
            self.tasks.add(future)  # type: ignore[arg-type]
            return True

        def _remember(self, head: Head, length: int) -> None:
            """Keep the bytes of a head, if they and a body are all of a piece."""
            piece = self.piece or b""
            size = len(piece) - length
            if piece.find(_END) == size - len(_END) and size <= SHORT_HEAD:
                kept = self.heads if len(self.heads) < REMEMBERED else {}
                self.heads = {**kept, piece[:size]: (head, length)}

        def _is_known(self, data: bytes) -> bool:
            """Whether data is a request with a head that was taken before, and taken again."""
            size = data.find(_END) + len(_END)
            head, length = self.heads.get(data[:size], (None, 0))
            if head is None or len(data) - size != length:
                return False
            free = self.cycle is None or self.cycle.response_complete
            if not free or not self._is_begun(head, data[size:], True):
                return False
            self._unset_keepalive_if_required()
            return True

        def _let_go(self) -> None:
            """Leave a request to uvicorn after all."""
            body, self.held = self.held, None
            super().on_headers_complete()
            if body:
                super().on_body(body)

        def send_400_response(self, msg: str) -> None:
            """Say that this is no request; to who waits for the gate, its answer is the last."""
            if isinstance(self.cycle, _Cycle) and not self.cycle.response_complete:
                self.cycle.keep_alive = False
                self.flow.pause_reading()
            else:
                super().send_400_response(msg)

        def data_received(self, data: bytes) -> None:
            if self.between and self.heads and self._is_known(data):
                return
            self.piece = data if self.between else None
            if self.in_head:
                self.head_size += len(data)
                if self.head_size > LARGEST_HEAD + SLACK:
                    self.send_400_response("The head of the request is too large.")
                    return
            super().data_received(data)
            self.piece = None
            if self.held is not None:
                self._let_go()

    return Connection
