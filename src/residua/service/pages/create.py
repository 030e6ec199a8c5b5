"""Create a budget, as an admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError, ResiduaError
from residua.service.api import models
from residua.service.api.responses import validated
from residua.service.context import office_of
from residua.service.pages.choices import FILTERS, described
from residua.service.pages.html import PageRoute, form, page, shown, to
from residua.service.pages.session import CODE, Visitor, check_form, visitor
from residua.service.problems import Problem, problem_of

router = APIRouter(route_class=PageRoute)

RELATIONS = ("add-remove", "replace-one", "zero-out")


@router.get("/new-budget")
async def ask(request: Request) -> Response:
    """Ask what the budget is to be."""
    seen = await visitor(request)
    seen.caller.require("manage")
    return await _form(request, seen, {}, None)


@router.post("/new-budget")
async def create(request: Request) -> Response:
    """Create it, or say what is wrong."""
    office, seen = office_of(request), await visitor(request)
    given = await form(request)
    check_form(request, seen, given.get(CODE))
    seen.caller.require("manage")
    try:
        body = validated(models.NewBudget, wanted(given))
        ledger = office.ledger.as_principal(seen.caller.principal)
        await office.compute(
            request,
            seen.caller,
            lambda compute: ledger.with_compute(compute).create_budget(**body.model_dump()),
        )
    except (ResiduaError, Problem) as error:
        problem = problem_of(error)
        if problem is None:
            raise
        return await _form(request, seen, given, problem)
    return to(f"/budgets/{quote(body.name, safe='')}")


def wanted(given: Mapping[str, str]) -> dict[str, Any]:
    """The budget that a form describes; the ledger supplies what was left empty."""
    fields: dict[str, Any] = {
        name: given[name].strip()
        for name in ("name", "relation", "unit", "parent", "partition", "data")
        if given.get(name, "").strip()
    }
    if given.get("days", "").strip():
        try:
            fields["window"] = 86400.0 * float(given["days"])
        except ValueError:
            raise ArgumentError(f"days must be a number, got {given['days'][:100]!r}") from None
    return {**fields, "filter": described(FILTERS, given, "filter")}


async def _form(
    request: Request, seen: Visitor, given: Mapping[str, str], problem: Problem | None
) -> Response:
    office = office_of(request)
    names = await office.run(lambda: sorted(one.name for one in office.ledger.budgets()))
    return page(
        "create.html",
        seen,
        200 if problem is None else problem.status,
        given=given,
        problem=None if problem is None else shown(problem),
        choices=FILTERS,
        relations=RELATIONS,
        parents=names[:500],
    )
