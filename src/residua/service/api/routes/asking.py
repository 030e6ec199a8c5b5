"""Requests to a budget: check, spend, reserve, commit and cancel.

A refusal is an answer, with status 200 and `admitted: false`. Only an engine, which runs
mechanisms, or an admin may spend. The key may come in the body or in the header `Idempotency-Key`.

What takes little work is decided by one of many threads, and the ledger commits those that wait
together. What takes more is computed by a worker of the pool, also to say what is left.

The ledger lists open reservations alone, and a commit that is repeated gets its receipt again; so
the owner of a reservation, which a scope is compared with, is looked up among all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path
from pydantic import BaseModel
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import Response

from residua.errors import ArgumentError, TooExpensive
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.described_query import DescribedQuery, describe_query, from_text
from residua.ledger.domain.receipts import (
    BudgetSnapshots,
    Receipt,
    Reservation,
    with_remainder,
)
from residua.ledger.operations.early_decisions import QUICK_ANSWER, Compute, quickly
from residua.ledger.recovery.anchor_check import must_be_open
from residua.ledger.storage import schema
from residua.records import canonical
from residua.service.api import models, values
from residua.service.api.responses import (
    CONFLICT,
    BudgetName,
    IdempotencyKey,
    Json,
    StrictRoute,
    encode_as,
)
from residua.service.auth import Caller
from residua.service.context import ServiceContext, authorize, caller_of, context_of, within_limit
from residua.service.problems import Problem
from residua.work_limit import attempt

router = APIRouter(prefix="/v1", tags=["asking"], route_class=StrictRoute)

HoldId = Annotated[str, Path(min_length=1, max_length=64, description="The id of a reservation.")]
NO_KEY, NO_REASON = models.Commit(), models.Cancel()


@router.post("/budgets/{name}/spend", response_model=models.Receipted, responses=CONFLICT)
async def spend(
    request: Request, name: BudgetName, body: models.Ask, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decide and, if admitted, spend; durable before the answer is sent.

    An admitted receipt that is not `replayed` permits one run of the mechanism.
    """
    authorize(request, "spend", name, *body.also)
    ask = request_of("spend", name, body, one_key(body.key, idempotency_key))
    return await _answer(request, "spend", ask, models.Receipted)


@router.post("/budgets/{name}/check", response_model=models.Decided, responses=CONFLICT)
async def check(
    request: Request, name: BudgetName, body: models.Ask, idempotency_key: IdempotencyKey = None
) -> Response:
    """Decide only: what a spend would answer now. Nothing is written, and a key is ignored.

    Of a ledger that is read-only a spend would get no answer, and a check gets the same problem.
    """
    context, caller = authorize(request, "check", name, *body.also)
    one_key(body.key, idempotency_key)

    def work(compute: Compute) -> tuple[bool, bytes]:
        must_be_open(context.ledger.read_only)
        found = context.ledger.with_compute(compute).check(
            budget_names(name, body),
            query_of(body.mechanism),
            assume_budget_relation=body.assume_budget_relation,
        )
        data = quickly(compute, values.decision_to_dict, found)
        return found.admitted, encode_as(models.Decided, data)

    admitted, content = await context.compute(request, caller, work)
    context.metrics.count_decision("check", admitted)
    return Json(content)


@router.post("/budgets/{name}/reserve", response_model=models.Reserved, responses=CONFLICT)
async def reserve(
    request: Request, name: BudgetName, body: models.Reserve, idempotency_key: IdempotencyKey = None
) -> Response:
    """Hold budget for a mechanism that has not started."""
    authorize(request, "spend", name, *body.also)
    ask = request_of("reserve", name, body, one_key(body.key, idempotency_key), body.ttl)
    return await _answer(request, "reserve", ask, models.Reserved)


@router.post(
    "/holds/{id}/commit",
    summary="Commit a reservation",
    response_model=models.Receipted,
    responses=CONFLICT,
)
async def commit(
    request: Request,
    id: HoldId,
    body: models.Commit = NO_KEY,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Debit what is held; durable before the answer. Only then may the mechanism start."""
    context, caller = authorize(request, "spend")
    key = one_key(body.key, idempotency_key)

    def ask(ledger: Ledger) -> Receipt:
        in_scope(context, caller, id)
        return ledger.commit(id, key)

    return await _answer(request, "commit", ask, models.Receipted)


@router.post(
    "/holds/{id}/cancel",
    summary="Cancel a reservation",
    status_code=204,
    response_model=None,
    responses=CONFLICT,
)
async def cancel(request: Request, id: HoldId, body: models.Cancel = NO_REASON) -> Response:
    """Let a hold go: its mechanism has not started and never will."""
    context, caller = authorize(request, "spend")

    def ask(ledger: Ledger) -> None:
        in_scope(context, caller, id)
        ledger.cancel(id, body.reason)

    await ask_ledger(request, context, caller, ask)
    return Response(status_code=204)


@router.get("/holds", summary="Open reservations", response_model=models.Holds)
async def holds(request: Request) -> Response:
    """Open reservations in scope, with their ages."""
    context, caller = authorize(request, "read")

    def work() -> bytes:
        seen = [one for one in context.ledger.holds() if caller.sees_hold(one.by, one.budgets)]
        return encode_as(models.Holds, {"items": values.plain_data(seen)})

    return Json(await context.run(work))


async def _answer(
    request: Request,
    verb: str,
    ask: Callable[[Ledger], Receipt | Reservation],
    model: type[BaseModel],
) -> Json:
    """Ask the ledger, count its decision and answer it; a worker says what takes time to say."""
    context, caller = context_of(request), caller_of(request)

    def work(ledger: Ledger) -> tuple[Receipt | Reservation, bytes | None]:
        receipt = ask(ledger)
        # It is durable: whatever its answer takes, it is not asked again.
        data = attempt("this", QUICK_ANSWER, lambda: values.decision_to_dict(receipt))
        return receipt, None if isinstance(data, TooExpensive) else encode_as(model, data)

    receipt, content = await ask_ledger(request, context, caller, work)
    context.metrics.count_decision(verb, receipt.admitted, receipt.replayed)
    if content is None:
        content = encode_as(model, await show_slowly(request, context, caller, receipt))
    return Json(content)


def in_scope(context: ServiceContext, caller: Caller, id: str) -> None:
    """Raise unless a hold is the caller's own, or all of it in scope, whatever became of it.

    What is out of scope and what is not there get the same answer.
    """
    if caller.scope is None:
        return
    rows = schema.holds.c
    wanted = select(rows.principal, rows.members).where(rows.id == id)
    with context.ledger.store.reading() as connection:
        row = connection.execute(wanted).one_or_none()
    if row is None or not caller.sees_hold(row.principal, row.members.split("\n")):
        raise Problem("forbidden", "the token's scope does not include a reservation of this id")


def request_of(
    verb: str, name: str, body: models.Ask, key: str | None, *more: Any
) -> Callable[[Ledger], Any]:
    """A request to spend or to reserve, to be made of a ledger."""

    def ask(ledger: Ledger) -> Any:
        budgets, query = budget_names(name, body), query_of(body.mechanism)
        assumed = body.assume_budget_relation
        return getattr(ledger, verb)(budgets, query, key, *more, assume_budget_relation=assumed)

    return ask


def one_key(body: str | None, header: str | None) -> str | None:
    """The key, from the body, from the header, or equal in both."""
    if header is None or body is None:
        return body if header is None else header
    if body != header:
        raise ArgumentError(
            f"key must be the same in the body and in Idempotency-Key, got {body!r} and {header!r}"
        )
    return header


def budget_names(name: str, body: models.Ask) -> str | list[str]:
    """The budgets of a request: one, or several together."""
    return [name, *body.also] if body.also else name


T = TypeVar("T")


async def ask_ledger(
    request: Request, context: ServiceContext, caller: Caller, ask: Callable[[Ledger], T]
) -> T:
    """A ledger's answer to a caller about a query or a reservation."""
    ledger = context.ledger.as_principal(caller.principal)
    return await context.spend(request, caller, lambda compute: ask(ledger.with_compute(compute)))


async def show_slowly(
    request: Request,
    context: ServiceContext,
    caller: Caller,
    receipt: Receipt | Reservation,
) -> dict[str, Any]:
    """A receipt as data, where what is left takes time to say. It is durable, so it is answered.

    Where what is left cannot be worked out now, it says so in place of that.
    """
    snapshots = receipt.remainder
    alone = with_remainder(receipt, snapshots)

    def work(compute: Compute) -> dict[str, Any]:
        return compute(within_limit, values.decision_to_dict, alone)

    try:
        return await context.compute_slowly(request, caller, work)
    except (Problem, TooExpensive) as problem:
        late = isinstance(problem, TooExpensive) or problem.status == 503
        if not late or not isinstance(snapshots, BudgetSnapshots):
            raise
    unknown = {"kind": "unknown", "text": "not computed in time: read the budget"}
    left = unknown if snapshots.one else dict.fromkeys(snapshots.named, unknown)
    return values.decision_to_dict(with_remainder(receipt, values.Said(left)))


def query_of(mechanism: Mapping[str, Any]) -> DescribedQuery:
    """A query from its description; a repeated description is parsed once."""
    try:
        text = canonical(mechanism)
    except ValueError:  # A number beyond all floats: the mechanism says which field it is in.
        return describe_query(mechanism)
    return from_text(text)
