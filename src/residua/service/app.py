"""The application: routes, problems, the middleware around them, and the OpenAPI description.

The schemas of kinds in the description are derived from their classes: there is no second list.
Values that a kind does not allow (a negative scale) are answered with 422 and the library's own
words; the description has names and types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from residua.filters.codec import KINDS as FILTERS
from residua.filters.codec import filter_class
from residua.mechanisms.codec import FILTER, MECHANISM, SCHEMAS, kind_schema
from residua.mechanisms.codec import KINDS as MECHANISMS
from residua.service import pages, problems
from residua.service.api import models
from residua.service.api.routes import asking, budgets, planning, status
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
        budgets.history_router,
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


# -- the description -----------------------------------------------------------------


def complete(schema: dict[str, Any]) -> dict[str, Any]:
    """The description with the token and all kinds, without FastAPI's default for status 422."""
    if "securitySchemes" in schema.get("components", {}):
        return schema
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    _add_kinds(components)
    schema["security"] = [{"token": []}]
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            if path in ("/v1/health", "/v1/ready"):
                operation["security"] = []
            for code, response in operation["responses"].items():
                if code.isdigit() and int(code) >= 400:
                    content = response.setdefault("content", {})
                    content.clear()
                    content[problems.MEDIA_TYPE] = {
                        "schema": {"$ref": "#/components/schemas/ProblemDetails"}
                    }
    for model in components["schemas"].values():
        for field in model.get("properties", {}).values():
            if "description" in field:  # The text of a docstring, which has lines.
                field["description"] = " ".join(field["description"].split())
    for name in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(name, None)
    return schema


def _add_kinds(components: dict[str, Any]) -> None:
    """Put mechanisms, filters and examples of answers into the components of a description."""
    schemas = components["schemas"]
    steps = {"steps": {"type": "integer", "minimum": 1, "description": "How many in a row."}}
    schemas[MECHANISM] = _any_of(
        MECHANISM, (kind_schema(cls, **steps) for cls in MECHANISMS.values())
    )
    schemas[FILTER] = _any_of(FILTER, (kind_schema(filter_class(kind)) for kind in FILTERS))
    for request in ("Ask", "Reserve"):
        _refer(schemas[request]["properties"]["mechanism"], MECHANISM)
    _refer(schemas["Plan"]["properties"]["mechanisms"]["items"], MECHANISM)
    _refer(schemas["NewBudget"]["properties"]["filter"], FILTER)
    # FastAPI leaves out nulls in examples that the models have, so they are put in here.
    for name, schema in schemas.items():
        model = getattr(models, name, None)
        if isinstance(model, type) and issubclass(model, models.Answer):
            schema["examples"] = [models.example(model)]


def _any_of(title: str, kinds: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "anyOf": list(kinds)}


def _refer(field: dict[str, Any], name: str) -> None:
    for word in ("type", "additionalProperties", "minProperties"):
        field.pop(word, None)
    field["$ref"] = SCHEMAS + name
