"""The owner of a reservation, open or not, which a scope is compared with.

The ledger lists open reservations alone, and a commit that is repeated gets its receipt again; so
who may read that is looked up among all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from residua.ledger.api.ledger import Ledger
from residua.ledger.storage.schema import holds


class HoldOwner(NamedTuple):
    """The principal that made a reservation, and the budgets that it holds from."""

    principal: str
    budgets: tuple[str, ...]


def hold_of(ledger: Ledger, id: str) -> HoldOwner | None:
    """The owner of a reservation, by its id; None where there is no such reservation."""
    wanted = select(holds.c.principal, holds.c.members).where(holds.c.id == id)
    with ledger.store.reading() as connection:
        row = connection.execute(wanted).one_or_none()
    return None if row is None else HoldOwner(row.principal, tuple(row.members.split("\n")))
