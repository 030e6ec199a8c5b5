"""The history of a budget: in pages, filtered, or all of it as JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from residua.records import FIELDS, Record, lines
from residua.service.api import models, values
from residua.service.api.responses import BudgetName, Json, StrictRoute, encode_as, json_lines
from residua.service.context import ServiceContext, authorize

router = APIRouter(prefix="/v1", tags=["history"], route_class=StrictRoute)

Type = Literal["create", "spend", "hold", "commit", "cancel", "expire", "refresh", "retire",
               "recover", "resume"]  # fmt: skip
assert set(Type.__args__) == set(FIELDS)  # type: ignore[attr-defined]

AT_ONCE = 500
"""Records read from the store at once."""
MOST_SEEN = 20_000
"""Records looked at for one answer: however few of them are wanted, it comes soon."""


@router.get("/budgets/{name}/history", response_model=models.History)
async def history(
    request: Request,
    name: BudgetName,
    after: Annotated[
        int | None, Query(ge=-1, le=2**31 - 1, description="The last seq seen.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    type: Annotated[list[Type] | None, Query(description="Only records of these types.")] = None,
    admitted: Annotated[bool | None, Query(description="Only admitted, or only refused.")] = None,
    key: Annotated[str | None, Query(max_length=models.LONGEST_KEY)] = None,
    by: Annotated[str | None, Query(max_length=100, description="Only by this principal.")] = None,
) -> Response:
    """The records of a budget in order; `next` is `after` of the next page, if there is one.

    With a filter a page may be short, even empty, and yet have a next one.
    """
    context, _ = authorize(request, "read", name)

    def wanted(record: Record) -> bool:
        return (
            (type is None or record.type in type)
            and (admitted is None or record.admitted is admitted)
            and (key is None or record.key == key)
            and (by is None or record.body["by"] == by)
        )

    def work() -> bytes:
        found: list[Record] = []
        following: int | None = None
        for seen, record in enumerate(records(context, name, after)):
            if wanted(record):
                if len(found) == limit:
                    following = found[-1].seq
                    break
                found.append(record)
            if seen == MOST_SEEN:
                following = record.seq
                break
        items = [values.record_to_dict(one) for one in found]
        return encode_as(models.History, {"items": items, "next": following})

    return Json(await context.run(work))


@router.get(
    "/budgets/{name}/export",
    summary="Export the history",
    response_class=StreamingResponse,
    responses=json_lines("The records, one per line."),
)
async def export(request: Request, name: BudgetName) -> Response:
    """The whole chain of a budget as JSON Lines, each record with its hash."""
    context, _ = authorize(request, "read", name)
    await context.run(context.ledger.budget, name)
    return StreamingResponse(lines(records(context, name, None)), media_type="application/jsonl")


def records(context: ServiceContext, name: str, after: int | None) -> Iterator[Record]:
    """All records of a budget after a number, read a few at a time."""
    while True:
        page = list(context.ledger.history(name, after=after, limit=AT_ONCE))
        yield from page
        if len(page) < AT_ONCE:
            return
        after = page[-1].seq
