"""Connections to the service, by httpx: kept open and used again, through proxies if there are any.

What must not be sent twice goes over a new connection: one that was idle may have been closed at
the other end. A process that forks leaves its connections to the parent: on a shared one, each
would read the other's receipts.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

import httpx

from residua.errors import ArgumentError
from residua.service.client.calls import Answered, Call, Failed

IDLE = 10.0
"""Seconds after which an idle connection is not used again; the service keeps them for longer."""
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Errors of an attempt that had no connection to the service: its request was not sent."""

H = TypeVar("H", httpx.Client, httpx.AsyncClient)


@dataclass(frozen=True)
class Options:
    """How a client connects."""

    headers: dict[str, str]
    timeout: float
    connections: int
    proxy: str | None


class Sessions(Generic[H]):
    """Two httpx clients, with and without connection reuse; made again after a fork."""

    def __init__(self, kind: Callable[..., H], options: Options):
        self._kind: Callable[..., H] = kind
        self._options = options
        self._left: list[tuple[H, H]] = []
        self._begin()

    def _begin(self) -> None:
        given, trust = self._options, ssl.create_default_context()
        shared: dict[str, Any] = {
            "headers": given.headers,
            # A caller that waits for a pooled connection has sent nothing yet, so it may wait.
            "timeout": httpx.Timeout(given.timeout, pool=None),
            "http2": find_spec("h2") is not None,
            "verify": trust,
            "proxy": given.proxy,
        }
        most = given.connections
        kept = httpx.Limits(
            max_connections=most, max_keepalive_connections=most, keepalive_expiry=IDLE
        )
        single = httpx.Limits(max_connections=most, max_keepalive_connections=0)
        try:
            self.both: tuple[H, H] = (
                self._kind(limits=kept, **shared),
                self._kind(limits=single, **shared),
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise ArgumentError(
                f"proxy must be the address of a proxy, as an argument or in the environment,"
                f" got one that is none ({type(error).__name__})"
            ) from None
        # The last thing: until then no thread of a child takes what is there for its own.
        self._process = os.getpid()

    def of(self, call: Call[Any]) -> H:
        """The client that a call goes through."""
        if self._process != os.getpid():
            # Kept and never used: to close them would be to speak on the parent's connections.
            self._left.append(self.both)
            self._begin()
        kept, single = self.both
        return kept if call.repeatable else single


def answered(response: httpx.Response) -> Answered:
    """The result of an attempt."""
    told = response.headers.get("retry-after")
    return Answered(response.status_code, response.content, told)


def failed(error: httpx.HTTPError) -> Failed:
    """The error of an attempt without an answer."""
    return Failed(error, arrived=not isinstance(error, NOT_SENT))
