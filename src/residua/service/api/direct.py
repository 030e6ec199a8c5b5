"""Routes that FastAPI describes and nobody stands in front of.

FastAPI's way from a request to a function (dependencies, fields, a model for the answer) takes
longer than a decision of the ledger. For the few routes that engines call all day the body is read
and checked here (`reading.py`), and the function returns its response itself. The function's
signature is what the OpenAPI description is made of, as everywhere; `caller_of` says who asks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from residua.service.api.reading import read
from residua.service.context import office_of

HEADER = "idempotency_key"


class Direct(APIRoute):
    """A route whose function takes `request`, path parameters, perhaps `body` and a key."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint = self.endpoint
        parameters = inspect.signature(endpoint).parameters
        model = get_type_hints(endpoint).get("body")
        optional = (
            "body" in parameters and parameters["body"].default is not inspect.Parameter.empty
        )
        takes_key = HEADER in parameters

        async def handle(request: Request) -> Response:
            # Nobody's body is read before they are somebody.
            await office_of(request).caller(request)
            given: dict[str, Any] = dict(request.path_params)
            if model is not None:
                assert issubclass(model, BaseModel)
                given["body"] = await read(request, model, optional=optional)
            if takes_key:
                given[HEADER] = request.headers.get("idempotency-key")
            response: Response = await endpoint(request, **given)
            return response

        return handle
