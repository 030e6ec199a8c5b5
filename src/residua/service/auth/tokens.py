"""Tokens: `rz_ID_SECRET`, of which the store keeps the id and the hash of the secret.

The secret has 256 random bits, so one SHA-256 is as good as a slow hash: there is nothing to
guess. A token is found by its id, which is public, and its secret is compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from residua import checks
from residua.errors import ArgumentError

ROLES = ("admin", "engine", "analyst", "auditor")
_SHAPE = re.compile(r"rz_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,100}")


@dataclass(frozen=True)
class Token:
    """A stored token, without its secret."""

    id: str
    principal: str
    """In whose name the ledger records what is done with it; keys belong to that name."""
    role: str
    scope: tuple[str, ...] | None
    """Names of budgets, or beginnings of names that end in `*`; None for all of them."""
    hash: str
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it opens anything at that time."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def state(self, now: datetime) -> str:
        """In a word."""
        if self.revoked is not None:
            return "revoked"
        return "valid" if self.is_valid(now) else "expired"


def made(
    role: str,
    principal: str | None = None,
    budgets: Sequence[str] | None = None,
    days: float | None = None,
    now: datetime | None = None,
) -> tuple[Token, str]:
    """A new token and its text, which exists nowhere else."""
    checks.one_of("role", role, ROLES)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    principal = f"{role}-{id}" if principal is None else principal
    if not isinstance(principal, str) or not _NAME.fullmatch(principal):
        raise ArgumentError(
            "name must be 1 to 100 characters without control characters,"
            f" got {checks.shown(principal)}"
        )
    scope = None if budgets is None else tuple(_pattern(one) for one in budgets)
    if scope is not None and role in ("admin", "auditor"):
        raise ArgumentError(f"scope must be left out for {role}, who sees every budget")
    now = now or datetime.now(UTC)
    expires = None if days is None else now + timedelta(days=_days(days))
    token = Token(id, principal, role, scope, hashed(secret), now, expires)
    return token, f"rz_{id}_{secret}"


def parsed(text: str) -> tuple[str, str] | None:
    """The id and the hash of the secret of a token's text; None if it is not a token."""
    found = _SHAPE.fullmatch(text)
    return None if found is None else (found[1], hashed(found[2]))


def hashed(secret: str) -> str:
    """The hash of a secret, which the store keeps."""
    return hashlib.sha256(secret.encode()).hexdigest()


def same(first: str, second: str) -> bool:
    """Compare two hashes in a time that does not depend on where they differ."""
    return hmac.compare_digest(first, second)


def within(scope: tuple[str, ...] | None, budget: str) -> bool:
    """Whether a scope has a budget."""
    if scope is None:
        return True
    return any(budget.startswith(one[:-1]) if one.endswith("*") else budget == one for one in scope)


def _pattern(given: str) -> str:
    if not isinstance(given, str) or not given or given == "*" or "*" in given[:-1]:
        raise ArgumentError(
            "budget must be a name, or the beginning of names with a * at its end,"
            f" got {checks.shown(given)}"
        )
    return given


def _days(days: float) -> float:
    return checks.between("days", days, 1e-6, 36500.0)
