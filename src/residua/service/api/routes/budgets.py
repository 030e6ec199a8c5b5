"""Budgets: create, list, show, retire, refresh."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from residua.ledger.operations.early_rulings import Compute
from residua.service.api import models, values
from residua.service.api.responses import CONFLICT, BudgetName, Json, StrictRoute, shaped
from residua.service.context import caller_of, context_of, permitted

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
    context, caller = permitted(request, "manage")

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
    context, caller = permitted(request, "read")

    def work(compute: Compute) -> bytes:
        every = (one for one in context.ledger.budgets() if caller.sees(one.name))
        seen = sorted(every, key=lambda one: one.name)
        rest = [one for one in seen if after is None or one.name > after]
        page = rest[:limit]
        following = page[-1].name if len(rest) > limit else None
        items = values.budgets_to_data(page, compute)
        return shaped(models.Budgets, {"items": items, "next": following})

    return Json(await context.compute(request, caller, work))


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
    context, caller = permitted(request, "manage", name)

    await context.run(
        lambda: context.ledger.as_principal(caller.principal).retire(name, body.reason)
    )
    return Json(await _shown(request, name))


@router.post(
    "/budgets/{name}/refresh",
    summary="Begin a new window",
    response_model=models.Budgeted,
    responses=CONFLICT,
)
async def refresh(request: Request, name: BudgetName) -> Response:
    """Begin the next window of a budget that has windows, if its time has come."""
    context, caller = permitted(request, "manage", name)

    await context.run(lambda: context.ledger.as_principal(caller.principal).refresh(name))
    return Json(await _shown(request, name))


async def _shown(request: Request, name: str) -> bytes:
    context = context_of(request)

    def work(compute: Compute) -> bytes:
        (data,) = values.budgets_to_data([context.ledger.budget(name)], compute)
        return shaped(models.Budgeted, data)

    return await context.compute(request, caller_of(request), work)
