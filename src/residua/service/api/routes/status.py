"""The state of the ledger and of the service: for operators, auditors and probes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from typing import Any, BinaryIO

from fastapi import APIRouter
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from residua.ledger.operations.early_decisions import Compute
from residua.service import metrics
from residua.service.api import models, values
from residua.service.api.responses import (
    Json,
    StrictRoute,
    encode_as,
    json_lines,
    problem_responses,
)
from residua.service.auth import PERMISSIONS
from residua.service.context import ServiceContext, authorize, caller_of, context_of
from residua.service.middleware import encode_json
from residua.service.pool import NICE, lost_problem
from residua.service.problems import Problem
from residua.version import __version__
from residua.worker_process import WorkerLost, WorkerProcess

router = APIRouter(tags=["status"], route_class=StrictRoute)


@router.get("/v1/health", response_model=models.Health)
async def health() -> Response:
    """The process answers. No token is needed."""
    return Json(encode_as(models.Health, {"status": "ok", "version": __version__}))


@router.get(
    "/v1/ready", summary="Readiness", response_model=models.Health, responses=problem_responses(503)
)
async def ready(request: Request) -> Response:
    """The store answers and can be written to. No token is needed, and nothing else is said."""
    context = context_of(request)
    if not await context.readiness.is_ready():
        raise Problem("store-unavailable", "the store does not answer")
    context.metrics.read_only.set(context.ledger.read_only is not None)
    if context.ledger.read_only:
        raise Problem("read-only-ledger", "the ledger is read-only")
    return Json(encode_as(models.Health, {"status": "ready", "version": __version__}))


@router.get("/v1/me", summary="Who am I", response_model=models.Me)
async def me(request: Request) -> Response:
    """The permissions of the token."""
    caller = caller_of(request)
    scope = None if caller.scope is None else list(caller.scope)
    said = {
        "principal": caller.principal,
        "role": caller.role,
        "scope": scope,
        "token": caller.token,
        "permissions": sorted(name for name in PERMISSIONS if caller.may(name)),
    }
    return Json(encode_as(models.Me, said))


@router.get("/v1/status", response_model=dict[str, Any])
async def status(request: Request) -> Response:
    """Budgets, open reservations, data labels, and what the set-up promises."""
    context, caller = authorize(request, "audit")

    def work(compute: Compute) -> bytes:
        found = context.ledger.with_compute(compute).status()
        shown = replace(found, budgets=tuple(one.detached() for one in found.budgets))
        return encode_json(compute(values.plain_data, shown))

    return Json(await context.compute(request, caller, work))


@router.get("/v1/verification", summary="Verification state", response_model=models.Verification)
async def verification(request: Request) -> Response:
    """The last verification by this process; its text only for callers who may audit."""
    context, caller = authorize(request, "read")
    found = context.verifier.last_result()
    # The words name budgets, which may be out of the caller's scope.
    found = found if caller.may("audit") else {**found, "said": None}
    return Json(encode_as(models.Verification, found))


@router.post(
    "/v1/verification", summary="Verify", status_code=202, response_model=models.Verification
)
async def verify(request: Request) -> Response:
    """Begin to verify the whole ledger in the background; ask `GET` for what it found."""
    context, _ = authorize(request, "audit")
    context.verifier.start()
    return Json(encode_as(models.Verification, context.verifier.last_result()), status_code=202)


@router.get(
    "/v1/export",
    summary="Export the ledger",
    response_class=StreamingResponse,
    responses=json_lines("The ledger, one record or table per line."),
)
async def export(request: Request) -> Response:
    """Everything, as `residua export` writes it: enough to verify the ledger elsewhere."""
    context, caller = authorize(request, "audit")
    file = await context.read_threads.run_fairly(caller.principal, export_to_file, context)
    return StreamingResponse(
        iter(lambda: file.read(1 << 16), b""),
        media_type="application/jsonl",
        background=BackgroundTask(file.close),
    )


def export_to_file(context: ServiceContext) -> BinaryIO:
    """The export in a file that has no name any more; it may be larger than memory.

    A separate process encodes it, so that other requests do not wait.
    """
    with tempfile.NamedTemporaryFile() as file:
        process = WorkerProcess(nice=NICE)
        try:
            context.ledger.with_compute(process.ask).export(file.name)
        except WorkerLost as lost:
            raise lost_problem(lost) from None
        finally:
            process.end()
        return open(file.name, "rb")


@router.get("/metrics", summary="Metrics", response_class=PlainTextResponse)
async def prometheus(request: Request) -> Response:
    """Counts and durations, as Prometheus reads them."""
    context, _ = authorize(request, "audit")
    context.metrics.read_only.set(context.ledger.read_only is not None)
    context.metrics.workers.set(len(context.pool.processes))
    return Response(context.metrics.text(), media_type=metrics.CONTENT_TYPE_LATEST)
