"""Middleware around every request, from the outside in: observation, limits, authentication.

Plain ASGI middleware of the application. `Observation` gives a request its id, adds headers for
browsers, logs one line, counts, and answers what nothing inside could; `Limits` refuses what is too
large, too slow, or can be read in two ways; `Authentication` identifies the caller and applies rate
limits.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from residua.service import limits, logs, problems
from residua.service.context import ServiceContext
from residua.service.limits import Connections
from residua.service.metrics import Metrics
from residua.service.problems import Problem
from residua.service.settings import Settings

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)
"""Added to every answer that does not set them itself."""
PAGE_HEADERS = (*HEADERS, (b"referrer-policy", b"no-referrer"), (b"x-frame-options", b"DENY"))
"""The same for answers that a browser may show."""
SINGLE_HEADERS = frozenset(
    {b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"origin",
     b"transfer-encoding", b"x-request-id"}
)  # fmt: skip
"""Headers that may occur once: two of them could be read in two ways."""
HTTP_VERSIONS = frozenset({"1.0", "1.1"})
WITHOUT_TOKEN = frozenset({"/v1/health", "/v1/ready", "/v1/openapi.json"})


def is_api(path: str) -> bool:
    """Whether a path is of the API, for programs, and not a page for people."""
    return path.startswith("/v1/") or path == "/metrics"


class Observation:
    """The outermost middleware: adds an id and headers, logs and counts each answer."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        render_problem: Callable[[Request, Problem], Awaitable[Response]],
    ):
        self._app, self._metrics, self._render_problem = app, metrics, render_problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        id = request_id(header_of(scope, b"x-request-id"))
        scope.setdefault("state", {})["request_id"] = id
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                named = {name.lower() for name, _ in given}
                ours = HEADERS if scope["path"].startswith("/v1/") else PAGE_HEADERS
                given += [one for one in ours if one[0] not in named]
                given.append((b"x-request-id", id.encode()))
                if status in (400, 408, 415):
                    # What comes next may be the rest of what was misread.
                    given.append((b"connection", b"close"))
            await send(message)

        with self._metrics.in_flight.track_inprogress():
            try:
                await self._app(scope, receive, sending)
            except Exception as error:
                problem = problem_for(error, id)
                if status == 0:
                    response = await self._render_problem(Request(scope, receive), problem)
                    await response(scope, receive, sending)
        self._record_answer(scope, id, status, time.perf_counter() - start)

    def _record_answer(self, scope: Scope, id: str, status: int, seconds: float) -> None:
        """Count an answer, and log it."""
        method, caller = scope["method"], scope["state"].get("caller")
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.count_answer(
            route, method if method in _METHODS else "other", status, seconds
        )
        if logs.log.isEnabledFor(logging.INFO):
            logs.event(
                "request",
                request=id,
                method=method,
                path=logs.without_secrets(scope["path"])[:400],
                status=status,
                ms=round(1000 * seconds, 2),
                by=getattr(caller, "principal", None),
                token=getattr(caller, "token", None),
            )


class Limits:
    """Refuses what is too large, comes too slowly, or can be read in two ways."""

    def __init__(self, app: ASGIApp, settings: Settings, connections: Connections):
        self._app, self._settings, self._connections = app, settings, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._connections.answering(scope.get("client")):
            self._check(scope)
            await self._app(scope, self._bounded_receive(receive), self._timed_send(scope, send))

    def _check(self, scope: Scope) -> None:
        """Refuse ambiguous headers, encoded slashes, large bodies and requests from other sites."""
        if self._connections.are_too_many:
            full = limits.overloaded("there are too many connections")
            full.headers["Connection"] = "close"
            raise full
        if scope["http_version"] not in HTTP_VERSIONS:
            raise _malformed_problem("the HTTP version must be 1.0 or 1.1")
        names = Counter(name for name, _ in scope["headers"])
        duplicates = sorted(name.decode() for name in SINGLE_HEADERS if names[name] > 1)
        if duplicates:
            raise _malformed_problem(f"duplicate header: {', '.join(duplicates)}")
        if b"transfer-encoding" in names and b"content-length" in names:
            raise _malformed_problem("a body must be chunked or have a length, not both")
        if b"%2f" in scope.get("raw_path", b"").lower():
            raise Problem("not-found", "there is nothing at this address")
        length = header_of(scope, b"content-length") or b"0"
        if length.isdigit() and int(length) > self._settings.largest_body:
            raise limits.too_large(self._settings.largest_body)
        if not self._settings.dev:
            return
        host = _hostname(b"//" + (header_of(scope, b"host") or b""))
        origin = header_of(scope, b"origin")
        if host not in _LOCAL or (origin is not None and _hostname(origin) not in _LOCAL):
            raise Problem(
                "foreign-origin",
                "a development service answers only localhost: Host and Origin must be localhost",
            )

    def _bounded_receive(self, receive: Receive) -> Receive:
        """`receive` that raises if the body is too large or too slow."""
        largest, seen, ended = self._settings.largest_body, 0, False
        deadline = asyncio.get_running_loop().time() + limits.BODY_TIMEOUT

        async def receiving() -> Message:
            nonlocal seen, ended
            try:
                async with asyncio.timeout_at(None if ended else deadline):
                    message = await receive()
            except TimeoutError:
                raise Problem(
                    "too-slow", f"a body must come within {limits.BODY_TIMEOUT:g} seconds"
                ) from None
            seen += len(message.get("body", b""))
            ended = ended or not message.get("more_body", False)
            if seen > largest:
                raise limits.too_large(largest)
            return message

        return receiving

    def _timed_send(self, scope: Scope, send: Send) -> Send:
        """`send` that ends the connection if the client does not read the answer in time."""

        async def sending(message: Message) -> None:
            try:
                async with asyncio.timeout(limits.READ_TIMEOUT):
                    await send(message)
            except TimeoutError:
                self._connections.abort(scope.get("client"))
                raise Problem("too-slow", "the answer was not read in time") from None

        return sending


class Authentication:
    """Identifies the caller of an API request before anything reads the body."""

    def __init__(self, app: ASGIApp, context: ServiceContext):
        self._app, self._context = app, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if is_api(path) and path not in WITHOUT_TOKEN:
                request = Request(scope)
                await self._context.bearer(request, request.headers.get("authorization"))
        await self._app(scope, receive, send)


def problem_for(error: Exception, id: str) -> Problem:
    """The problem that a caller sees for an exception; internal details are only logged."""
    if isinstance(error, ClientDisconnect):
        return _malformed_problem("the body ended early")
    if isinstance(error, RequestValidationError):
        return problems.from_validation(error.errors())
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        if error.status_code == 405:
            return Problem("method-not-allowed", "this method is not allowed here", headers)
        if error.status_code == 404:
            return Problem("not-found", "there is nothing at this address", headers)
        return Problem("invalid-request", str(error.detail), headers, error.status_code)
    logs.store_failure(error, id)
    problem = problems.problem_of(error)
    if problem is None:
        logs.log.error("internal error", exc_info=error, extra={"facts": {"request": id}})
        why = "the service failed to answer; its log has the details by instance"
        problem = Problem("internal-error", why)
    return problem


def encode_json(value: Any) -> bytes:
    """JSON in ASCII: surrogates are escaped, and NaN is an error here, not in the client."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _malformed_problem(detail: str) -> Problem:
    return Problem("invalid-request", detail, status=400)


def request_id(given: bytes | None) -> str:
    """The id that the caller sent if it has only plain characters, and a new one otherwise."""
    text = (given or b"").decode("latin-1")
    return text if _ID.fullmatch(text) else secrets.token_hex(8)


def header_of(scope: Scope, name: bytes) -> bytes | None:
    """The value of the first header with a name."""
    return next((value for each, value in scope["headers"] if each == name), None)


def _hostname(text: bytes) -> str | None:
    try:
        return urlsplit(text.decode("latin-1")).hostname
    except ValueError:
        return None
