"""Answers, and the problems that every route may answer with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Path
from pydantic import AfterValidator, BaseModel
from starlette.responses import Response

from residua.service import problems
from residua.service.api.models import LONGEST_KEY, LONGEST_NAME, ProblemDetails
from residua.service.middleware import encoded


def _key(given: str | None) -> str | None:
    if given is not None and not (0 < len(given) <= LONGEST_KEY and given.isprintable()):
        raise ValueError(
            f"Idempotency-Key must be 1 to {LONGEST_KEY} printable characters, got {len(given)}"
        )
    return given


BudgetName = Annotated[
    str, Path(min_length=1, max_length=LONGEST_NAME, description="The name of a budget.")
]
IdempotencyKey = Annotated[
    str | None,
    AfterValidator(_key),
    Header(
        description="The same as `key` in the body. Where both are given they must be equal.",
        json_schema_extra={"minLength": 1, "maxLength": LONGEST_KEY},
    ),
]


class Json(Response):
    """JSON that was encoded before, in a thread that has the time."""

    media_type = "application/json"


def shaped(model: type[BaseModel], data: Any) -> bytes:
    """An answer as its model describes it, encoded; raises where it is another."""
    model.model_validate(data)
    return encoded(data)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route for its description: those of all, and its own."""
    said = {
        400: "The body is not JSON, or the request can be read in two ways.",
        401: "No valid token.",
        403: "The token does not permit this, or not for this budget.",
        404: "No such budget or reservation.",
        408: "The body came too slowly.",
        409: "It conflicts with what the ledger has: the key, the name, or the budget is closed.",
        413: "The request is too large.",
        415: "The body does not say that it is JSON.",
        422: "The request is not as described, or an argument's value is not allowed.",
        429: "Too many requests.",
        503: "The store is unavailable, read-only after a restore, or too many requests wait.",
    }
    return {
        status: {
            "model": ProblemDetails,
            "description": said[status],
            "content": {problems.MEDIA_TYPE: {}},
        }
        for status in sorted({400, 401, 403, 422, 429, 503, *statuses})
    }
