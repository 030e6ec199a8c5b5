"""Connections to the service, kept open and used again. Standard library only.

A request is as good as never sent if there was no connection to send it on. After that nobody can
say, so the outcome of an attempt tells the two apart. What must not be sent twice goes over a new
connection: one that was idle may have been closed at the other end. A process that forks leaves its
connections to the parent: on a shared one, each would read the other's receipts.
"""

from __future__ import annotations

import http.client
import os
import ssl
import time
from collections import deque
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import urlencode, urlsplit
from weakref import WeakSet

from residua.service.client.calls import Answered, Call, Failed, Outcome
from residua.service.client.wire import Wire, common

IDLE = 30.0
"""Seconds after which an idle connection is not used again; the service keeps them for longer."""


class Transport:
    """A pool of connections to one address. Safe to share between threads."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float, connections: int):
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._host, self._base = parts.hostname, parts.path
        # Said even where it is the usual one, which `http.client` looks for in an IPv6 address.
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._common, self._timeout = common(url, headers), timeout
        self._most, self._closed = connections, False
        self._begin()
        _TRANSPORTS.add(self)

    def _begin(self) -> None:
        self._idle: deque[tuple[Wire, float]] = deque()
        self._lock = Lock()
        self._free = BoundedSemaphore(self._most)

    def leave(self) -> None:
        """In a child: what is open is the parent's, and who held a lock is not here."""
        idle = self._idle
        self._begin()
        for kept, _ in idle:
            kept.close()

    def send(self, call: Call[Any]) -> Outcome:
        """One attempt."""
        with self._free:
            try:
                connection = self._connection(fresh=not call.repeatable)
            except OSError as error:
                return Failed(error, arrived=False)
            try:
                outcome = self._exchange(connection, call)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                return Failed(error, arrived=True)
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return outcome

    def _exchange(self, connection: Wire, call: Call[Any]) -> Outcome:
        query = f"?{urlencode(call.params)}" if call.params else ""
        path = self._base + call.path + query
        got = connection.ask(call.method, path, self._common, call.content)
        told = got.headers.get(b"retry-after")
        return Answered(got.status, got.content, None if told is None else told.decode("latin-1"))

    def _connection(self, fresh: bool) -> Wire:
        oldest = time.monotonic() - IDLE
        with self._lock:
            while self._idle and not fresh:
                kept, used = self._idle.pop()
                if used > oldest and kept.is_quiet:
                    return kept
                kept.close()
        if self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        else:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._tls
            )
        connection.connect()
        return Wire(connection)

    def _give_back(self, connection: Wire) -> None:
        with self._lock:
            if not connection.is_open or self._closed:
                connection.close()
            else:
                self._idle.append((connection, time.monotonic()))

    def close(self) -> None:
        """Let the connections go."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop()[0].close()


_TRANSPORTS: WeakSet[Transport] = WeakSet()


def _leave_all() -> None:
    for each in list(_TRANSPORTS):
        each.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
