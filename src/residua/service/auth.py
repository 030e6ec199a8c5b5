"""Who may do what. Every route names one permission; there is no other way in.

    admin     everything
    engine    runs mechanisms: spends, reserves, commits, cancels; checks, plans, reads
    analyst   checks, plans, reads
    auditor   reads everything, verifies, exports

Engines and analysts see the budgets in their scope alone. The scope is looked at before the
ledger, so the answer for a budget outside of it is the same whether there is one or not.

Tokens are `rz_ID_SECRET`. The ledger's database has the id and the hash of the secret, in a table
that is not part of the ledger. The secret has 256 random bits, so one SHA-256 is as good as a slow
hash: there is nothing to guess. A token is found by its id, which is public, and its secret is
compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

from sqlalchemy import insert, select, update

from residua import checks
from residua.errors import ArgumentError
from residua.ledger.api.ledger import Ledger
from residua.ledger.storage import schema
from residua.service.problems import Problem

PERMISSIONS: dict[str, frozenset[str]] = {
    "read": frozenset({"admin", "engine", "analyst", "auditor"}),
    "check": frozenset({"admin", "engine", "analyst"}),
    "plan": frozenset({"admin", "engine", "analyst", "auditor"}),
    "spend": frozenset({"admin", "engine"}),
    "manage": frozenset({"admin"}),
    "audit": frozenset({"admin", "auditor"}),
}
"""The roles that have each permission."""

KEPT = 1.0
"""Seconds for which a token is not looked up again: revoking one takes that long at most."""
LOCAL = "local"


@dataclass(frozen=True)
class Caller:
    """In whose name a request is made, and with what rights."""

    principal: str
    role: str
    scope: tuple[str, ...] | None
    token: str | None
    """The id of the token, which is not secret."""

    @property
    def name(self) -> str:
        """By what limits know the caller."""
        return self.token or self.principal

    def may(self, permission: str) -> bool:
        """Whether the role has a permission."""
        return self.role in PERMISSIONS[permission]

    def sees(self, budget: str) -> bool:
        """Whether a budget is in scope."""
        return scope_covers(self.scope, budget)

    def sees_hold(self, principal: str, budgets: Iterable[str]) -> bool:
        """Whether a reservation by a principal is the caller's own, or all of it in scope."""
        return principal == self.principal or all(map(self.sees, budgets))

    def require(self, permission: str, *budgets: str) -> None:
        """Raise unless the role has the permission and the scope the budgets."""
        if not self.may(permission):
            having = ", ".join(sorted(PERMISSIONS[permission]))
            raise Problem(
                "forbidden",
                f"role must be one that may {permission} ({having}), got {self.role}",
            )
        for budget in budgets:
            if not self.sees(budget):
                raise Problem(
                    "forbidden", f"the token's scope does not include the budget {budget!r}"
                )


DEVELOPER = Caller(LOCAL, "admin", None, None)
"""The caller without a token, in a service for development."""


class Authenticator:
    """From an `Authorization` header to a caller.

    `find` looks a token up by its id. What it finds is kept for a second, so that a busy engine
    does not ask the store each time; expiry is looked at every time.
    """

    def __init__(
        self,
        find: Callable[[str], Token | None],
        dev: bool,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        self._find, self._dev, self._clock, self._now = find, dev, clock, now
        self._kept: dict[str, tuple[float, Token, Caller]] = {}
        self._lock = Lock()

    def known(self, header: str | None) -> Caller | None:
        """The caller where that needs no look into the store; raises on what none could save."""
        if header is None and self._dev:
            return DEVELOPER
        id, hash = self._shown(header)
        kept = self._kept.get(id)
        if kept is None or self._clock() - kept[0] > KEPT:
            return None
        return self._opened(kept[1], kept[2], hash)

    def was_known(self, header: str | None) -> bool:
        """Whether a header has a token that was found valid before, however long ago."""
        id, hash = self._shown(header)
        kept = self._kept.get(id)
        return kept is not None and equal_hashes(kept[1].hash, hash)

    def _shown(self, header: str | None) -> tuple[str, str]:
        """The id of the token that a header has, and the hash of its secret; raises on others."""
        if header is None:
            raise _unauthenticated("a token is needed (Authorization: Bearer TOKEN)")
        scheme, _, text = header.partition(" ")
        found = parse_token(text.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise _unauthenticated("Authorization must be: Bearer TOKEN, a token like rz_ID_SECRET")
        return found

    def caller(self, header: str | None) -> Caller:
        """The caller, by a look into the store where there must be one."""
        known = self.known(header)
        if known is not None:
            return known
        id, hash = self._shown(header)
        token = self._find(id)
        if token is None:
            # As long as for a token that exists.
            equal_hashes(hash, secret_hash(""))
            raise _refused()
        caller = Caller(token.principal, token.role, token.scope, token.id)
        self._opened(token, caller, hash)
        with self._lock:
            if len(self._kept) >= 10_000:  # A few megabytes.
                self._kept.clear()
            self._kept[id] = (self._clock(), token, caller)
        return caller

    def _opened(self, token: Token, caller: Caller, hash: str) -> Caller:
        if not equal_hashes(token.hash, hash) or not token.is_valid(self._now()):
            raise _refused()
        return caller


def _unauthenticated(detail: str) -> Problem:
    return Problem("unauthenticated", detail, {"WWW-Authenticate": 'Bearer realm="residua"'})


def _refused() -> Problem:
    # One answer for unknown, wrong, expired and revoked: nothing to learn from trying.
    return _unauthenticated("the token is unknown, expired or revoked")


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


def new_token(
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
        raise ArgumentError(f"scope must be empty for the role {role}, which sees every budget")
    now = now or datetime.now(UTC)
    expires = (
        None if days is None else now + timedelta(days=checks.between("days", days, 1e-6, 36500.0))
    )
    token = Token(id, principal, role, scope, secret_hash(secret), now, expires)
    return token, f"rz_{id}_{secret}"


def parse_token(text: str) -> tuple[str, str] | None:
    """The id and the hash of the secret of a token's text; None if it is not a token."""
    found = _SHAPE.fullmatch(text)
    return None if found is None else (found[1], secret_hash(found[2]))


def secret_hash(secret: str) -> str:
    """The hash of a secret, which the store keeps."""
    return hashlib.sha256(secret.encode()).hexdigest()


def equal_hashes(first: str, second: str) -> bool:
    """Compare two hashes in a time that does not depend on where they differ."""
    return hmac.compare_digest(first, second)


def scope_covers(scope: tuple[str, ...] | None, budget: str) -> bool:
    """Whether a scope has a budget."""
    if scope is None:
        return True
    return any(budget.startswith(one[:-1]) if one.endswith("*") else budget == one for one in scope)


def _pattern(given: str) -> str:
    if not isinstance(given, str) or not given or given == "*" or "*" in given[:-1]:
        raise ArgumentError(
            f"budget must be a name, or a prefix followed by *, got {checks.shown(given)}"
        )
    return given


_T = schema.tokens


class TokenStore:
    """The tokens of a ledger."""

    def __init__(self, ledger: Ledger):
        self._store = ledger.store

    def add(self, token: Token) -> None:
        """Keep a token, by the hash of its secret."""
        row = {
            **vars(token),
            "scope": None if token.scope is None else json.dumps(token.scope),
            "created": token.created.isoformat(),
            "expires": token.expires and token.expires.isoformat(),
        }
        with self._store.writing() as connection:
            connection.execute(insert(_T), row)
            self._store.commit(connection, lambda other: _row(other, token.id) is not None)

    def find(self, id: str) -> Token | None:
        """A token by its id."""
        with self._store.reading() as connection:
            row = _row(connection, id)
        return None if row is None else _token(row)

    def every(self) -> list[Token]:
        """All of them, the oldest first."""
        with self._store.reading() as connection:
            rows = connection.execute(select(_T).order_by(_T.c.created, _T.c.id)).mappings().all()
        return [_token(row) for row in rows]

    def revoke(self, id: str) -> Token:
        """Let a token open nothing any more."""
        now = datetime.now(UTC).isoformat()
        change = update(_T).where(_T.c.id == id, _T.c.revoked.is_(None)).values(revoked=now)
        with self._store.writing() as connection:
            connection.execute(change)
            row = _row(connection, id)
            if row is None:
                raise ArgumentError(f"token must be the id of an existing token, got {id!r}")
            self._store.commit(
                connection, lambda other: _token(_row(other, id)).revoked is not None
            )
        return _token(row)

    def count_valid(self) -> int:
        """How many open something now."""
        now = datetime.now(UTC)
        return sum(token.is_valid(now) for token in self.every())


def _row(connection: Any, id: str) -> Any:
    return connection.execute(select(_T).where(_T.c.id == id)).mappings().one_or_none()


def _token(row: Any) -> Token:
    fields = dict(row)
    for name in ("created", "expires", "revoked"):
        fields[name] = fields[name] and datetime.fromisoformat(fields[name])
    if fields["scope"] is not None:
        fields["scope"] = tuple(json.loads(fields["scope"]))
    return Token(**fields)
