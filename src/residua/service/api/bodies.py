"""Read bodies of requests strictly, for FastAPI to check against the models.

The library's own reader refuses NaN, Infinity and duplicate fields, with the same words as
everywhere, before the models see the body.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError
from residua.mechanisms.codec import parsed_json
from residua.service.problems import Problem, from_validation

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


class JsonRoute(APIRoute):
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
