"""Errors over HTTP: problem details (RFC 9457), and back to the library's exceptions.

`type` names the exception, `detail` is the library's own explanation. A refusal is not a problem:
it is an answer with status 200. Internal errors are logged under the request's id, and the caller
gets that id alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from residua import errors

MEDIA_TYPE = "application/problem+json"
_PREFIX = "urn:residua:problem:"

STATUS: dict[type[errors.ResiduaError], int] = {
    errors.ArgumentError: 422,
    errors.ArgumentTypeError: 422,
    errors.TooLargeError: 422,
    errors.TooExpensive: 422,
    errors.UnknownBudget: 404,
    errors.UnknownHold: 404,
    errors.BudgetExists: 409,
    errors.RetiredBudget: 409,
    errors.KeyReused: 409,
    errors.AlreadySpent: 409,
    errors.Contended: 503,
    errors.OutcomeUnknown: 503,
    errors.StoreUnavailable: 503,
    errors.ReadOnlyLedger: 503,
    errors.UnsafeStore: 503,
    errors.LedgerError: 409,
}
"""The status of each exception that a caller can do something about."""

WITHHELD: dict[type[errors.ResiduaError], str] = {
    errors.StoreUnavailable: "the store cannot be reached; nothing was spent",
    errors.UnsafeStore: "the store may lose what it acknowledges; nothing was spent",
    errors.OutcomeUnknown: "the store did not tell the outcome; ask again with the same key",
}
"""Texts in place of errors of the store, whose own words name users, hosts and schemas."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+]*://\S+")

OURS = (errors.BrokenRecord, errors.NotALedger, errors.NewerLedger)
"""Errors that the operator must look at, and a caller can do nothing about."""

TITLES = {
    "argument-error": "An argument's value is not allowed",
    "argument-type-error": "An argument has the wrong type",
    "too-large-error": "An exact computation would not fit",
    "too-expensive": "This takes more work than the limit",
    "unknown-budget": "No budget has that name",
    "unknown-hold": "No open reservation has that id",
    "budget-exists": "The budget exists already",
    "retired-budget": "The budget is closed",
    "key-reused": "The key was already used for another request",
    "already-spent": "The query that the receipt permits has run",
    "contended": "The budgets changed while this was decided",
    "outcome-unknown": "Ask again with the same key",
    "store-unavailable": "The store cannot be reached",
    "read-only-ledger": "The ledger is read-only",
    "unsafe-store": "The store may lose what it acknowledged",
    "ledger-error": "The ledger cannot do this",
    "unauthenticated": "A valid token is needed",
    "forbidden": "The token does not permit this",
    "not-found": "There is nothing here",
    "method-not-allowed": "This cannot be done here",
    "body-too-large": "The request is too large",
    "not-json": "The body must be JSON",
    "too-slow": "The request arrived too slowly",
    "invalid-request": "The request does not match its description",
    "too-many-requests": "Slow down",
    "foreign-origin": "The request comes from another site",
    "overloaded": "Too many requests wait",
    "deadline-exceeded": "This takes too long to compute",
    "out-of-memory": "This needs too much memory to compute",
    "worker-lost": "The process that computed this died",
    "client-left": "The client left before the answer",
    "shutting-down": "The service is shutting down",
    "internal-error": "Something went wrong inside",
}
"""Every type of problem, by the end of its `type`, with its title."""


class Problem(Exception):
    """A problem that only HTTP has, such as a missing token."""

    def __init__(
        self, status: int, name: str, detail: str, headers: Mapping[str, str] | None = None
    ):
        super().__init__(detail)
        self.status, self.name, self.detail = status, name, detail
        self.headers = dict(headers or {})


def name_of(error: type[errors.ResiduaError]) -> str:
    """`UnknownBudget` as `unknown-budget`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


def problem_of(error: Exception) -> Problem | None:
    """The problem that a caller sees for an exception; None for an internal error."""
    if isinstance(error, Problem):
        return error
    # A decision that failed is reported as a bare error of the ledger, with the failure as its
    # cause.
    failed = type(error) is errors.LedgerError and error.__cause__ is not None
    if failed or isinstance(error, OURS):
        return None
    for kind in type(error).__mro__:
        if kind in STATUS:
            headers = {"Retry-After": "1"} if may_pass(name_of(kind)) else {}
            detail = WITHHELD.get(kind, str(error))
            if kind is errors.ReadOnlyLedger:
                detail = without_addresses(detail)
            return Problem(STATUS[kind], name_of(kind), detail, headers)
    return None


def without_addresses(text: str) -> str:
    """A text without the location of the store or its anchor, for callers."""
    return _ADDRESS.sub("the store", text)


def may_pass(name: str) -> bool:
    """Whether the same request may succeed a little later."""
    return name in (
        "store-unavailable", "outcome-unknown", "contended", "too-many-requests", "overloaded",
        "worker-lost", "shutting-down",
    )  # fmt: skip


def body(problem: Problem, request_id: str | None = None) -> dict[str, Any]:
    """The problem as a JSON object."""
    out: dict[str, Any] = {
        "type": _PREFIX + problem.name,
        "title": TITLES[problem.name],
        "status": problem.status,
        "detail": problem.detail,
    }
    if request_id is not None:
        out["instance"] = f"urn:residua:request:{request_id}"
    return out


def from_validation(found: Iterable[Mapping[str, Any]]) -> Problem:
    """What pydantic found, in one sentence for each, without the values (NaN is not JSON)."""
    said = []
    for one in found:
        where = ".".join(str(part) for part in one.get("loc", ()) if part != "body")
        message = str(one.get("msg", "is wrong"))
        if one.get("type") == "extra_forbidden":
            message = "is not a field of this request"
        elif one.get("type") == "missing":
            message = "is missing"
        said.append(f"{where or 'body'}: {message}"[:300])
    return Problem(
        422, "invalid-request", "; ".join(said[:8]) or "the request does not match its description"
    )


def name_in(type: str) -> str | None:
    """The name that the `type` of a problem has; None where it is not one of ours."""
    return type.removeprefix(_PREFIX) if type.startswith(_PREFIX) else None


_BACK: dict[str, type[errors.ResiduaError]] = {name_of(kind): kind for kind in STATUS}


def exception_of(status: int, given: Any) -> Exception:
    """The exception that a problem stands for, on the client's side."""
    if not isinstance(given, Mapping):
        given = {}
    name = str(given.get("type", "")).removeprefix(_PREFIX)
    detail = str(given.get("detail") or given.get("title") or f"status {status}")
    kind = _BACK.get(name)
    if kind is not None:
        return kind(detail)
    if status in (401, 403):
        return errors.AccessDenied(detail)
    if status in (400, 413, 415, 422):
        return errors.ArgumentError(detail)
    return errors.ServiceError(f"the service answered {status}: {detail}")
