"""The application: routes, problems, and the middleware around them."""

from __future__ import annotations

from typing import Any, NoReturn

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from residua.service import pages, problems
from residua.service.api.openapi import complete
from residua.service.api.routes import asking, budgets, history, planning, status
from residua.service.context import ServiceContext
from residua.service.middleware import (
    Authentication,
    Limits,
    Observation,
    encode_json,
    is_api,
)
from residua.service.pages.html import trouble
from residua.service.pages.session import visitor_or_none
from residua.service.problems import Problem
from residua.version import __version__

DESCRIPTION = """A budget service: filters decide what differential-privacy queries may run, and a
ledger keeps what they decided. A refusal is an answer with `admitted: false`, not an error; errors
are problem details (RFC 9457)."""


def create_app(context: ServiceContext) -> FastAPI:
    """The application of a service."""
    app = description()
    app.state.context = context
    # The last one added is the first one that a request meets.
    app.add_middleware(Authentication, context=context)
    app.add_middleware(Limits, settings=context.settings, connections=context.connections)
    app.add_middleware(Observation, metrics=context.metrics, render_problem=show)
    return app


def description() -> FastAPI:
    """Routes without a running service: all that the OpenAPI description needs."""
    app = FastAPI(
        title="residua",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/v1/openapi.json",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    for router in (
        asking.router,
        budgets.router,
        history.router,
        planning.router,
        status.router,
    ):
        app.include_router(router)
    app.include_router(pages.router)
    for kind in (RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _raise)
    plain = app.openapi

    def described() -> dict[str, Any]:
        return complete(plain())

    app.openapi = described  # type: ignore[method-assign]
    return app


async def _raise(_request: Request, error: Exception) -> NoReturn:
    """Leave an exception to the middleware, in place of FastAPI's own answers."""
    raise error


async def show(request: Request, problem: Problem) -> Response:
    """A problem as an answer: a page for a browser, at an address that is not of the API."""
    if not is_api(request.url.path) and "text/html" in request.headers.get("accept", ""):
        await visitor_or_none(request)
        return trouble(request, problem)
    content = encode_json(problems.body(problem, request.scope["state"]["request_id"]))
    return Response(content, problem.status, problem.headers, problems.MEDIA_TYPE)
