"""Planning: how many more copies of a query fit, and the least noise that fits. Spends nothing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.ledger.operations.early_rulings import Compute
from residua.mechanisms.codec import from_dict
from residua.service.api import models
from residua.service.api.planned import planned
from residua.service.api.responses import BudgetName, Json, JsonRoute, documented, shaped
from residua.service.context import caller_of, office_of

router = APIRouter(prefix="/v1", tags=["planning"], route_class=JsonRoute)


@router.post(
    "/budgets/{name}/plan",
    summary="Plan",
    response_model=models.Planned,
    responses=documented(400, 404, 408, 413, 415, 422),
)
async def plan(request: Request, name: BudgetName, body: models.Plan) -> Response:
    """How many more of these queries, asked in turn, the budget's own filter would admit.

    The budget's parents and open reservations may allow fewer: `check` asks them as well.
    """
    office, caller = office_of(request), caller_of(request)
    caller.require("plan", name)

    def work(compute: Compute) -> bytes:
        asked = [from_dict(one) for one in body.mechanisms]
        budget = office.ledger.budget(name).detached()
        return shaped(models.Planned, compute(planned, budget, asked, body.n, body.most))

    return Json(await office.compute(request, caller, work))
