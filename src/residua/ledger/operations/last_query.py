"""The last query that a budget admitted, read from its records on demand."""

from __future__ import annotations

import json
from collections.abc import Callable

from sqlalchemy import or_, select

from residua.errors import ResiduaError
from residua.filters.query import Query
from residua.ledger.domain.described_query import from_text
from residua.ledger.storage import schema
from residua.ledger.storage.store import Store
from residua.records import canonical

_R = schema.records
_TYPES = ("spend", "commit")
"""Records that move a budget's state where they are admitted."""
_AT_ONCE = 8
"""Commitments of a Rényi budget are passed over; a window has one at most."""


def last_query_of(store: Store, id: int, head: int) -> Callable[[], Query | None]:
    """A function that reads the last query of a budget up to a record; None before the first."""
    return lambda: _read(store, id, head)


def _read(store: Store, id: int, head: int) -> Query | None:
    # In canonical JSON `admitted` comes first, and quotes inside of texts are escaped.
    moved = or_(*(_R.c.text.like(f'{{"admitted":true,%"type":"{type}",%') for type in _TYPES))
    query = select(_R.c.text).where(_R.c.budget_id == id, _R.c.seq <= head, moved)
    with store.reading() as connection:
        found = connection.execute(query.order_by(_R.c.seq.desc()).limit(_AT_ONCE)).scalars().all()
    for text in found:
        try:
            asked = from_text(canonical(json.loads(text)["mechanism"])).query
        except (ResiduaError, ValueError, KeyError, TypeError):
            return None  # Records that were tampered with are for the verifier to report.
        if isinstance(asked, Query):
            return asked
    return None
