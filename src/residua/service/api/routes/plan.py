"""Planning: how many more of a query fit, and the least noise that does. Nothing is spent."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import TooLargeError
from residua.filters.base import Filter
from residua.filters.describe import as_mechanism
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.described_query import asked as described
from residua.ledger.domain.receipts import plain
from residua.mechanisms.codec import from_dict
from residua.mechanisms.mechanism import Mechanism
from residua.planning import count_more, least_noise
from residua.service.api import models
from residua.service.api.bodies import JsonRoute
from residua.service.api.responses import BudgetName, Json, documented, shaped
from residua.service.context import caller_of, office_of

router = APIRouter(prefix="/v1", tags=["planning"], route_class=JsonRoute)

PATIENCE = 2.0
"""Seconds that a plan may take, more or less."""
FIRST = 64


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

    def work() -> bytes:
        return shaped(models.Planned, planned(office.ledger, name, body))

    return Json(await office.run_for(caller, work))


def planned(ledger: Ledger, name: str, body: models.Plan) -> dict[str, Any]:
    """How many more would fit, and with how little noise."""
    asked = [from_dict(one) for one in body.mechanisms]
    budget = ledger.budget(name)
    at: dict[str, Any] = {"state": budget.state, "relation": budget.relation}
    if any(described(one).contradicts(budget.relation, budget.unit) for one in asked):
        return {
            "how_many": 0,
            "rounds": 0,
            "counting_ended": False,
            "n": body.n,
            "least_noise": None,
            "remaining": plain(budget.remaining),
        }
    count, ended, pace = counted(budget.filter, asked, body.most, at)
    if pace * body.n * len(asked) > PATIENCE:
        raise TooLargeError(
            f"n must be small enough to be tried out for this filter, got {body.n}; each try"
            f" takes about {pace:.2g} s a query"
        )
    least = least_noise(budget.filter, asked, body.n, **at)
    return {
        "how_many": count,
        "rounds": count // len(asked),
        "counting_ended": ended,
        "n": body.n,
        "least_noise": None if least is None else [as_mechanism(one).to_dict() for one in least],
        "remaining": plain(budget.remaining),
    }


def counted(
    filter: Filter, asked: list[Mechanism], most: int, at: dict[str, Any]
) -> tuple[int, bool, float]:
    """How many fit, whether counting ended before a refusal, and the seconds that a decision took.

    Some filters decide each query one by one, so counting goes as far as there is patience.
    """
    start = time.monotonic()
    upto = min(most, FIRST)
    while True:
        begun = time.monotonic()
        count, ended = count_more(filter, asked, most=upto, **at)
        pace = (time.monotonic() - begun) / max(1, count)
        if count < upto or upto == most or time.monotonic() - start > PATIENCE / 3:
            return count, ended, pace
        upto = min(most, 4 * upto)
