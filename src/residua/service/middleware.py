"""Around every request: an id, a size limit, headers for browsers, a line in the log, a count.

Plain ASGI, outside of the application, so that it also sees what the application itself cannot
handle.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from residua.service import limits, logs, problems
from residua.service.auth.access import Caller
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
"""Sent with every answer that does not say otherwise itself."""
PAGES = (*HEADERS, (b"referrer-policy", b"no-referrer"), (b"x-frame-options", b"DENY"))
"""Sent with what a browser may show."""


ASKED = "/v1/budgets/"
Straight = tuple[Any, Callable[[Request], Coroutine[Any, Any, Response]]]
"""A route, and what answers it."""


class Frame:
    """The outermost layer.

    `straight` has the few routes that engines call all day, by the end of their path: these are
    answered right here, since the way through the application takes longer than a decision.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        metrics: Metrics,
        office: object,
        straight: Mapping[str, Straight],
    ):
        self._app, self._settings, self._metrics = app, settings, metrics
        self._office, self._straight = office, straight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        headers = dict(scope["headers"])
        id = request_id(headers.get(b"x-request-id"))
        state = scope.setdefault("state", {})
        state["request_id"], state["office"] = id, self._office
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                named = {name.lower() for name, _ in given}
                ours = HEADERS if scope["path"].startswith("/v1/") else PAGES
                given += [one for one in ours if one[0] not in named]
                given.append((b"x-request-id", id.encode()))
            await send(message)

        self._metrics.in_flight += 1
        try:
            self._check(scope, headers)
            await self._answer(scope, self._limited(headers, receive), sending)
        except Exception as error:
            problem = told(error, id)
            if status == 0:
                await answer(sending, problem, id)
        finally:
            self._metrics.in_flight -= 1
        seconds = time.perf_counter() - start
        tell(
            self._metrics,
            getattr(scope.get("route"), "path", "none"),
            scope["method"],
            scope["path"],
            id,
            status,
            seconds,
            scope["state"].get("caller"),
        )

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if scope["method"] == "POST" and path.startswith(ASKED):
            name, _, verb = path[len(ASKED) :].rpartition("/")
            known = self._straight.get(verb)
            if known is not None and name and "/" not in name:
                scope["path_params"], scope["route"] = {"name": name}, known[0]
                response = await known[1](Request(scope, receive))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Refuse what is too large, slashes in disguise, and what pages of other sites send."""
        if b"%2f" in scope.get("raw_path", b"").lower():
            raise Problem(404, "not-found", "there is nothing at this address")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._settings.largest_body:
            raise limits.too_large(self._settings.largest_body)
        if not self._settings.dev:
            return
        host = _host(b"//" + headers.get(b"host", b""))
        origin = headers.get(b"origin")
        if host not in _LOCAL or (origin is not None and _host(origin) not in _LOCAL):
            raise Problem(
                403,
                "foreign-origin",
                "a service for development answers to localhost alone, so Host and Origin must be"
                " of it",
            )

    def _limited(self, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        if b"transfer-encoding" not in headers:
            return receive
        largest, seen = self._settings.largest_body, 0

        async def receiving() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > largest:
                raise limits.too_large(largest)
            return message

        return receiving


def told(error: Exception, id: str) -> Problem:
    """The problem that an exception is to a caller; what is none of their business is logged."""
    problem = problems.problem_of(error)
    if problem is None:
        logs.log.error("internal error", exc_info=error, extra={"facts": {"request": id}})
        problem = internal()
    return problem


def tell(
    metrics: Metrics,
    template: str,
    method: str,
    path: str,
    id: str,
    status: int,
    seconds: float,
    caller: Caller | None,
) -> None:
    """Count an answer, and log it."""
    metrics.answered(template, method if method in _METHODS else "other", status, seconds)
    if logs.log.isEnabledFor(logging.INFO):
        logs.event(
            "request",
            request=id,
            method=method,
            path=logs.without_secrets(path)[:400],
            status=status,
            ms=round(1000 * seconds, 2),
            by=getattr(caller, "principal", None),
            token=getattr(caller, "token", None),
        )


async def answer(send: Send, problem: Problem, id: str) -> None:
    """Send a problem."""
    content = encoded(problems.body(problem, id))
    headers = [
        (b"content-type", problems.MEDIA_TYPE.encode()),
        (b"content-length", str(len(content)).encode()),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def encoded(value: Any) -> bytes:
    """JSON in ASCII: no surrogate can spoil it, and NaN is an error here rather than there."""
    return "".join(_ENCODER(value, 0)).encode("ascii")


def _encoder() -> Callable[[Any, int], Iterable[str]]:
    """What `json.JSONEncoder` makes for every value anew: the encoder in C, where there is one."""
    made = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
    in_c = getattr(json.encoder, "c_make_encoder", None)
    if in_c is None:
        return lambda value, _: [made.encode(value)]
    texts = json.encoder.encode_basestring_ascii
    encode: Callable[[Any, int], Iterable[str]] = in_c(
        None, made.default, texts, None, made.key_separator, made.item_separator, False, False,
        False,
    )  # fmt: skip
    return encode


_ENCODER = _encoder()


def internal() -> Problem:
    """All that a caller learns of a failure inside."""
    return Problem(
        500, "internal-error", "the service failed to answer; its log has the details by instance"
    )


def request_id(given: bytes | None) -> str:
    """The caller's own id for a request if it is a plain one, and a new one otherwise."""
    text = (given or b"").decode("latin-1")
    return text if _ID.fullmatch(text) else secrets.token_hex(8)


def _host(text: bytes) -> str | None:
    try:
        return urlsplit(text.decode("latin-1")).hostname
    except ValueError:
        return None
