"""Run the service: check the settings before it listens, and shut it down in order.

On SIGTERM or SIGINT no more requests are taken, those that are being answered are finished (for at
most `grace` seconds), and then the ledger is closed. A spend that has reached the committer is
finished in any case.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from residua.errors import ArgumentError
from residua.ledger.api.opening import open_ledger
from residua.service import logs
from residua.service.app import create_app
from residua.service.context import ServiceContext, open_context
from residua.service.limits import timed_protocol
from residua.service.settings import Settings

_COLLECT_EVERY = 60.0
"""Seconds from one look for garbage among all objects to the next, which takes some 20 ms."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(settings: Settings, started: Callable[[str], None] = lambda _url: None) -> None:
    """Serve until told to stop; `started` hears the address."""
    with logs.log_to(settings.log_format, settings.log_level):
        _serve(settings, started)


def _serve(settings: Settings, started: Callable[[str], None]) -> None:
    as_many_as_allowed()
    limit_heaps()
    ledger = open_ledger(
        settings.store,
        anchor=settings.anchor,
        accept_async_standby=settings.accept_async_standby,
    )
    context = open_context(settings, ledger)
    try:
        check(context)
        listener = bound(settings)
        port = int(listener.getsockname()[1])
        url = settings.url.rpartition(":")[0] + f":{port}"
        server = _Server(config(context), lambda: _tell(context, url, started))
        _settle_memory()
        server.run(sockets=[listener])
    finally:
        context.close()
        logs.event("stopped")


def check(context: ServiceContext) -> None:
    """Refuse what would be unsafe."""
    valid = context.tokens.count_valid()
    settings = context.settings
    if not settings.is_loopback and valid == 0:
        raise ArgumentError(
            f"host must be a loopback address while there is no valid token, got {settings.host!r};"
            " create a token with: residua token create --role admin"
        )
    if valid == 0 and not settings.dev:
        logs.event("there is no valid token yet: create one with residua token create", level=30)
    if not settings.is_loopback and settings.tls_cert is None:
        logs.event("no TLS: tokens can be intercepted unless a proxy adds it", level=30)
    if settings.dev:
        logs.event("development mode: every caller of this address is an admin", level=30)
    if context.ledger.read_only:
        logs.event("the ledger is read-only", level=40, why=str(context.ledger.read_only))


def bound(settings: Settings) -> socket.socket:
    """A socket at the address, or an error that says which is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ArgumentError(
            "host and port must be free to listen on,"
            f" got {settings.host}:{settings.port} ({error})"
        ) from None
    return listener


def config(context: ServiceContext) -> uvicorn.Config:
    """How uvicorn is to run.

    Its parser in Python reads a request only when the one before it is answered, so that what comes
    behind a spend cannot take its answer away; and it has a limit for the size of a head.
    """
    settings = context.settings
    return uvicorn.Config(
        create_app(context),
        http=timed_protocol(context.connections),
        h11_max_incomplete_event_size=64 * 1024,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=max(1, int(settings.head_within)),
        timeout_graceful_shutdown=max(1, int(settings.grace)),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )


def as_many_as_allowed() -> None:
    """Let this process have as many connections as the system lets it ask for."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def limit_heaps() -> None:
    """Have the C library give back memory that is free, where it is glibc.

    It makes a heap for each of many threads, and learns from the first large block that is freed
    to keep blocks of that size: a service of a hundred threads then holds more and more of what
    nothing uses. Settings in the environment (`MALLOC_ARENA_MAX` and others) come first.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 (there is none elsewhere)
        for name, parameter, value in (
            # Heaps that threads share; each keeps what was freed in it for itself.
            ("MALLOC_ARENA_MAX", -8, 2),
            # Bytes from which a block is mapped by itself.
            ("MALLOC_MMAP_THRESHOLD_", -3, 256 * 1024),
            # Free bytes that a heap may keep.
            ("MALLOC_TRIM_THRESHOLD_", -1, 1024 * 1024),
        ):
            if name not in os.environ:
                library.mallopt(parameter, value)


def _settle_memory() -> None:
    """Look for garbage less often, and never among what was there at the start."""
    gc.collect()
    gc.freeze()
    # New objects from one look to the next. A sampled query leaves hundreds, and arrays hang on
    # them: with ten times as many, its garbage spread over the heap.
    gc.set_threshold(2_000)


def _collect_garbage(loop: asyncio.AbstractEventLoop) -> None:
    """Look for garbage among all objects, now and at an interval, and give free memory back.

    The interpreter counts objects, not bytes: by itself it would let decisions that ended at their
    work limit keep their arrays for hours. The C library by itself gives back the end of a heap
    alone, so that the largest burst so far would decide what the service holds.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    loop.call_later(_COLLECT_EVERY, _collect_garbage, loop)


def _tell(context: ServiceContext, url: str, started: Callable[[str], None]) -> None:
    place = context.ledger.store.place
    # Of a server only the kind: its address may hold a password.
    store = place.url.get_backend_name() if place.path is None else str(place.path)
    logs.event("started", url=url, store=store, dev=context.settings.dev)
    started(url)


class _Server(uvicorn.Server):
    """A server that says when it listens, and returns when it gets a signal to stop."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]):
        super().__init__(config)
        self._listening = listening

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal; uvicorn would raise it again, before the ledger is closed."""
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            _collect_garbage(asyncio.get_running_loop())
            self._listening()
