"""Curves of a budget: the whole, the spent, the left and the promised."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from residua.ledger.operations.early_rulings import Compute
from residua.service.api import models
from residua.service.api.bodies import StrictRoute
from residua.service.api.drawn import drawn
from residua.service.api.responses import BudgetName, Json, documented, shaped
from residua.service.context import caller_of, office_of

router = APIRouter(prefix="/v1", tags=["planning"], route_class=StrictRoute)


@router.get(
    "/budgets/{name}/curves",
    summary="Curves",
    response_model=models.Curves,
    responses=documented(404, 422),
)
async def curves(
    request: Request,
    name: BudgetName,
    points: Annotated[int, Query(ge=2, le=401)] = 81,
) -> Response:
    """Hockey-stick (delta over eps) and tradeoff (type II over type I error) points.

    Deltas are rounded up and errors down: the curve of the true loss is on the private side.
    """
    office, caller = office_of(request), caller_of(request)
    caller.require("read", name)

    def work(compute: Compute) -> bytes:
        budget = office.ledger.budget(name).detached()
        return shaped(models.Curves, compute(drawn, budget, points))

    return Json(await office.compute(request, caller, work))
