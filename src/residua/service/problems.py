"""Errors over HTTP: problem details (RFC 9457), and back to the library's exceptions.

`type` names the exception, `detail` is the library's own explanation. A refusal is not a problem:
it is an answer with status 200. Internal errors are logged under the request's id, and the caller
gets that id alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from residua import checks, errors

MEDIA_TYPE = "application/problem+json"
_PREFIX = "urn:residua:problem:"


class Kind(NamedTuple):
    """A kind of problem."""

    status: int
    title: str
    may_pass: bool = False
    """Whether the same request may succeed a little later."""


KINDS = {
    "argument-error": Kind(422, "An argument's value is not allowed"),
    "argument-type-error": Kind(422, "An argument has the wrong type"),
    "too-large-error": Kind(422, "An exact computation would not fit"),
    "too-expensive": Kind(422, "This takes more work than the limit"),
    "unknown-budget": Kind(404, "No budget has that name"),
    "unknown-hold": Kind(404, "No open reservation has that id"),
    "budget-exists": Kind(409, "The budget exists already"),
    "retired-budget": Kind(409, "The budget is closed"),
    "key-reused": Kind(409, "The key was already used for another request"),
    "already-spent": Kind(409, "The query that the receipt permits has run"),
    "contended": Kind(503, "The budgets changed while this was decided", True),
    "outcome-unknown": Kind(503, "Repeat the request with the same key", True),
    "store-unavailable": Kind(503, "The store cannot be reached", True),
    "read-only-ledger": Kind(503, "The ledger is read-only"),
    "unsafe-store": Kind(503, "The store may lose what it acknowledged"),
    "ledger-error": Kind(409, "The ledger cannot do this"),
    "unauthenticated": Kind(401, "A valid token is needed"),
    "forbidden": Kind(403, "The token does not permit this"),
    "not-found": Kind(404, "There is nothing here"),
    "method-not-allowed": Kind(405, "This cannot be done here"),
    "body-too-large": Kind(413, "The request is too large"),
    "not-json": Kind(400, "The body must be JSON"),
    "too-slow": Kind(408, "The request arrived too slowly"),
    "invalid-request": Kind(422, "The request does not match its description"),
    "too-many-requests": Kind(429, "Slow down", True),
    "foreign-origin": Kind(403, "The request comes from another site"),
    "overloaded": Kind(503, "Too many requests wait", True),
    "deadline-exceeded": Kind(503, "This takes too long to compute"),
    "out-of-memory": Kind(503, "This needs too much memory to compute"),
    "worker-lost": Kind(503, "The process that computed this died", True),
    "client-left": Kind(499, "The client left before the answer"),
    "shutting-down": Kind(503, "The service is shutting down", True),
    "internal-error": Kind(500, "The service failed"),
}
"""Every kind of problem, by the end of its `type`; those of exceptions have their names."""

WITHHELD: dict[type[errors.ResiduaError], str] = {
    errors.StoreUnavailable: "the store cannot be reached; nothing was spent",
    errors.UnsafeStore: "the store may lose what it acknowledges; nothing was spent",
    errors.OutcomeUnknown: "the outcome is unknown; repeat the request with the same key",
}
"""Texts in place of errors of the store, whose own words name users, hosts and schemas."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+]*://\S+")

OURS = (errors.BrokenRecord, errors.NotALedger, errors.NewerLedger)
"""Errors that the operator must look at, and a caller can do nothing about."""


class Problem(Exception):
    """A problem as a caller sees it; one that only HTTP has, such as a missing token, is raised."""

    def __init__(
        self,
        name: str,
        detail: str,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ):
        """One of `KINDS`, whose status is the usual one unless another is given."""
        super().__init__(detail)
        kind = KINDS[name]
        self.name, self.title, self.detail = name, kind.title, detail
        self.status = kind.status if status is None else status
        self.headers = {**({"Retry-After": "1"} if kind.may_pass else {}), **(headers or {})}


def name_of(error: type) -> str:
    """`UnknownBudget` as `unknown-budget`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", error.__name__).lower()


_EXCEPTIONS: dict[str, type[errors.ResiduaError]] = {
    name_of(kind): kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and name_of(kind) in KINDS
}


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
        name = name_of(kind)
        if _EXCEPTIONS.get(name) is kind:  # Other libraries have exceptions of the same names.
            detail = WITHHELD.get(kind, str(error))
            if kind is errors.ReadOnlyLedger:
                detail = without_addresses(detail)
            return Problem(name, detail)
    return None


def without_addresses(text: str) -> str:
    """A text without the location of the store or its anchor, for callers."""
    return _ADDRESS.sub("the store", text)


def body(problem: Problem, request_id: str | None = None) -> dict[str, Any]:
    """The problem as a JSON object."""
    out: dict[str, Any] = {
        "type": _PREFIX + problem.name,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if request_id is not None:
        out["instance"] = f"urn:residua:request:{request_id}"
    return out


def from_validation(found: Iterable[Mapping[str, Any]]) -> Problem:
    """What pydantic found, in one sentence for each, with the value unless that is an object."""
    said = []
    for one in found:
        where = ".".join(str(part) for part in one.get("loc", ()) if part != "body")
        message = str(one.get("msg", "is wrong"))
        if one.get("type") == "extra_forbidden":
            message = "is not a field of this request"
        elif one.get("type") == "missing":
            message = "is missing"
        elif not isinstance(one.get("input", {}), Mapping):
            message += f", got {checks.shown(one['input'])}"
        said.append(f"{where or 'body'}: {message}"[:300])
    return Problem(
        "invalid-request", "; ".join(said[:8]) or "the request does not match its description"
    )


def name_in(type: str) -> str | None:
    """The name that the `type` of a problem has; None where it is not one of ours."""
    return type.removeprefix(_PREFIX) if type.startswith(_PREFIX) else None


def exception_of(status: int, given: Any) -> Exception:
    """The exception that a problem stands for, on the client's side."""
    if not isinstance(given, Mapping):
        given = {}
    name = str(given.get("type", "")).removeprefix(_PREFIX)
    detail = str(given.get("detail") or given.get("title") or f"status {status}")
    kind = _EXCEPTIONS.get(name)
    if kind is not None:
        return kind(detail)
    if status in (401, 403):
        return errors.AccessDenied(detail)
    if status in (400, 413, 415, 422):
        return errors.ArgumentError(detail)
    return errors.ServiceError(f"the service answered {status}: {detail}")
