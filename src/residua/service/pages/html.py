"""From a template to an answer: escaped, and with a policy under which nothing foreign can run.

Style, scripts and the icon are read once, named by their contents, and cached by browsers for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from residua.service import problems
from residua.service.pages.session import CODE, Visitor, check_form, known_visitor, require_visitor
from residua.service.problems import Problem

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    # Without one a browser would say that our own forms come from nowhere.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
PART = "x-residua-part"
"""Sent by our scripts: they want the answer alone, without the page around it."""

_templates = Environment(
    loader=PackageLoader("residua.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_templates.filters["segment"] = lambda text: quote(text, safe="")


def page(
    template: str,
    visitor: Visitor | None,
    status: int = 200,
    *,
    problem: Problem | None = None,
    **values: Any,
) -> Response:
    """Render a template for a visitor; the status is that of the problem, if there is one."""
    caller = None if visitor is None else visitor.caller
    text = _templates.get_template(template).render(
        visitor=visitor, caller=caller, problem=problem, **values
    )
    status = status if problem is None else problem.status
    return Response(text, status, HEADERS, "text/html; charset=utf-8")


def wants_part(request: Request) -> bool:
    """Whether one of our scripts sent the request, and wants a part of a page."""
    return PART in request.headers


def redirect(address: str) -> Response:
    """Redirect the browser to an address, which it then opens by GET."""
    return RedirectResponse(address, 303, HEADERS)


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; of several fields with one name, the last counts."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem(
            "invalid-request", f"a form must be sent as form data, got {kind[:100]!r}", status=415
        )
    raw = await request.body()
    try:
        fields = parse_qsl(raw.decode("utf-8"), True, errors="strict", max_num_fields=64)
    except ValueError:
        raise Problem(
            "invalid-request", "the form does not belong to these pages", status=400
        ) from None
    return dict(fields)


async def accept_form(
    request: Request, permission: str, *budgets: str
) -> tuple[Visitor, dict[str, str]]:
    """The visitor who sends a form, and its fields; raises on foreign and forbidden forms."""
    visitor = await require_visitor(request)
    fields = await read_form(request)
    check_form(request, visitor, fields.get(CODE))
    visitor.caller.require(permission, *budgets)
    return visitor, fields


def visible(error: Exception) -> Problem:
    """The problem that a visitor sees for an error; raises internal errors again."""
    problem = problems.problem_of(error)
    if problem is None:
        raise error
    return problem


class PageRoute(APIRoute):
    """A route for people: visitors who are not logged in are asked to, and problems are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint = self.endpoint

        async def handle(request: Request) -> Response:
            try:
                response: Response = await endpoint(request, **request.path_params)
                return response
            except Exception as error:
                # The middleware logs internal errors and answers.
                return trouble(request, visible(error))

        return handle


def trouble(request: Request, problem: Problem) -> Response:
    """A problem as a page, in the words that the library has for it."""
    if wants_part(request):
        response = page("part_problem.html", None, problem=problem)
    elif problem.status == 401 and request.url.path != "/login":
        back = request.url.path if request.method == "GET" else "/"
        return redirect(f"/login?next={quote(back, safe='')}")
    else:
        response = page("problem.html", known_visitor(request), problem=problem)
    response.headers.update(problem.headers)
    return response


router = APIRouter()

_KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FILES = {
    each.name: each.read_bytes()
    for each in files("residua.service.pages").joinpath("static").iterdir()
    if each.name.rpartition(".")[2] in _KINDS
}
VERSION = hashlib.sha256(b"".join(FILES[name] for name in sorted(FILES))).hexdigest()[:12]
"""Changes with any of them, since scripts import each other by bare names beside them."""


def address(name: str) -> str:
    """Where a file is served."""
    assert name in FILES, name
    return f"/static/{VERSION}/{name}"


_templates.globals["static"] = address


@router.get("/static/{version}/{name}")
async def static(_request: Request, version: str, name: str) -> Response:
    """One file."""
    if name not in FILES or version != VERSION:
        raise Problem("not-found", "there is nothing at this address")
    return Response(
        FILES[name],
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
        media_type=_KINDS[name.rpartition(".")[2]],
    )
