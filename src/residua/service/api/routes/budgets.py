"""Budgets: create, list, show, retire, refresh; and the history of each, in pages or as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from residua.ledger.api.ledger import Ledger
from residua.ledger.api.views import Budget
from residua.ledger.operations.early_decisions import Compute, quickly
from residua.records import FIELDS, Record, lines
from residua.service.api import models, values
from residua.service.api.responses import (
    CONFLICT,
    BudgetName,
    Json,
    StrictRoute,
    encode_as,
    json_lines,
)
from residua.service.auth import Caller
from residua.service.context import ServiceContext, authorize, caller_of, context_of

router = APIRouter(prefix="/v1", tags=["budgets"], route_class=StrictRoute)


@router.post(
    "/budgets",
    summary="Create a budget",
    status_code=201,
    response_model=models.Budgeted,
    responses=CONFLICT,
)
async def create(request: Request, body: models.NewBudget) -> Response:
    """Create a budget with a filter. What a budget promises is fixed from then on."""
    context, caller = authorize(request, "manage")

    ledger = context.ledger.as_principal(caller.principal)

    def work(compute: Compute) -> None:
        ledger.with_compute(compute).create_budget(**body.model_dump())

    await context.compute(request, caller, work)
    return Json(await _shown(request, body.name), status_code=201)


@router.get("/budgets", summary="List budgets", response_model=models.Budgets)
async def every(
    request: Request,
    after: Annotated[
        str | None, Query(max_length=models.LONGEST_NAME, description="The last name seen.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The budgets in scope, by name, with what is left of each."""
    context, caller = authorize(request, "read")

    def work(compute: Compute) -> bytes:
        page, following, _ = page_of(context.ledger, caller, after or "", limit)
        items = quickly(compute, values.plain_data, [one.detached() for one in page])
        return encode_as(models.Budgets, {"items": items, "next": following})

    return Json(await context.compute(request, caller, work))


def page_of(
    ledger: Ledger, caller: Caller, after: str, limit: int
) -> tuple[list[Budget], str | None, int]:
    """Budgets in scope by name, after a name; after which the next ones are; how many there are."""
    every = sorted(
        (one for one in ledger.budgets() if caller.sees(one.name)), key=lambda one: one.name
    )
    rest = [one for one in every if one.name > after]
    page = rest[:limit]
    return page, page[-1].name if len(rest) > limit else None, len(every)


@router.get("/budgets/{name}", summary="Show a budget", response_model=models.Budgeted)
async def show(request: Request, name: BudgetName) -> Response:
    """A budget, its state and what is left of it, rounded down."""
    caller_of(request).require("read", name)
    return Json(await _shown(request, name))


@router.post(
    "/budgets/{name}/retire",
    summary="Retire a budget",
    response_model=models.Budgeted,
    responses=CONFLICT,
)
async def retire(request: Request, name: BudgetName, body: models.Retirement) -> Response:
    """Close a budget for good. Its history stays."""
    context, caller = authorize(request, "manage", name)
    await context.run(context.ledger.as_principal(caller.principal).retire, name, body.reason)
    return Json(await _shown(request, name))


@router.post(
    "/budgets/{name}/refresh",
    summary="Begin a new window",
    response_model=models.Budgeted,
    responses=CONFLICT,
)
async def refresh(request: Request, name: BudgetName) -> Response:
    """Begin the next window of a budget that has windows, if its time has come."""
    context, caller = authorize(request, "manage", name)
    await context.run(context.ledger.as_principal(caller.principal).refresh, name)
    return Json(await _shown(request, name))


async def _shown(request: Request, name: str) -> bytes:
    context = context_of(request)

    def work(compute: Compute) -> bytes:
        budget = context.ledger.budget(name).detached()
        return encode_as(models.Budgeted, quickly(compute, values.budget_to_dict, budget))

    return await context.compute(request, caller_of(request), work)


# -- history --------------------------------------------------------------------------


history_router = APIRouter(prefix="/v1", tags=["history"], route_class=StrictRoute)

Type = Literal["create", "spend", "hold", "commit", "cancel", "expire", "refresh", "retire",
               "recover", "resume", "table"]  # fmt: skip
assert set(Type.__args__) == set(FIELDS)  # type: ignore[attr-defined]

AT_ONCE = 500
"""Records read from the store at once."""
MOST_SEEN = 20_000
"""Records looked at for one answer: however few of them are wanted, it comes soon."""


@history_router.get("/budgets/{name}/history", response_model=models.History)
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


@history_router.get(
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
