"""Pages that manage budgets: create and retire them, and cancel reservations.

For what cannot be undone, a link leads to a page that says what will happen and asks why; its form
does it. Engines and admins cancel, admins create and retire, as over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError, ResiduaError, UnknownHold
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.receipts import Hold
from residua.service.api import models
from residua.service.api.responses import validate
from residua.service.api.routes.asking import ask_ledger, in_scope
from residua.service.auth import Caller
from residua.service.context import context_of
from residua.service.pages.choices import FILTERS, description_of
from residua.service.pages.content import query_words
from residua.service.pages.html import PageRoute, accept_form, page, redirect, visible
from residua.service.pages.session import Visitor, require_visitor
from residua.service.problems import Problem

router = APIRouter(route_class=PageRoute)


@router.get("/budgets/{name}/retire")
async def ask_to_retire(request: Request, name: str) -> Response:
    """Show what retiring a budget means, and ask for a reason."""
    visitor = await require_visitor(request)
    visitor.caller.require("manage", name)
    return await _retirement(request, visitor, name, None)


@router.post("/budgets/{name}/retire")
async def retire(request: Request, name: str) -> Response:
    """Retire it; the answer is the record that this left."""
    context = context_of(request)
    visitor, given = await accept_form(request, "manage", name)

    def work(reason: str) -> int:
        context.ledger.as_principal(visitor.caller.principal).retire(name, reason)
        return context.ledger.budget(name).seq

    try:
        body = validate(models.Retirement, {"reason": given.get("reason", "").strip()})
        seq = await context.run(work, body.reason)
    except (ResiduaError, Problem) as error:
        return await _retirement(request, visitor, name, visible(error))
    return redirect(f"/budgets/{quote(name, safe='')}?record={seq}")


@router.get("/holds/{id}/cancel")
async def ask_to_cancel(request: Request, id: str) -> Response:
    """Show what cancelling a reservation means, and ask for a reason."""
    visitor = await require_visitor(request)
    visitor.caller.require("spend")
    return await _cancellation(request, visitor, id, None)


@router.post("/holds/{id}/cancel")
async def cancel(request: Request, id: str) -> Response:
    """Let it go; the answer is the record that this left."""
    context = context_of(request)
    visitor, given = await accept_form(request, "spend")
    found = await context.run(waiting, context.ledger, visitor.caller, id)
    try:
        await context.run(in_scope, context, visitor.caller, id)
        body = validate(models.Cancel, {"reason": given.get("reason", "").strip() or "cancelled"})
        await ask_ledger(
            request, context, visitor.caller, lambda ledger: ledger.cancel(id, body.reason)
        )
    except (ResiduaError, Problem) as error:
        return await _cancellation(request, visitor, id, visible(error))
    name = found.budgets[0]
    seq = await context.run(_left, context.ledger, name, id)
    return redirect(f"/budgets/{quote(name, safe='')}" + ("" if seq is None else f"?record={seq}"))


def waiting(ledger: Ledger, caller: Caller, id: str) -> Hold:
    """A reservation that the caller may see; raises where there is none."""
    for hold in ledger.holds():
        if hold.id == id and caller.sees_hold(hold.by, hold.budgets):
            return hold
    raise UnknownHold(f"there is no open reservation {id[:100]!r}")


def _left(ledger: Ledger, name: str, id: str) -> int | None:
    """The number of the record that released a hold."""
    after = ledger.budget(name).seq - 50  # Others may have written since.
    for record in reversed(ledger.history(name, after=after if after >= 0 else None)):
        if record.type == "cancel" and record.body["hold"] == id:
            return record.seq
    return None


async def _retirement(
    request: Request, visitor: Visitor, name: str, problem: Problem | None
) -> Response:
    context = context_of(request)
    budget = await context.run(context.ledger.budget, name)
    return page(
        "confirm.html",
        visitor,
        problem=problem,
        title=f"Retire {budget.name}?",
        says="The budget is closed for good: what is left of it can no longer be spent, and open"
        " reservations are released. Its history stays, and so does what it promises.",
        facts=[
            ("Budget", budget.name),
            ("Filter", repr(budget.filter)),
            ("Open reservations", len(budget.holds)),
        ],
        action=f"/budgets/{quote(name, safe='')}/retire",
        back=f"/budgets/{quote(name, safe='')}",
        verb="Retire the budget",
        usual="",
    )


async def _cancellation(
    request: Request, visitor: Visitor, id: str, problem: Problem | None
) -> Response:
    context = context_of(request)
    hold = await context.run(waiting, context.ledger, visitor.caller, id)
    return page(
        "confirm.html",
        visitor,
        problem=problem,
        title="Cancel this reservation?",
        says="Cancel only if its query has not started and never will: what is held goes back to"
        " the budget, and the reservation can no longer be committed.",
        facts=[
            ("Query", query_words(hold.mechanism)),
            ("Held from", ", ".join(hold.budgets)),
            ("By", hold.by),
        ],
        action=f"/holds/{quote(id, safe='')}/cancel",
        back=f"/budgets/{quote(hold.budgets[0], safe='')}",
        verb="Cancel the reservation",
        usual="cancelled",
    )


RELATIONS = ("add-remove", "replace-one", "zero-out")


@router.get("/new-budget")
async def new_budget_form(request: Request) -> Response:
    """Show the form for a new budget."""
    visitor = await require_visitor(request)
    visitor.caller.require("manage")
    return await _form(request, visitor, {}, None)


@router.post("/new-budget")
async def create(request: Request) -> Response:
    """Create the budget, or show the form again with the problem."""
    context = context_of(request)
    visitor, given = await accept_form(request, "manage")
    try:
        body = validate(models.NewBudget, budget_fields(given))
        ledger = context.ledger.as_principal(visitor.caller.principal)
        await context.compute(
            request,
            visitor.caller,
            lambda compute: ledger.with_compute(compute).create_budget(**body.model_dump()),
        )
    except (ResiduaError, Problem) as error:
        return await _form(request, visitor, given, visible(error))
    return redirect(f"/budgets/{quote(body.name, safe='')}")


def budget_fields(given: Mapping[str, str]) -> dict[str, Any]:
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
    return {**fields, "filter": description_of(FILTERS, given, "filter")}


async def _form(
    request: Request, visitor: Visitor, given: Mapping[str, str], problem: Problem | None
) -> Response:
    context = context_of(request)
    names = await context.run(lambda: sorted(one.name for one in context.ledger.budgets()))
    return page(
        "create.html",
        visitor,
        problem=problem,
        given=given,
        choices=FILTERS,
        relations=RELATIONS,
        parents=names[:500],
    )
