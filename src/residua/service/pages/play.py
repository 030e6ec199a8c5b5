"""The adaptive analyst: a page on which a visitor breaks the natural filter. No token is needed."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.service.context import context_of
from residua.service.pages.html import PageRoute, page, wants_part
from residua.service.pages.session import perhaps

router = APIRouter(route_class=PageRoute)


TRIES = (
    ("Always steady", "steady steady steady"),
    ("Steady, then always gamble", "steady gamble gamble"),
    ("Choose after looking", "steady gamble steady"),
)
"""Strategies that tell the story: either of two is kept, choosing between them is not."""


@router.get("/play")
async def play(request: Request) -> Response:
    """Play: `first`, `low` and `high` say what to ask."""
    context = context_of(request)
    values = await context.run(worked_out, dict(request.query_params))
    if wants_part(request):
        return page("part_play.html", None, **values)
    return page("play.html", await perhaps(request), **values)


def worked_out(asked: dict[str, str]) -> dict[str, Any]:
    """The result of a plan against each filter."""
    # Imported here: adversaries are not what most visitors come for.
    from residua.service.pages import playground as game

    moves = [asked.get(name, "stop") for name in ("first", "low", "high")]
    plan = game.Plan(*(move if move in game.MOVES else game.STOPPED for move in moves))
    results = {name: game.played(name, plan) for name in ("natural", "residue", "basic")}
    return {
        "plan": plan,
        "asked": plan.first != game.STOPPED,
        "results": results,
        "promised": game.DELTA,
        "eps": game.EPS,
        "queries": {name: (game.in_words(name), repr(pld)) for name, pld in game.QUERIES.items()},
        "tries": TRIES,
        "reachable": lambda: game.worst().violation + game.DELTA,
        "budget": repr(game.BUDGET),
        "curves": json.dumps(game.curves(plan)),
    }
