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
from residua.service.pages.html import PageRoute, accept_form, page, read_form, redirect
from residua.service.pages.session import (
    CODE,
    check_form,
    check_origin,
    forget,
    remember,
    require_visitor,
)
from residua.service.problems import Problem

router = APIRouter(route_class=PageRoute)

BUDGETS_PER_PAGE = 60
"""Budgets on one page."""


@router.get("/")
async def home(request: Request) -> Response:
    """Show the budgets that the visitor may read."""
    context, visitor = context_of(request), await require_visitor(request)
    visitor.caller.require("read")
    after = request.query_params.get("after", "")
    listed = await context.run(list_budgets, context.ledger, visitor.caller, after)
    verified = context.verifier.last_result()
    read_only = problems.without_addresses(context.ledger.read_only or "") or None
    return page("home.html", visitor, **listed, verified=verified, read_only=read_only)


def list_budgets(ledger: Ledger, caller: Caller, after: str) -> dict[str, Any]:
    """The values of one page of budgets, sorted by name, after the name `after`."""
    page_budgets, following, count = page_of(ledger, caller, after, BUDGETS_PER_PAGE)
    return {"budgets": [row(one) for one in page_budgets], "count": count, "following": following}


@router.get("/login")
async def login_form(request: Request) -> Response:
    """Show the form that asks for a token."""
    return page("login.html", None, next=_local_address(request.query_params.get("next")))


@router.post("/login")
async def login(request: Request) -> Response:
    """Begin a session, if the token is valid."""
    check_origin(request)
    given = await read_form(request)
    token, after = given.get("token", "").strip(), _local_address(given.get("next"))
    try:
        await context_of(request).bearer(request, f"Bearer {token[:200]}")
    except Problem as problem:
        if problem.status == 401 and parse_token(token) is None:
            # The usual message is about a header, which a form does not have.
            problem.detail = "invalid token: tokens start with rz_"
        return page("login.html", None, next=after, problem=problem)
    response = redirect(after)
    remember(request, response, token)
    return response


@router.post("/logout")
async def logout(request: Request) -> Response:
    """End the session."""
    check_form(request, await require_visitor(request), (await read_form(request)).get(CODE))
    response = redirect("/login")
    forget(response)
    return response


@router.post("/verification")
async def start_verification(request: Request) -> Response:
    """Start to verify the ledger."""
    _, given = await accept_form(request, "audit")
    context_of(request).verifier.start()
    return redirect(_local_address(given.get("next")))


@router.get("/verification")
async def verification_result(request: Request) -> Response:
    """Show the result of the last verification, as a part of a page."""
    visitor = await require_visitor(request)
    visitor.caller.require("read")
    return page(
        "part_verification.html", visitor, verified=context_of(request).verifier.last_result()
    )


def _local_address(address: str | None) -> str:
    """The address if it is on this service, and `/` otherwise."""
    address = address or "/"
    if not address.startswith("/") or address[1:2] in ("/", "\\") or not address.isprintable():
        return "/"
    return address
