"""One budget: its state, its curves, its history, and what-if questions."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError, ResiduaError, TooExpensive
from residua.ledger.operations.early_decisions import Compute, quickly
from residua.mechanisms.codec import from_dict
from residua.service import problems
from residua.service.api import models
from residua.service.api.responses import Json, encode_as, validate
from residua.service.api.routes.asking import ask_ledger, query_of, request_of
from residua.service.api.routes.planning import curves_of, plan_of
from residua.service.auth import Caller
from residua.service.context import ServiceContext, context_of
from residua.service.pages.choices import BOUNDS, QUERIES, description_of, fields_of
from residua.service.pages.content import (
    entry,
    left,
    one_page,
    query_words,
    refusals,
    row,
)
from residua.service.pages.html import (
    PageRoute,
    accept_form,
    page,
    redirect,
    visible,
    wants_part,
)
from residua.service.pages.session import Visitor, require_visitor
from residua.service.problems import Problem

router = APIRouter(route_class=PageRoute)


@router.get("/budgets/{name}")
async def show(request: Request, name: str) -> Response:
    """A budget."""
    return await _shown(request, await require_visitor(request), name, {}, None)


@router.get("/budgets/{name}/left")
async def snapshot(request: Request, name: str) -> Response:
    """What is left, as a part of a page: for filters that take a while to say."""
    context, visitor = context_of(request), await require_visitor(request)
    visitor.caller.require("read", name)

    def work(compute: Compute) -> dict[str, Any]:
        budget = context.ledger.budget(name).detached()
        return left(budget, quickly(compute, attrgetter("balance"), budget))

    found = await context.compute(request, visitor.caller, work)
    return page("part_left.html", visitor, left=found)


@router.get("/budgets/{name}/curves.json")
async def curves(request: Request, name: str) -> Response:
    """The curves, for the script that draws them."""
    context, visitor = context_of(request), await require_visitor(request)
    visitor.caller.require("read", name)

    def work(compute: Compute) -> bytes:
        budget = context.ledger.budget(name).detached()
        return encode_as(models.Curves, compute(curves_of, budget, 161))

    return Json(await context.compute(request, visitor.caller, work))


@router.post("/budgets/{name}/what-if")
async def what_if(request: Request, name: str) -> Response:
    """The answer that a query would get, how many more fit, and with how little noise."""
    context = context_of(request)
    visitor, given = await accept_form(request, "plan", name)
    status, result = 200, {}
    try:
        result = await context.compute(
            request,
            visitor.caller,
            lambda compute: answer_what_if(context, visitor.caller, name, given, compute),
        )
        if result["decided"] is not None:
            context.metrics.count_decision("check", result["decided"]["admitted"])
    except (ResiduaError, Problem) as error:
        problem = visible(error)
        status, result = problem.status, {"problem": problem}
    if wants_part(request):
        return page("part_what_if.html", visitor, status, result=result)
    return await _shown(request, visitor, name, given, result, status)


@router.post("/budgets/{name}/spend")
async def spend(request: Request, name: str) -> Response:
    """Spend, as an engine or an admin may; the answer is the record that it left."""
    context = context_of(request)
    visitor, given = await accept_form(request, "spend", name)
    try:
        body = validate(models.Ask, {**_query_body(given), "key": given.get("key") or None})
        receipt = await ask_ledger(
            request, context, visitor.caller, request_of("spend", name, body, body.key)
        )
    except (ResiduaError, Problem) as error:
        problem = visible(error)
        return await _shown(request, visitor, name, given, {"problem": problem}, problem.status)
    context.metrics.count_decision("spend", receipt.admitted, receipt.replayed)
    seq = receipt.budgets[name][0]
    again = "&again=1" if receipt.replayed else ""
    return redirect(f"/budgets/{quote(name, safe='')}?record={seq}{again}")


def answer_what_if(
    context: ServiceContext, caller: Caller, name: str, given: Mapping[str, str], compute: Compute
) -> dict[str, Any]:
    """Check and plan. Auditors may plan, and not check."""
    body = validate(models.Ask, _query_body(given))
    n = _count(given.get("n", "1"))
    plan = validate(models.Plan, {"mechanisms": [body.mechanism], "n": n, "most": 10_000})
    out: dict[str, Any] = {"decided": None, "plan": None, "too_slow": None, "n": n}
    if caller.may("check"):
        answer = context.ledger.with_compute(compute).check(
            name, query_of(body.mechanism), assume_budget_relation=body.assume_budget_relation
        )
        out["decided"] = {"admitted": answer.admitted, "reason": answer.reason}
        closed = context.ledger.read_only
        if closed is not None:
            reason = f"nothing would be admitted now: {problems.without_addresses(closed)}"
            out["decided"] |= {"admitted": False, "reason": reason}
    try:
        query = [from_dict(one) for one in plan.mechanisms]
        budget = context.ledger.budget(name).detached()
        found = compute(plan_of, budget, query, plan.n, plan.most)
    except TooExpensive as error:
        out["too_slow"] = str(error)
    else:
        least = found["least_noise"]
        out["plan"] = {
            **found,
            "least": None if least is None else [query_words(one) for one in least],
        }
    return out


def _query_body(given: Mapping[str, str]) -> dict[str, Any]:
    return {
        "mechanism": description_of(QUERIES, given, "mechanism"),
        "assume_budget_relation": given.get("assume") == "yes",
    }


def _count(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(f"n must be a whole number, got {text[:100]!r}") from None


async def _shown(
    request: Request,
    visitor: Visitor,
    name: str,
    given: Mapping[str, str],
    result: Mapping[str, Any] | None,
    status: int = 200,
) -> Response:
    context, caller = context_of(request), visitor.caller
    caller.require("read", name)
    query = request.query_params
    back, before = _whole(query.get("page")), _whole(query.get("before"))
    record, refused = _whole(query.get("record")), query.get("only") == "refused"

    def work(compute: Compute) -> dict[str, Any]:
        budget, ledger = context.ledger.budget(name), context.ledger
        waiting = [
            one
            for one in ledger.holds()
            if name in one.budgets and caller.sees_hold(one.by, one.budgets)
        ]
        return {
            "budget": row(budget),
            "promise": quickly(compute, attrgetter("guarantee.text"), budget.detached()),
            "head": budget.head,
            "window": None if budget.window is None else age(budget.window),
            "history": refusals(ledger, name, budget.seq, before) if refused
            else one_page(ledger, name, budget.seq, back or 0),
            "answer": _record(context, name, record),
            "waiting": [{**vars(hold), "query": query_words(hold.mechanism), "for": age(hold.age)}
                        for hold in waiting],
        }  # fmt: skip

    values = await context.compute(request, caller, work)
    answer = values["answer"]
    return page(
        "budget.html",
        visitor,
        status,
        **values,
        again="again" in query,
        choices=QUERIES,
        bounds=BOUNDS,
        given=given or fields_of(answer and answer["mechanism"]),
        result=result,
        key=uuid.uuid4().hex,
        verified=context.verifier.last_result(),
        read_only=problems.without_addresses(context.ledger.read_only or "") or None,
    )


def _record(context: ServiceContext, name: str, seq: int | None) -> dict[str, Any] | None:
    if seq is None:
        return None
    found = context.ledger.history(name, after=seq - 1 if seq > 0 else None, limit=1)
    return entry(found[0]) if found and found[0].seq == seq else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def age(seconds: float) -> str:
    """A time in its largest unit that fits: `3 min`, `2 h`."""
    if not math.isfinite(seconds):
        return "ever"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{max(0.0, seconds):.0f} s"
