"""From a body to checked data, and from an answer to JSON; the problems of every route.

The library's own reader refuses NaN, Infinity and duplicate fields, with the same words as
everywhere, before the models see a body. Query fields that a route does not have are refused
like unknown fields of a body, and so are duplicate ones: a filter with a typo would show too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from fastapi import Header, Path, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError
from residua.mechanisms.codec import parsed_json
from residua.service import problems
from residua.service.api.models import LONGEST_KEY, LONGEST_NAME, ProblemDetails
from residua.service.api.models import Request as TakenIn
from residua.service.middleware import WITHOUT_TOKEN, encode_json
from residua.service.problems import Problem, from_validation


def _key(given: str | None) -> str | None:
    if given is not None and not (0 < len(given) <= LONGEST_KEY and given.isprintable()):
        raise ValueError(f"Idempotency-Key must be 1 to {LONGEST_KEY} printable characters")
    return given


BudgetName = Annotated[
    str, Path(min_length=1, max_length=LONGEST_NAME, description="The name of a budget.")
]
IdempotencyKey = Annotated[
    str | None,
    AfterValidator(_key),
    Header(
        description="The same as `key` in the body. If both are given, they must be equal.",
        json_schema_extra={"minLength": 1, "maxLength": LONGEST_KEY},
    ),
]


class Json(Response):
    """JSON that was encoded before, in a thread that has the time."""

    media_type = "application/json"


def encode_as(model: type[BaseModel], data: Any) -> bytes:
    """An answer as its model describes it, encoded; raises where it is another."""
    model.model_validate(data)
    return encode_json(data)


_SAID = {
    400: "The body is not JSON, or the request can be read in two ways.",
    401: "No valid token.",
    403: "The token does not permit this, or not for this budget.",
    404: "No such budget or reservation.",
    408: "The body arrived too slowly.",
    409: "It conflicts with the ledger: the key or name is in use, or the budget is closed.",
    413: "The request is too large.",
    415: "The body is not declared as JSON.",
    422: "The request does not match its description, or an argument's value is not allowed.",
    429: "Too many requests.",
    503: "The store is unavailable, read-only after a restore, or too many requests wait.",
}
Documented = dict[int | str, dict[str, Any]]


def problem_responses(*statuses: int) -> Documented:
    """Problems of a route, for its description."""
    return {
        status: {
            "model": ProblemDetails,
            "description": _SAID[status],
            "content": {problems.MEDIA_TYPE: {}},
        }
        for status in sorted(statuses)
    }


CONFLICT = problem_responses(409)


def json_lines(description: str) -> Documented:
    """An answer that is sent as JSON Lines."""
    return {200: {"content": {"application/jsonl": {}}, "description": description}}


MOST_FIELDS = 64
"""Query fields of one request that are looked at."""

Model = TypeVar("Model", bound=BaseModel)


class JsonRequest(Request):
    """A request whose JSON is read by the library."""

    _parsed: Any

    async def check(self, required: bool) -> None:
        """Read the body, all of it; raises unless it is JSON and says so."""
        raw = await self.body()
        if not (raw or required):
            return
        given = self.headers.get("content-type", "none")
        if given.partition(";")[0].strip().lower() != "application/json":  # No browser's form can.
            detail = f"Content-Type must be application/json, got {given[:100]}"
            raise Problem("not-json", detail, status=415)
        try:
            self._parsed = parsed_json("body", raw)
        except ArgumentError as error:
            raise Problem("not-json", str(error)) from None
        except ValueError as error:  # A surrogate, a number beyond what is sane.
            raise Problem("not-json", f"body must be valid JSON, got {error}") from None

    async def json(self) -> Any:
        return self._parsed


class StrictRoute(APIRoute):
    """A route that takes the query fields and the JSON body that it describes, and nothing else.

    The problems that it may answer with follow from what it takes.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: Documented | None = None,
        **options: Any,
    ):
        hints = get_type_hints(endpoint).values()
        takes_body = any(isinstance(one, type) and issubclass(one, TakenIn) for one in hints)
        statuses = {422} if path in WITHOUT_TOKEN else {400, 401, 403, 422, 429, 503}
        statuses |= {404} if takes_body or "{" in path else set()
        statuses |= {408, 413, 415} if takes_body else set()
        every = {**problem_responses(*statuses), **(responses or {})}
        super().__init__(
            path,
            endpoint,
            responses=dict(sorted(every.items(), key=str)),
            **options,
        )

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, lists = super().get_route_handler(), query_fields(self.endpoint)
        field = self.body_field

        async def strict(request: Request) -> Response:
            if request.url.query:
                check_query(request.query_params, lists)
            if field is not None:
                request = JsonRequest(request.scope, request.receive)
                await request.check(field.field_info.is_required())
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
        raise Problem("invalid-request", f"a query must have at most {MOST_FIELDS} fields")
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


def validate(model: type[Model], given: Any) -> Model:
    """The contents of a form, checked like a body."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise from_validation(error.errors(include_url=False)) from None
