"""Answers, and the problems that every route may answer with."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Path
from starlette.responses import Response

from residua.service import problems
from residua.service.api.models import LONGEST_KEY, LONGEST_NAME, ProblemDetails
from residua.service.middleware import encoded

BudgetName = Annotated[
    str, Path(min_length=1, max_length=LONGEST_NAME, description="The name of a budget.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=LONGEST_KEY,
        description="The same as `key` in the body. Where both are given they must be equal.",
    ),
]


class Json(Response):
    """A JSON object."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200):
        # What the base class does, for an answer whose headers are known.
        self.status_code, self.background = status_code, None
        self.body = encoded(content)
        length = str(len(self.body)).encode()
        self.raw_headers = [(b"content-length", length), (b"content-type", b"application/json")]


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route for its description: those of all, and its own."""
    said = {
        400: "The body is not JSON.",
        401: "No valid token.",
        403: "The token does not permit this, or not for this budget.",
        404: "No such budget or reservation.",
        408: "The body came too slowly.",
        409: "It conflicts with what the ledger has: the key, the name, or the budget is closed.",
        413: "The request is too large.",
        415: "The body does not say that it is JSON.",
        422: "The request is not as described, or an argument's value is not allowed.",
        429: "Too many requests.",
        503: "The store is unavailable, or read-only after a restore.",
    }
    return {
        status: {
            "model": ProblemDetails,
            "description": said[status],
            "content": {problems.MEDIA_TYPE: {}},
        }
        for status in sorted({401, 403, 429, 503, *statuses})
    }
