"""Read requests strictly, for FastAPI to check against the models.

The library's own reader refuses NaN, Infinity and duplicate fields, with the same words as
everywhere, before the models see the body. Query fields that a route does not have are refused
like unknown fields of a body, and so are duplicate ones: a filter with a typo would show too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from fastapi import params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError
from residua.mechanisms.codec import parsed_json
from residua.service.problems import Problem, from_validation

MOST_FIELDS = 64
"""Query fields of one request that are looked at."""

Model = TypeVar("Model", bound=BaseModel)


class JsonRequest(Request):
    """A request whose JSON is read by the library."""

    _parsed: Any

    async def check(self, required: bool) -> None:
        """Read the body, all of it; raises unless it is JSON and says so."""
        raw = await self.body()
        if raw or required:
            check_type(self.headers.get("content-type"))
            self._parsed = parsed(raw)

    async def json(self) -> Any:
        return self._parsed


class StrictRoute(APIRoute):
    """A route that takes the query fields that it describes, and no others."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, lists = super().get_route_handler(), query_fields(self.endpoint)

        async def strict(request: Request) -> Response:
            if request.url.query:
                check_query(request.query_params, lists)
            return await handle(request)

        return strict


def query_fields(endpoint: Callable[..., Any]) -> dict[str, bool]:
    """The query fields that an endpoint takes, and whether each may come more than once."""
    hints = get_type_hints(endpoint, include_extras=True)
    stated = {name: get_args(hint) for name, hint in hints.items()}
    return {
        name: any(get_origin(one) is list for one in (parts[0], *get_args(parts[0])))
        for name, parts in stated.items()
        if any(isinstance(part, params.Query) for part in parts)
    }


def check_query(given: QueryParams, lists: Mapping[str, bool]) -> None:
    """Raise for query fields that are not among these, or come twice and are not lists."""
    names = Counter(name for name, _ in given.multi_items())
    if len(names) > MOST_FIELDS:
        raise Problem(422, "invalid-request", f"a query must have at most {MOST_FIELDS} fields")
    wrong = [
        {"type": "extra_forbidden", "loc": ("query", name), "msg": "Extra inputs are not permitted"}
        for name in names
        if name not in lists
    ]
    wrong += [
        {"type": "duplicate", "loc": ("query", name), "msg": "must come once"}
        for name, count in names.items()
        if count > 1 and lists.get(name) is False
    ]
    if wrong:
        raise RequestValidationError(wrong)


class JsonRoute(StrictRoute):
    """A route that takes a JSON body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, field = super().get_route_handler(), self.body_field

        async def strict(request: Request) -> Response:
            if field is not None:
                request = JsonRequest(request.scope, request.receive)
                await request.check(field.field_info.is_required())
            return await handle(request)

        return strict


def check_type(given: str | None) -> None:
    """A body must say that it is JSON; a browser's form cannot."""
    kind = (given or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(
            415, "not-json", f"Content-Type must be application/json, got {(given or 'none')[:100]}"
        )


def parsed(raw: bytes) -> Any:
    """The contents of a body."""
    try:
        return parsed_json("body", raw)
    except ArgumentError as error:
        raise Problem(400, "not-json", str(error)) from None
    except ValueError as error:  # A surrogate, a number beyond what is sane.
        raise Problem(400, "not-json", f"body must be valid JSON, got {error}") from None


def validated(model: type[Model], given: Any) -> Model:
    """The contents of a form, checked like a body."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise from_validation(error.errors(include_url=False, include_input=False)) from None
