"""The statements that every spend runs, and the rows that they read and write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, select

from residua.ledger.domain.budget_row import BudgetRow, Entry, to_row
from residua.ledger.domain.described_query import Asked, from_text
from residua.ledger.storage import schema
from residua.ledger.storage.statements import Among, Prepared, Write
from residua.records import Record

_B, _R, _K, _H = schema.budgets, schema.records, schema.keys, schema.holds

BUDGETS = Prepared(
    select(*(_B.c[name] for name in BudgetRow._fields[:-1]), _R.c.text)
    .join(_R, (_R.c.budget_id == _B.c.id) & (_R.c.seq == _B.c.head_seq))
    .where(Among(_B.c.name, "names"))
)
KEYS = Prepared(
    select(_K.c.principal, _K.c.key, _K.c.request, _K.c.budget, _K.c.seq, _K.c.held).where(
        Among(_K.c.principal, "principals"), Among(_K.c.key, "keys")
    )
)
HOLDS = Prepared(select(*_H.columns).where(Among(_H.c.id, "ids")))

NEW_BUDGETS = Write(_B)
CHANGED_BUDGETS = Write(
    _B, "head_seq", "head_hash", "retired", "generation", "spent", "children", "holds",
    "window_ends", key="id", unchanged="head_hash",
)  # fmt: skip
NEW_RECORDS = Write(_R)
NEW_KEYS = Write(_K)
NEW_HOLDS = Write(_H)
ENDED_HOLDS = Write(_H, "status", "ended_by", key="id")
NEW_TABLES = Write(schema.tables, known=True)


def hash_at(connection: Connection, budget: str, seq: int) -> str | None:
    """The hash of a stored record; None where there is none of that number."""
    query = (
        select(_R.c.hash)
        .join(_B, _B.c.id == _R.c.budget_id)
        .where(_B.c.name == budget, _R.c.seq == seq)
    )
    found: str | None = connection.execute(query).scalar()
    return found


@dataclass
class HoldRow:
    """A reservation, open or ended."""

    id: str
    principal: str
    key: str
    members: tuple[str, ...]
    mechanism: str
    assumed: bool
    made: str
    expires: str
    status: str
    ended_by: str | None = None

    @cached_property
    def asked(self) -> Asked:
        return from_text(self.mechanism)


@dataclass(frozen=True)
class KeyRow:
    """Where the decision on a key is recorded."""

    request: str
    budget: str
    seq: int
    held: str | None


def hold_of(row: tuple[Any, ...]) -> HoldRow:
    """A reservation from its row."""
    id, principal, key, members, mechanism, assumed, *rest = row
    named = tuple(members.split("\n"))
    return HoldRow(id, principal, key, named, mechanism, bool(int(assumed)), *rest)


def changed(entry: Entry) -> dict[str, Any]:
    """Values for `CHANGED_BUDGETS`: it applies if the head is still the one that was read."""
    row = to_row(entry)
    new = {name: row[name] for name in CHANGED_BUDGETS.columns}
    return {"id": entry.id, "old_head_hash": entry.stored_hash, **new}


def record_row(entry: Entry, made: Record) -> dict[str, Any]:
    """The row of a record."""
    return {"budget_id": entry.id, "seq": made.seq, "hash": made.hash, "text": made.text}


def hold_row(row: HoldRow) -> dict[str, Any]:
    """The row of a reservation."""
    return {
        "id": row.id, "principal": row.principal, "key": row.key,
        "members": "\n".join(row.members), "mechanism": row.mechanism,
        "assumed": int(row.assumed), "made": row.made, "expires": row.expires,
        "status": row.status, "ended_by": row.ended_by,
    }  # fmt: skip


def hold_end(row: HoldRow) -> dict[str, Any]:
    """The columns of a reservation that change when it is over."""
    return {"id": row.id, "status": row.status, "ended_by": row.ended_by}
