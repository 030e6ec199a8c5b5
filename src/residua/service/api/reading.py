"""Bodies of requests, read strictly.

JSON has neither NaN nor Infinity, and a field stands once: both are refused here with the same
words that the library has for them, before anything else looks at the body.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from residua.errors import ArgumentError
from residua.mechanisms.codec import parsed_json
from residua.service.problems import Problem, from_validation

PATIENCE = 30.0
Model = TypeVar("Model", bound=BaseModel)


async def read(request: Request, model: type[Model], *, optional: bool = False) -> Model:
    """The body as a model; an empty one where that is allowed."""
    raw = await received(request, "not-json")
    if optional and not raw:
        return model()
    check_type(request.headers.get("content-type"))
    return validated(model, parsed(raw))


async def received(request: Request, early: str) -> bytes:
    """A body, all of it and in time; `early` names the problem of one that ends before."""
    try:
        async with asyncio.timeout(PATIENCE):
            first = await request.receive()
            if first["type"] == "http.request" and not first.get("more_body", False):
                # All of it, as a rule.
                whole: bytes = first.get("body", b"")
                return whole
            return await _rest(request, first)
    except TimeoutError:
        raise Problem(408, "too-slow", f"a body must come within {PATIENCE:g} seconds") from None
    except ClientDisconnect:
        raise Problem(400, early, "the body ended early") from None


async def _rest(request: Request, first: Message) -> bytes:
    """A body that comes in pieces, of which the first was read."""
    pieces, message = [], first
    while message["type"] == "http.request":
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)
        message = await request.receive()
    raise ClientDisconnect


def check_type(given: str | None) -> None:
    """A body must say that it is JSON; a browser's form cannot."""
    kind = (given or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(
            415, "not-json", f"Content-Type must be application/json, got {(given or 'none')[:100]}"
        )


def parsed(raw: bytes) -> Any:
    """What a body says."""
    try:
        return parsed_json("body", raw)
    except ArgumentError as error:
        raise Problem(400, "not-json", str(error)) from None
    except ValueError as error:  # A surrogate, a number beyond what is sane.
        raise Problem(400, "not-json", f"body must be valid JSON, got {error}") from None


def validated(model: type[Model], given: Any) -> Model:
    """What a body says, checked."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise from_validation(error.errors(include_url=False, include_input=False)) from None
