"""The visitor of a page: a token in a cookie that scripts cannot read.

The cookie holds the token itself, so any process of a service knows it, and a revoked token ends
the session within a second. It goes when the browser is closed. Two things keep other sites from
acting in a visitor's name: `SameSite=Strict`, and, should a browser not know that, a request that
changes anything must come from our own pages (`Sec-Fetch-Site`, or `Origin`) and carry a code that
only they know: an HMAC under the token.

The HTTP API never looks at the cookie.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ResiduaError
from residua.service.auth import Caller
from residua.service.context import context_of
from residua.service.problems import Problem

COOKIE = "residua_session"
CODE = "form_code"
"""The field of a form that has the code."""
_OURS = secrets.token_bytes(32)
"""For visitors without a token: a service for development, whose processes need not agree."""


@dataclass(frozen=True)
class Visitor:
    """The visitor of a page, and the code that proves a form to be ours."""

    caller: Caller
    code: str


async def require_visitor(request: Request) -> Visitor:
    """The visitor; raises 401 if there is no valid session."""
    token = request.cookies.get(COOKIE)
    if token is not None and len(token) > 200:
        token = ""
    header = None if token is None else f"Bearer {token}"
    caller = await context_of(request).bearer(request, header)
    visitor = Visitor(caller, code_for(token))
    request.scope["state"]["visitor"] = visitor
    return visitor


async def visitor_or_none(request: Request) -> Visitor | None:
    """The visitor, or None without a valid session."""
    if COOKIE not in request.cookies and not context_of(request).settings.dev:
        return None
    try:
        return await require_visitor(request)
    except (Problem, ResiduaError):
        return None


def known_visitor(request: Request) -> Visitor | None:
    """The visitor, if already identified."""
    return cast("Visitor | None", request.scope["state"].get("visitor"))


def code_for(token: str | None) -> str:
    """The code of a session's forms."""
    key = _OURS if token is None else token.encode()
    return hmac.new(key, b"residua form", "sha256").hexdigest()


def check_form(request: Request, visitor: Visitor, given: str | None) -> None:
    """Raise unless a form is one of ours, filled in by this visitor."""
    check_origin(request)
    if not hmac.compare_digest((given or "").encode(), visitor.code.encode()):
        raise _foreign("the form is from another session; load the page again")


def check_origin(request: Request) -> None:
    """Raise where a browser says that another site's page sends this."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site != "same-origin":
            raise _foreign("forms are accepted only from this service's own pages")
        return
    origin = request.headers.get("origin")
    if origin is not None and _place(origin) != request.headers.get("host"):
        raise _foreign("forms are accepted only from this service's own pages")


def _place(origin: str) -> str | None:
    """The host and port of an origin; None where it is not an address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def remember(request: Request, response: Response, token: str) -> None:
    """Begin a session."""
    secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    response.set_cookie(COOKIE, token, path="/", httponly=True, samesite="strict", secure=secure)


def forget(response: Response) -> None:
    """End a session."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def _foreign(detail: str) -> Problem:
    return Problem("foreign-origin", detail)
