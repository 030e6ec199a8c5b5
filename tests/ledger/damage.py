"""What happens to stores, for the tests: chains that are cut, tables that are emptied."""

from __future__ import annotations

from fractions import Fraction

from sqlalchemy import delete, select, update

import residua as rz
from residua.ledger.storage import schema


def spent(ledger: rz.Ledger, name: str) -> Fraction:
    budget = ledger.budget(name)
    return Fraction(1) - Fraction(budget.state.left[0])  # type: ignore[attr-defined]


def rows(ledger: rz.Ledger) -> dict[str, list[tuple[object, ...]]]:
    """Everything that the tables say."""
    with ledger.store.reading() as connection:
        return {
            table.name: sorted(tuple(row) for row in connection.execute(select(table)))
            for table in schema.METADATA.sorted_tables
            if table is not schema.meta
        }


def cut(ledger: rz.Ledger, name: str, last: int) -> None:
    """Put a chain back to an earlier head, as a restored backup would."""
    b, r, k = schema.budgets, schema.records, schema.keys
    with ledger.store.writing() as connection:
        id = connection.execute(select(b.c.id).where(b.c.name == name)).scalar_one()
        mine = r.c.budget_id == id
        connection.execute(delete(r).where(mine, r.c.seq > last))
        connection.execute(delete(k).where(k.c.budget == name, k.c.seq > last))
        head = connection.execute(select(r.c.hash).where(mine, r.c.seq == last)).scalar_one()
        change = update(b).where(b.c.id == id)
        connection.execute(change.values(head_seq=last, head_hash=head))
        connection.commit()


def wipe(ledger: rz.Ledger) -> None:
    """A backup from before the first budget."""
    with ledger.store.writing() as connection:
        for table in schema.METADATA.sorted_tables:
            if table is not schema.meta:
                connection.execute(delete(table))
        connection.commit()
