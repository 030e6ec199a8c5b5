"""Handing a ledger to the verifier, which is loaded only then and imports nothing of this."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sqlalchemy import select

from residuum.ledger import schema
from residuum.ledger.export import chain, table
from residuum.ledger.gate import Gate
from residuum.ledger.receipts import Receipt

_B = schema.budgets


def verify(gate: Gate, expect_head: Any, since: Any, **options: Any) -> Any:
    """The verifier's report on all chains; the other options are the verifier's own."""
    verifier = import_module("residuum.verify")
    # Before the records are looked at: what others acknowledge meanwhile is not expected yet.
    expected = _expected(gate, expect_head)
    with gate.store.reading() as connection:
        rows = connection.execute(select(_B.c.id, _B.c.name).order_by(_B.c.id)).all()
        return verifier.verify_records(
            {row.name: chain(connection, row.id) for row in rows},
            tables=lambda hash: table(connection, hash),
            expect_head=expected,
            since=since,
            **options,
        )


def _expected(gate: Gate, given: Any) -> Any:
    """What heads to expect: those of a receipt, what the caller says, or the anchor's."""
    if isinstance(given, Receipt):
        return dict(given.budgets)
    if given is not None:
        return given
    said = None if gate.anchor is None else gate.anchor.read()
    return None if said is None else dict(said.marks)
