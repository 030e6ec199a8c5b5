"""A spend that PostgreSQL writes only where budgets are as this process left them.

Compare and set, in two statements that are sent with the commit behind them. The first changes the
rows of budgets, for all or none: each is found by its id, in the order given, which is that of
names; one that another transaction holds is waited for and then looked at afresh, as `READ
COMMITTED` does it. The second adds records and keys, and looks at `meta`, as of after the wait.
Where a row differs in anything that can change, or `meta` in anything at all, they divide by zero;
where a record has that number already, or a key was used, they fail too. What was sent behind a
statement that fails is skipped, the commit included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from residua.ledger.storage import schema
from residua.ledger.storage.rows import CHANGED_BUDGETS, NEW_KEYS, NEW_RECORDS
from residua.ledger.storage.statements import Guard, Prepared, Question, Write, encoded

DURABLE = "set_config('synchronous_commit', 'on', true)"
"""For this transaction; said with its first statement, which saves one."""
UNMET = "22012"
"""Division by zero."""

Rows = Sequence[Mapping[str, Any]]
_B, _M = schema.budgets, schema.meta
_COLUMNS = CHANGED_BUDGETS.columns
_OLD = {f"old_{name}": name for name in _COLUMNS}


def _insisting(on: ColumnElement[bool]) -> ColumnElement[Any]:
    """An error unless it is true."""
    return literal_column("1") / case((on, literal_column("1")), else_=literal_column("0"))


def _changed() -> Prepared:
    given = CHANGED_BUDGETS.given("rows", {"id": "id", **{n: n for n in _COLUMNS}, **_OLD})
    as_before = (_B.c[name].is_not_distinct_from(given.c[old]) for old, name in _OLD.items())
    change = (
        update(_B)
        .where(_B.c.id == given.c.id, *as_before)
        .values({name: given.c[name] for name in _COLUMNS})
        .returning(_B.c.id)
        .cte("changed")
    )
    done = select(func.count()).select_from(change).scalar_subquery()
    all_ = done == cast(bindparam("count", type_=Text), Integer)
    return Prepared(select(literal_column(DURABLE), _insisting(all_)))


def _added() -> Prepared:
    said = func.string_agg(
        _M.c.name + literal_column("'='") + _M.c.value,
        aggregate_order_by(literal_column("','"), _M.c.name),
    )
    same = select(said).scalar_subquery() == bindparam("facts", type_=Text)
    records, keys = NEW_RECORDS.adding("records"), NEW_KEYS.adding("keys")
    return Prepared(
        select(_insisting(same)).add_cte(records.cte("new_records"), keys.cte("new_keys"))
    )


_CHANGED, _ADDED = _changed(), _added()


WRITES = (CHANGED_BUDGETS, NEW_RECORDS, NEW_KEYS)


def questions(writes: Sequence[tuple[Write, Rows]], guard: Guard) -> Iterator[Question]:
    """What is to be sent in place of the three `WRITES` among these, in order, made one by one."""
    given = dict(writes)
    changed, records, keys = (given[each] for each in WRITES)
    both = [
        {**row, **{old: before[name] for old, name in _OLD.items()}}
        for row, before in zip(changed, guard.before, strict=True)
    ]
    yield _CHANGED, {"rows": encoded(both), "count": str(len(both))}
    facts = ",".join(f"{name}={guard.facts[name]}" for name in sorted(guard.facts))
    yield _ADDED, {"records": encoded(records), "keys": encoded(keys), "facts": facts}
