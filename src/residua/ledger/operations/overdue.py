"""Overdue changes: windows that are over, and holds that have expired."""

from __future__ import annotations

from collections.abc import Sequence

from residua.ledger.operations.budgets import Refresh, due
from residua.ledger.operations.holding import Expire
from residua.ledger.operations.requests import LEDGER, Request
from residua.ledger.operations.unit_of_work import Page


def overdue(page: Page) -> list[Request]:
    """Requests for what is due: windows that are over, and holds that have expired."""
    sweeps: list[Request] = [
        Refresh(LEDGER, name, demanded=False)
        for name, entry in sorted(page.entries.items())
        if due(page, entry)
    ]
    open_ = {id for entry in page.entries.values() for id in entry.holds}
    late = sorted(
        (row.expires, id)
        for id, row in page.holds.items()
        if id in open_ and row.expires <= page.now
    )
    return sweeps + [Expire(LEDGER, id) for _, id in late]


def ending_with(page: Page, requests: Sequence[Request]) -> set[str]:
    """Budgets that share a hold with one that these requests release."""
    whole = {name for request in requests if request.lets_go for name in request.names}
    whole |= {name for name, entry in page.entries.items() if due(page, entry)}
    found: set[str] = set()
    for name, entry in page.entries.items():
        for id in entry.holds:
            row = page.holds[id]
            if name in whole or row.expires <= page.now:
                found.update(row.members)
    return found
