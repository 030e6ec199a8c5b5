"""Connections that owe a request: they are closed in time, so that others get in.

Uvicorn has a limit for the size of a head and one for the rest between two requests, but none for
how long a head may take. So every connection gets a deadline here, from a subclass of uvicorn's
protocol, which its `http` option takes: the whole head of a request must come within some seconds
of the connection's beginning, or of the end of the answer before. The application says when a
request has come and when it is answered. Nor is there an option for what is answered where there
are too many connections: uvicorn's own answer is plain text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from residua.service import logs

Address = tuple[str, int]
"""The host and port of the other side, by which an application knows its connection."""


class Connections:
    """Open connections, and until when each must have sent a head. For one event loop."""

    def __init__(self, head_within: float, most: int = 10_000):
        """Requests on more than `most` connections get the error that the service is overloaded."""
        self._within, self._most = head_within, most
        self._open: dict[Address, tuple[asyncio.Transport, asyncio.TimerHandle | None]] = {}

    @property
    def are_too_many(self) -> bool:
        """Whether there are more than there may be."""
        return len(self._open) > self._most

    def add(self, transport: asyncio.Transport) -> None:
        """A connection has begun."""
        address = _address(transport)
        if address is not None:
            self._open[address] = transport, self._deadline(address)

    def remove(self, transport: asyncio.Transport) -> None:
        """A connection has ended."""
        address = _address(transport)
        if address in self._open and self._open[address][0] is transport:
            _, timer = self._open.pop(address)
            if timer is not None:
                timer.cancel()

    @contextmanager
    def answering(self, client: Any) -> Iterator[None]:
        """While a request is answered, its connection owes nothing; then it owes the next head."""
        address = None if client is None else (client[0], client[1])
        self._settle(address, owes=False)
        try:
            yield
        finally:
            self._settle(address, owes=True)

    def abort(self, client: Any) -> None:
        """Close a connection at once, whatever is still to be sent on it."""
        transport, _ = self._open.get((client[0], client[1]) if client else ("", 0), (None, None))
        if transport is not None:
            transport.abort()

    def _settle(self, address: Address | None, owes: bool) -> None:
        if address is None or address not in self._open:
            return
        transport, timer = self._open[address]
        if timer is not None:
            timer.cancel()
        self._open[address] = transport, self._deadline(address) if owes else None

    def _deadline(self, address: Address) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._within, self._late, address)

    def _late(self, address: Address) -> None:
        logs.event("closed a connection that sent no request in time", level=30)
        self.abort(address)


def timed(connections: Connections) -> type[H11Protocol]:
    """uvicorn's protocol, with connections that are known to these."""

    class TimedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            connections.add(transport)
            super().connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.remove(self.transport)
            super().connection_lost(exc)

    return TimedProtocol


def _address(transport: asyncio.Transport) -> Address | None:
    peer = transport.get_extra_info("peername")
    return (str(peer[0]), int(peer[1])) if isinstance(peer, list | tuple) else None
