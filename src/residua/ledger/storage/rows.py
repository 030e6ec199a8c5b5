"""The statements that every spend runs, and the rows that they read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, select

from residua.ledger.domain.budget_row import BudgetRow, from_row, to_row
from residua.ledger.domain.described_query import DescribedQuery, from_text
from residua.ledger.storage import schema
from residua.ledger.storage.statements import Among, Prepared, Write

_B, _R, _K, _H = schema.budgets, schema.records, schema.keys, schema.holds
_BUDGET, _HOLD = tuple(_B.c.keys()), tuple(_H.c.keys())

BUDGETS = Prepared(
    select(*_B.columns, _R.c.text)
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
    def query(self) -> DescribedQuery:
        return from_text(self.mechanism)


@dataclass(frozen=True)
class KeyRow:
    """Where the decision on a key is recorded."""

    request: str
    budget: str
    seq: int
    held: str | None


def entry_of(row: Sequence[Any]) -> BudgetRow:
    """A budget from a row of `BUDGETS`."""
    *columns, text = row
    return from_row(dict(zip(_BUDGET, columns, strict=True)), text)


def changed_budget(entry: BudgetRow) -> dict[str, Any]:
    """Values for `CHANGED_BUDGETS`: it applies if the head is still the one that was read."""
    new = to_row(entry, CHANGED_BUDGETS.columns)
    return {"id": entry.id, "old_head_hash": entry.stored_hash, **new}


def hold_of(row: Sequence[Any]) -> HoldRow:
    """A reservation from a row of `HOLDS`."""
    id, principal, key, members, mechanism, assumed, *rest = row
    named = tuple(members.split("\n"))
    return HoldRow(id, principal, key, named, mechanism, bool(int(assumed)), *rest)


def new_hold(row: HoldRow) -> dict[str, Any]:
    """Values for `NEW_HOLDS`."""
    plain = {name: getattr(row, name) for name in _HOLD}
    return {**plain, "members": "\n".join(row.members), "assumed": int(row.assumed)}
