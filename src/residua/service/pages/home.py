"""Login, logout, and the list of budgets with what is left of each."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.ledger.api.ledger import Ledger
from residua.service import problems
from residua.service.api.routes.budgets import page_of
from residua.service.auth import Caller, parse_token
from residua.service.context import context_of
from residua.service.pages.content import row
from residua.service.pages.html import PageRoute, accept_form, form, page, to
from residua.service.pages.session import (
    CODE,
    check_form,
    check_origin,
    forget,
    remember,
    visitor,
)
from residua.service.problems import Problem

router = APIRouter(route_class=PageRoute)

AT_ONCE = 60
"""Budgets on one page."""


@router.get("/")
async def home(request: Request) -> Response:
    """The budgets in scope."""
    context, seen = context_of(request), await visitor(request)
    seen.caller.require("read")
    after = request.query_params.get("after", "")
    listed = await context.run(budgets, context.ledger, seen.caller, after)
    verified = context.verifier.said()
    read_only = problems.without_addresses(context.ledger.read_only or "") or None
    return page("home.html", seen, **listed, verified=verified, read_only=read_only)


def budgets(ledger: Ledger, caller: Caller, after: str) -> dict[str, Any]:
    """One page of budgets by name, after one."""
    shown, following, count = page_of(ledger, caller, after, AT_ONCE)
    return {"budgets": [row(one) for one in shown], "count": count, "following": following}


@router.get("/login")
async def ask(request: Request) -> Response:
    """Ask for a token."""
    return page("login.html", None, next=_local(request.query_params.get("next")))


@router.post("/login")
async def login(request: Request) -> Response:
    """Begin a session, if the token is valid."""
    check_origin(request)
    given = await form(request)
    token, after = given.get("token", "").strip(), _local(given.get("next"))
    try:
        await context_of(request).bearer(request, f"Bearer {token[:200]}")
    except Problem as found:
        if found.status == 401 and parse_token(token) is None:
            # The words about a header are not for who fills in a form.
            found.detail = "invalid token: tokens start with rz_"
        return page("login.html", None, next=after, problem=found)
    response = to(after)
    remember(request, response, token)
    return response


@router.post("/logout")
async def logout(request: Request) -> Response:
    """End the session."""
    check_form(request, await visitor(request), (await form(request)).get(CODE))
    response = to("/login")
    forget(response)
    return response


@router.post("/verification")
async def verify(request: Request) -> Response:
    """Begin to verify the ledger."""
    _, given = await accept_form(request, "audit")
    context_of(request).verifier.start()
    return to(_local(given.get("next")))


@router.get("/verification")
async def verification(request: Request) -> Response:
    """The result of the last verification, as a part of a page."""
    seen = await visitor(request)
    seen.caller.require("read")
    return page("part_verification.html", seen, verified=context_of(request).verifier.said())


def _local(address: str | None) -> str:
    """An address on this service, and nowhere else."""
    address = address or "/"
    if not address.startswith("/") or address[1:2] in ("/", "\\") or not address.isprintable():
        return "/"
    return address
