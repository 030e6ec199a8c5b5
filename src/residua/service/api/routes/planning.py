"""Planning and curves: how many more queries fit, with how little noise. Nothing is spent.

A worker computes these, so `curves_of` and `plan_of` are pure functions.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from residua import work_limit
from residua.errors import ResiduaError
from residua.filters.base import Filter
from residua.filters.counting import Count
from residua.filters.query import as_mechanism
from residua.ledger.api.views import Budget
from residua.ledger.domain.described_query import describe_query as described
from residua.ledger.domain.receipts import plain
from residua.ledger.operations.early_decisions import Compute
from residua.mechanisms.codec import from_dict
from residua.mechanisms.mechanism import Mechanism
from residua.planning import count_more, least_noise
from residua.pld.pld import Pld
from residua.service.api import models
from residua.service.api.responses import BudgetName, Json, StrictRoute, encode_as
from residua.service.context import authorize
from residua.work_limit import OPERATIONS, limited

router = APIRouter(prefix="/v1", tags=["planning"], route_class=StrictRoute)

MOST_WORK = OPERATIONS // 3
"""Of a plan; as with a decision, it is counted, so that the same request gets the same answer."""
FURTHEST = 50.0
"""The largest eps that is drawn."""


@router.get("/budgets/{name}/curves", response_model=models.Curves)
async def curves(
    request: Request,
    name: BudgetName,
    points: Annotated[int, Query(ge=2, le=401)] = 81,
) -> Response:
    """Hockey-stick (delta over eps) and tradeoff (type II over type I error) points.

    Deltas are rounded up and errors down: the curve of the true loss is on the private side.
    """
    context, caller = authorize(request, "read", name)

    def work(compute: Compute) -> bytes:
        budget = context.ledger.budget(name).detached()
        return encode_as(models.Curves, compute(curves_of, budget, points))

    return Json(await context.compute(request, caller, work))


@router.post("/budgets/{name}/plan", response_model=models.Planned)
async def plan(request: Request, name: BudgetName, body: models.Plan) -> Response:
    """How many more of these queries, asked in turn, the budget's own filter would admit.

    The budget's parents and open reservations may allow fewer: `check` asks them as well.
    """
    context, caller = authorize(request, "plan", name)

    def work(compute: Compute) -> bytes:
        queries = [from_dict(one) for one in body.mechanisms]
        budget = context.ledger.budget(name).detached()
        return encode_as(models.Planned, compute(plan_of, budget, queries, body.n, body.most))

    return Json(await context.compute(request, caller, work))


def curves_of(budget: Budget, points: int) -> dict[str, Any]:
    """The curves of a budget: the whole, the spent, the left and the promised."""
    plds = {
        part: _pld_of(getattr(budget, part, None)) for part in ("capacity", "spent", "remaining")
    }
    plds["guarantee"] = _pld_of(budget.filter.guarantee)
    top = widest([pld for pld in plds.values() if pld is not None])
    curves = {part: None if pld is None else curve(pld, points, top) for part, pld in plds.items()}
    return {"budget": budget.name, "seq": budget.seq, **curves}


def _pld_of(value: Any) -> Pld | None:
    """The PLD of what is left or spent; None where it has none."""
    if isinstance(value, Pld):
        return value
    try:
        found = getattr(value, "pld", None)
    except ResiduaError:
        return None
    return found if isinstance(found, Pld) else None


def widest(plds: list[Pld]) -> float:
    """The eps up to which curves are drawn: where the largest of them is about 1e-9, or level."""
    return float(min(max([0.1, *map(_end, plds)]), FURTHEST))


def _end(pld: Pld) -> float:
    """Where a curve is about 1e-9; one that does not get there, a little after it has levelled."""
    eps = float(pld.epsilon(1e-9))
    if np.isfinite(eps):
        return eps
    level = float(pld.delta(FURTHEST))
    eps = 1.25 * float(pld.epsilon(min(1.0, 1.01 * level)))
    return eps if np.isfinite(eps) else 10.0


def curve(pld: Pld, points: int, top: float) -> dict[str, dict[str, list[float]]]:
    """One PLD in both views."""
    eps = np.linspace(0.0, top, points)
    alpha = np.linspace(0.0, 1.0, points)
    delta = np.atleast_1d(np.asarray(pld.delta(eps), dtype=np.float64))
    beta = np.atleast_1d(np.asarray(pld.tradeoff(alpha), dtype=np.float64))
    return {
        "hockey_stick": {"eps": eps.tolist(), "delta": np.clip(delta, 0.0, 1.0).tolist()},
        "tradeoff": {"alpha": alpha.tolist(), "beta": np.clip(beta, 0.0, 1.0).tolist()},
    }


def plan_of(budget: Budget, queries: list[Mechanism], n: int, most: int) -> dict[str, Any]:
    """How many more would fit of a budget, and with how little noise `n` rounds would.

    Raises `TooExpensive` where that takes more than the limit on the work of a plan.
    """
    at: dict[str, Any] = {"state": budget.state, "relation": budget.relation}
    count, ended, least = 0, False, None
    if not any(described(one).contradicts(budget.relation, budget.unit) for one in queries):
        with limited("the plan", MOST_WORK) as limit:
            count, ended = count_fitting(budget.filter, queries, most, at, limit)
            # What a try takes is known by now: what cannot be tried once is refused at once.
            work_limit.work(limit.operations / max(1, count) * n * len(queries))
            least = least_noise(budget.filter, queries, n, **at)
    return {
        "how_many": count,
        "rounds": count // len(queries),
        "counting_ended": ended,
        "n": n,
        "least_noise": None if least is None else [as_mechanism(one).to_dict() for one in least],
        "remaining": plain(budget.remaining),
    }


def count_fitting(
    filter: Filter,
    queries: list[Mechanism],
    most: int,
    at: dict[str, Any],
    limit: work_limit.WorkBudget,
) -> Count:
    """How many fit, and whether counting ended before a refusal.

    Some filters decide each query one by one, so it is counted in steps, as far as work allows.
    """
    upto = min(most, 64)
    while True:
        found = count_more(filter, queries, most=upto, **at)
        # Counting may take a tenth of the work; the rest is for the noise.
        if found.copies < upto or upto == most or limit.operations > OPERATIONS // 30:
            return found
        upto = min(most, 4 * upto)
