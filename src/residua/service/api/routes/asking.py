"""Asking a budget: check, spend, reserve; and what becomes of a reservation.

A refusal is an answer, with status 200 and `admitted: false`. Nobody but an engine (or an admin)
spends: whoever runs mechanisms. The key may come in the body or in the header `Idempotency-Key`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError
from residua.ledger.recovery.anchor_check import must_be_open
from residua.service.api import models, values
from residua.service.api.direct import Direct
from residua.service.api.responses import BudgetName, IdempotencyKey, Json, documented
from residua.service.auth.access import Caller
from residua.service.context import Office, caller_of, office_of
from residua.service.dispatch import is_quick, query_of

router = APIRouter(prefix="/v1", tags=["asking"], route_class=Direct)

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
    office, caller = office_of(request), caller_of(request)
    caller.require("spend", name, *body.also)
    key = one_key(body.key, idempotency_key)
    receipt = await office.dispatch.ask(caller.principal, "spend", **asked(name, body), key=key)
    office.metrics.decided("spend", receipt.admitted, receipt.replayed)
    return await shown(office, receipt, values.receipt_to_dict)


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

    def work() -> dict[str, Any]:
        must_be_open(office.ledger.read_only)
        return values.answer_to_dict(office.ledger.check(**asked(name, body)))

    answer = await office.run_for(caller, work)
    office.metrics.decided("check", answer["admitted"])
    return Json(answer)


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
    office, caller = office_of(request), caller_of(request)
    caller.require("spend", name, *body.also)
    key = one_key(body.key, idempotency_key)
    hold = await office.dispatch.ask(
        caller.principal, "reserve", **asked(name, body), key=key, ttl=body.ttl
    )
    office.metrics.decided("reserve", hold.admitted, hold.replayed)
    return await shown(office, hold, values.reservation_to_dict)


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
    if caller.scope is not None:
        await office.run(in_scope, office, caller, id)
    key = one_key(body.key, idempotency_key)
    receipt = await office.dispatch.ask(caller.principal, "commit", hold=id, key=key)
    office.metrics.decided("commit", receipt.admitted, receipt.replayed)
    return await shown(office, receipt, values.receipt_to_dict)


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
    if caller.scope is not None:
        await office.run(in_scope, office, caller, id)
    await office.dispatch.ask(caller.principal, "cancel", hold=id, reason=body.reason)
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
    found = await office.run(office.ledger.holds)
    seen = [
        one
        for one in found
        if one.by == caller.principal or all(caller.sees(name) for name in one.budgets)
    ]
    return Json({"items": [values.hold_to_dict(one) for one in seen]})


async def shown(office: Office, receipt: Any, to_dict: Callable[[Any], dict[str, Any]]) -> Response:
    """A receipt as an answer; what is left is worked out elsewhere if that takes time."""
    if is_quick(receipt):
        return Json(to_dict(receipt))
    return Json(await office.run(to_dict, receipt))


def in_scope(office: Office, caller: Caller, id: str) -> None:
    """Raise unless a hold is the caller's own, or all of it in scope."""
    for hold in office.ledger.holds():
        if hold.id == id and hold.by != caller.principal:
            caller.require("spend", *hold.budgets)


def one_key(body: str | None, header: str | None) -> str | None:
    """The key, from the body, from the header, or equal in both."""
    if header is None:
        return body
    if not header or len(header) > models.LONGEST_KEY or not header.isprintable():
        raise ArgumentError(
            f"Idempotency-Key must be 1 to {models.LONGEST_KEY} printable characters,"
            f" got {len(header)}"
        )
    if body is not None and body != header:
        raise ArgumentError(
            f"key must be the same in the body and in Idempotency-Key, got {body!r} and {header!r}"
        )
    return header


def asked(name: str, body: models.Ask) -> dict[str, Any]:
    """What the ledger is asked: of one budget, or of several together."""
    return {
        "budgets": [name, *body.also] if body.also else name,
        "query": query_of(body.mechanism),
        "assume_budget_relation": body.assume_budget_relation,
    }
