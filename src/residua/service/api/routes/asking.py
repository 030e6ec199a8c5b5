"""Requests to a budget: check, spend, reserve, and what follows a reservation.

A refusal is an answer, with status 200 and `admitted: false`. Only an engine, which runs
mechanisms, or an admin may spend. The key may come in the body or in the header `Idempotency-Key`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.receipts import Receipt, Reservation
from residua.ledger.operations.early_rulings import Compute
from residua.ledger.recovery.anchor_check import must_be_open
from residua.service.api import models, values
from residua.service.api.deciding import hold_of, is_quick, query_of, settle, shown_slowly
from residua.service.api.responses import (
    BudgetName,
    IdempotencyKey,
    Json,
    JsonRoute,
    documented,
    shaped,
)
from residua.service.auth import Caller
from residua.service.context import Office, caller_of, office_of
from residua.service.problems import Problem

router = APIRouter(prefix="/v1", tags=["asking"], route_class=JsonRoute)

HoldId = Annotated[str, Path(min_length=1, max_length=64, description="The id of a reservation.")]
NO_KEY, NO_REASON = models.Commit(), models.Cancel()
_ASKED = documented(400, 404, 408, 409, 413, 415, 422)


@router.post(
    "/budgets/{name}/spend",
    summary="Spend",
    response_model=models.Receipted,
    responses=_ASKED,
)
async def spend(
    request: Request, name: BudgetName, body: models.Ask, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decide and, if admitted, spend; durable before the answer is sent.

    An admitted receipt that is not `replayed` permits one run of the mechanism.
    """
    caller_of(request).require("spend", name, *body.also)
    key, budgets = one_key(body.key, idempotency_key), named(name, body)

    def ask(ledger: Ledger) -> Receipt:
        query, assumed = query_of(body.mechanism), body.assume_budget_relation
        return ledger.spend(budgets, query, key, assume_budget_relation=assumed)

    return await _answer(request, "spend", ask, values.receipt_to_dict, models.Receipted)


@router.post(
    "/budgets/{name}/check",
    summary="Check",
    response_model=models.Decided,
    responses=_ASKED,
)
async def check(
    request: Request, name: BudgetName, body: models.Ask, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decide only: what a spend would answer now. Nothing is written, and a key is ignored.

    Of a ledger that is read-only a spend would get no answer, and a check gets the same problem.
    """
    office, caller = office_of(request), caller_of(request)
    caller.require("check", name, *body.also)
    one_key(body.key, idempotency_key)

    def work(compute: Compute) -> tuple[bool, bytes]:
        must_be_open(office.ledger.read_only)
        found = office.ledger.with_compute(compute).check(
            named(name, body),
            query_of(body.mechanism),
            assume_budget_relation=body.assume_budget_relation,
        )
        to_dict = values.answer_to_dict
        data = to_dict(found) if is_quick(found) else compute(to_dict, found)
        return found.admitted, shaped(models.Decided, data)

    admitted, content = await office.compute(request, caller, work)
    office.metrics.decided("check", admitted)
    return Json(content)


@router.post(
    "/budgets/{name}/reserve",
    summary="Reserve",
    response_model=models.Reserved,
    responses=_ASKED,
)
async def reserve(
    request: Request, name: BudgetName, body: models.Reserve, idempotency_key: IdempotencyKey = None
) -> Response:
    """Hold budget for a mechanism that has not started."""
    caller_of(request).require("spend", name, *body.also)
    key, budgets = one_key(body.key, idempotency_key), named(name, body)

    def ask(ledger: Ledger) -> Reservation:
        query, assumed = query_of(body.mechanism), body.assume_budget_relation
        return ledger.reserve(budgets, query, key, body.ttl, assume_budget_relation=assumed)

    return await _answer(request, "reserve", ask, values.reservation_to_dict, models.Reserved)


@router.post(
    "/holds/{id}/commit",
    summary="Commit a reservation",
    response_model=models.Receipted,
    responses=_ASKED,
)
async def commit(
    request: Request,
    id: HoldId,
    body: models.Commit = NO_KEY,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Debit what is held; durable before the answer. Only then may the mechanism start."""
    office, caller = office_of(request), caller_of(request)
    caller.require("spend")
    key = one_key(body.key, idempotency_key)

    def ask(ledger: Ledger) -> Receipt:
        in_scope(office, caller, id)
        return ledger.commit(id, key)

    return await _answer(request, "commit", ask, values.receipt_to_dict, models.Receipted)


@router.post(
    "/holds/{id}/cancel",
    summary="Cancel a reservation",
    status_code=204,
    response_model=None,
    responses=_ASKED,
)
async def cancel(request: Request, id: HoldId, body: models.Cancel = NO_REASON) -> Response:
    """Let a hold go: its mechanism has not started and never will."""
    office, caller = office_of(request), caller_of(request)
    caller.require("spend")

    def ask(ledger: Ledger) -> None:
        in_scope(office, caller, id)
        ledger.cancel(id, body.reason)

    await settle(request, office, caller, ask)
    return Response(status_code=204)


@router.get(
    "/holds",
    summary="Reservations that wait",
    response_model=models.Holds,
    responses=documented(),
)
async def holds(request: Request) -> Response:
    """Open reservations in scope, with their ages."""
    office, caller = office_of(request), caller_of(request)
    caller.require("read")

    def work() -> bytes:
        seen = [
            one
            for one in office.ledger.holds()
            if one.by == caller.principal or all(caller.sees(name) for name in one.budgets)
        ]
        return shaped(models.Holds, {"items": [values.hold_to_dict(one) for one in seen]})

    return Json(await office.run(work))


async def _answer(
    request: Request,
    verb: str,
    ask: Callable[[Ledger], Receipt | Reservation],
    to_dict: Callable[[Any], dict[str, Any]],
    model: type[BaseModel],
) -> Json:
    """Ask the ledger, count its decision and answer it; a worker says what takes time to say."""
    office, caller = office_of(request), caller_of(request)

    def work(ledger: Ledger) -> tuple[Receipt | Reservation, bytes | None]:
        receipt = ask(ledger)
        return receipt, shaped(model, to_dict(receipt)) if is_quick(receipt) else None

    receipt, content = await settle(request, office, caller, work)
    office.metrics.decided(verb, receipt.admitted, receipt.replayed)
    if content is None:
        data = await shown_slowly(request, office, caller, receipt, to_dict)
        content = shaped(model, data)
    return Json(content)


def in_scope(office: Office, caller: Caller, id: str) -> None:
    """Raise unless a hold is the caller's own, or all of it in scope, whatever became of it.

    What is out of scope and what is not there get the same answer.
    """
    if caller.scope is None:
        return
    found = hold_of(office.ledger, id)
    if found is None or not (
        found.principal == caller.principal or all(map(caller.sees, found.budgets))
    ):
        raise Problem(
            403, "forbidden", "the token's scope does not include a reservation of this id"
        )


def one_key(body: str | None, header: str | None) -> str | None:
    """The key, from the body, from the header, or equal in both."""
    if header is None or body is None:
        return body if header is None else header
    if body != header:
        raise ArgumentError(
            f"key must be the same in the body and in Idempotency-Key, got {body!r} and {header!r}"
        )
    return header


def named(name: str, body: models.Ask) -> str | list[str]:
    """The budgets of a request: one, or several together."""
    return [name, *body.also] if body.also else name
