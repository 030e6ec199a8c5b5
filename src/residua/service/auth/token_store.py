"""Tokens in the ledger's database: one table beside the ledger, and not part of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, MetaData, Table, Text, insert, select, update

from residua.errors import ArgumentError
from residua.ledger.api.ledger import Ledger
from residua.service.auth.tokens import Token

_T = Table(
    "residua_tokens",
    MetaData(),
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("scope", Text),
    Column("hash", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("expires", Text),
    Column("revoked", Text),
)


class TokenStore:
    """The tokens of a ledger."""

    def __init__(self, ledger: Ledger):
        self._store = ledger.store

    def add(self, token: Token) -> None:
        """Keep a token, by the hash of its secret."""
        row = {
            "id": token.id,
            "principal": token.principal,
            "role": token.role,
            "scope": None if token.scope is None else json.dumps(token.scope),
            "hash": token.hash,
            "created": token.created.isoformat(),
            "expires": None if token.expires is None else token.expires.isoformat(),
            "revoked": None,
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
            rows = connection.execute(select(_T).order_by(_T.c.created, _T.c.id)).all()
        return [_token(row) for row in rows]

    def revoke(self, id: str) -> Token:
        """Let a token open nothing any more."""
        now = datetime.now(UTC).isoformat()
        change = update(_T).where(_T.c.id == id, _T.c.revoked.is_(None)).values(revoked=now)
        with self._store.writing() as connection:
            connection.execute(change)
            row = _row(connection, id)
            if row is None:
                raise ArgumentError(f"token must be the id of one that exists, got {id!r}")
            self._store.commit(
                connection, lambda other: _token(_row(other, id)).revoked is not None
            )
        return _token(row)

    def count_valid(self) -> int:
        """How many open something now."""
        now = datetime.now(UTC)
        return sum(token.is_valid(now) for token in self.every())


def _row(connection: Any, id: str) -> Any:
    return connection.execute(select(_T).where(_T.c.id == id)).one_or_none()


def _token(row: Any) -> Token:
    return Token(
        id=row.id,
        principal=row.principal,
        role=row.role,
        scope=None if row.scope is None else tuple(json.loads(row.scope)),
        hash=row.hash,
        created=datetime.fromisoformat(row.created),
        expires=None if row.expires is None else datetime.fromisoformat(row.expires),
        revoked=None if row.revoked is None else datetime.fromisoformat(row.revoked),
    )
