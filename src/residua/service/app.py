"""The application: routes, problems, and the middleware around them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ResiduaError
from residua.service import logs, pages, problems
from residua.service.api.openapi import complete
from residua.service.api.routes import asking, budgets, history, planning, status
from residua.service.context import ServiceContext
from residua.service.middleware import (
    Authentication,
    Limits,
    Observation,
    encoded,
    is_api,
)
from residua.service.pages.html import trouble
from residua.service.pages.session import perhaps
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
    app.add_middleware(Observation, metrics=context.metrics)
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
    for kind in (Problem, ResiduaError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)
    plain = app.openapi

    def described() -> dict[str, Any]:
        return complete(plain())

    app.openapi = described  # type: ignore[method-assign]
    return app


async def _answer(request: Request, error: Exception) -> Response:
    logs.store_failure(error, request.scope["state"].get("request_id", ""))
    problem = _problem(error)
    if problem is None:
        # Not the caller's business: the middleware logs it and answers.
        raise error
    if _is_for_people(request):
        await perhaps(request)
        return trouble(request, problem)
    return Response(
        encoded(problems.body(problem, request.scope["state"].get("request_id"))),
        problem.status,
        problem.headers,
        problems.MEDIA_TYPE,
    )


def _is_for_people(request: Request) -> bool:
    """Whether a browser is to show the answer, at an address that is not of the API."""
    return not is_api(request.url.path) and "text/html" in request.headers.get("accept", "")


def _problem(error: Exception) -> Problem | None:
    if isinstance(error, RequestValidationError):
        return problems.from_validation(error.errors())
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        if error.status_code == 405:
            return Problem(405, "method-not-allowed", "this method is not allowed here", headers)
        if error.status_code == 404:
            return Problem(404, "not-found", "there is nothing at this address", headers)
        return Problem(error.status_code, "invalid-request", str(error.detail), headers)
    return problems.problem_of(error)
