"""Who may do what. Every route names one permission; there is no other way in.

    admin     everything
    engine    runs mechanisms: spends, reserves, commits, cancels; checks, plans, reads
    analyst   checks, plans, reads
    auditor   reads everything, verifies, exports

Engines and analysts see the budgets in their scope alone. The scope is looked at before the
ledger, so the answer for a budget outside of it is the same whether there is one or not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock

from residua.service.auth import tokens
from residua.service.auth.tokens import Token
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
_MOST = 10_000
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
        return tokens.within(self.scope, budget)

    def require(self, permission: str, *budgets: str) -> None:
        """Raise unless the role has the permission and the scope the budgets."""
        if not self.may(permission):
            having = ", ".join(sorted(PERMISSIONS[permission]))
            raise Problem(
                403,
                "forbidden",
                f"role must be one that may {permission} ({having}), got {self.role}",
            )
        for budget in budgets:
            if not self.sees(budget):
                raise Problem(
                    403, "forbidden", f"the token's scope does not include the budget {budget!r}"
                )


DEVELOPER = Caller(LOCAL, "admin", None, None)
"""The caller without a token, in a service for development."""


class Gatekeeper:
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
        return self.holder(*self.shown(header))

    def was_valid(self, header: str | None) -> bool:
        """Whether a header has a token that was found valid before, however long ago."""
        id, hash = self.shown(header)
        kept = self._kept.get(id)
        return kept is not None and tokens.same(kept[1].hash, hash)

    def shown(self, header: str | None) -> tuple[str, str]:
        """The id of the token that a header has, and the hash of its secret; raises on others."""
        if header is None:
            raise _unauthenticated("a token is needed: Authorization: Bearer TOKEN")
        scheme, _, text = header.partition(" ")
        found = tokens.parsed(text.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise _unauthenticated("Authorization must be: Bearer TOKEN, a token like rz_ID_SECRET")
        return found

    def holder(self, id: str, hash: str) -> Caller | None:
        """The holder of a token, if known without the store; raises where the token is invalid."""
        kept = self._kept.get(id)
        if kept is None or self._clock() - kept[0] > KEPT:
            return None
        return self._opened(kept[1], kept[2], hash)

    def caller(self, header: str | None) -> Caller:
        """The caller, by a look into the store where there must be one."""
        known = self.known(header)
        if known is not None:
            return known
        id, hash = self.shown(header)
        token = self._find(id)
        if token is None:
            # As long as for a token that exists.
            tokens.same(hash, tokens.hashed(""))
            raise _refused()
        caller = Caller(token.principal, token.role, token.scope, token.id)
        self._opened(token, caller, hash)
        with self._lock:
            if len(self._kept) >= _MOST:
                self._kept.clear()
            self._kept[id] = (self._clock(), token, caller)
        return caller

    def _opened(self, token: Token, caller: Caller, hash: str) -> Caller:
        if not tokens.same(token.hash, hash) or not token.is_valid(self._now()):
            raise _refused()
        return caller


def _unauthenticated(detail: str) -> Problem:
    return Problem(401, "unauthenticated", detail, {"WWW-Authenticate": 'Bearer realm="residua"'})


def _refused() -> Problem:
    # One answer for unknown, wrong, expired and revoked: nothing to learn from trying.
    return _unauthenticated("the token is unknown, expired or revoked")
