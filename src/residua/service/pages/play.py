"""The page where visitors play the adaptive analyst and break the natural filter (no token)."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.ledger.operations.early_decisions import Compute
from residua.service.auth import Caller
from residua.service.context import ServiceContext, context_of
from residua.service.pages.html import PageRoute, page, wants_part
from residua.service.pages.session import visitor_or_none

router = APIRouter(route_class=PageRoute)


TRIES = (
    ("Always steady", "steady steady steady"),
    ("Steady, then always gamble", "steady gamble gamble"),
    ("Choose after looking", "steady gamble steady"),
)
"""Strategies that tell the story: either of two is kept, choosing between them is not."""
MOVES, STOPPED = ("steady", "gamble", "stop"), "stop"
"""As `playground.MOVES` has them; there are few plans, so what is kept of them is bounded."""
VISITORS = Caller("(visitors)", "analyst", (), None)
"""For whom a worker plays: all visitors share what one principal may have."""


@router.get("/play")
async def play(request: Request) -> Response:
    """Play: `first`, `low` and `high` say what to ask."""
    values = await values_of(context_of(request), request)
    if wants_part(request):
        return page("part_play.html", None, **values)
    return page("play.html", await visitor_or_none(request), **values)


async def values_of(context: ServiceContext, request: Request) -> dict[str, Any]:
    """The values of the page, which a worker works out once for each of the plans."""
    query = (request.query_params.get(name, STOPPED) for name in ("first", "low", "high"))
    moves = tuple(move if move in MOVES else STOPPED for move in query)
    if moves not in context.play_plan:

        def work(compute: Compute) -> dict[str, Any]:
            return compute(play_out, moves)

        context.play_plan[moves] = await context.compute_slowly(request, VISITORS, work)
    return context.play_plan[moves]


def play_out(moves: tuple[str, ...]) -> dict[str, Any]:
    """The result of a plan against each filter. Pure, for a worker."""
    # Imported here: adversaries are not what most visitors come for.
    from residua.service.pages import playground as game

    plan = game.Plan(*moves)
    results = {name: game.play_plan(name, plan) for name in game.filters()}
    natural = results["natural"]
    return {
        "plan": plan,
        "asked": plan.first != game.STOPPED,
        "results": results,
        "promised": game.DELTA,
        "eps": game.EPS,
        "queries": {name: (game.in_words(name), repr(pld)) for name, pld in game.QUERIES.items()},
        "tries": TRIES,
        "is_worst": natural.breaks and natural.below > game.worst().violation + game.DELTA - 1e-9,
        "budget": repr(game.BUDGET),
        "exceeded": game.exceeded(),
        "curves": json.dumps(game.curves(plan)),
    }
