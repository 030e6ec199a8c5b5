"""A change of budgets that PostgreSQL makes only where they are as this process left them.

Compare and set, for several rows in one statement, which also says that the commit must be durable.
Each row is found by its id, in the order given, which is that of names; one that another
transaction holds is waited for and then looked at afresh, as `READ COMMITTED` does it. If any
differs in what can change, or `meta` does in anything, the statement divides by zero, and what was
sent behind it is skipped, the commit included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from residuum.ledger import schema
from residuum.ledger.prepared import Guard, Prepared, encoded
from residuum.ledger.rows import CHANGED_BUDGETS

DURABLE = "set_config('synchronous_commit', 'on', true)"
"""For this transaction; said with its first statement, which saves one."""
UNMET = "22012"
"""Division by zero: how it fails."""

_B, _M = schema.budgets, schema.meta
_COLUMNS = CHANGED_BUDGETS.columns


def _statement() -> Prepared:
    rows = cast(bindparam("rows", type_=Text), JSON)
    given = (
        func.json_to_recordset(rows)
        .table_valued(
            column("id", _B.c.id.type),
            *(column(name, _B.c[name].type) for name in _COLUMNS),
            *(column(f"old_{name}", _B.c[name].type) for name in _COLUMNS),
            name="given",
        )
        .render_derived(with_types=True)
    )
    as_before = (_B.c[name].is_not_distinct_from(given.c[f"old_{name}"]) for name in _COLUMNS)
    changed = (
        update(_B)
        .where(_B.c.id == given.c.id, *as_before)
        .values({name: given.c[name] for name in _COLUMNS})
        .returning(_B.c.id)
        .cte("changed")
    )
    count = select(func.count()).select_from(changed).scalar_subquery()
    said = func.string_agg(
        _M.c.name + literal_column("'='") + _M.c.value,
        aggregate_order_by(literal_column("','"), _M.c.name),
    )
    facts = select(said).scalar_subquery()
    holds = and_(count == func.json_array_length(rows), facts == bindparam("facts", type_=Text))
    met = literal_column("1") / case((holds, literal_column("1")), else_=literal_column("0"))
    return Prepared(select(literal_column(DURABLE), met))


GUARDED = _statement()


def values(rows: Sequence[Mapping[str, Any]], guard: Guard) -> dict[str, str]:
    """What the statement takes: each row with what it was before, and what `meta` said."""
    both = [
        {**row, **{f"old_{name}": before[name] for name in _COLUMNS}}
        for row, before in zip(rows, guard.before, strict=True)
    ]
    facts = ",".join(f"{name}={guard.facts[name]}" for name in sorted(guard.facts))
    return {"rows": encoded(both), "facts": facts}
