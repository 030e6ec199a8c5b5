"""What is left of a budget, in words and as a gauge of its share."""

from __future__ import annotations

from typing import Any

from residua.filters.balance import Balance, detail_words, percent, share_words
from residua.ledger.api.views import Budget

_QUICK = ("pure", "basic", "approximate_zcdp", "gdp", "gdp_residue")
"""Filters whose balance takes a few milliseconds, guarantee included."""


def row(budget: Budget) -> dict[str, Any]:
    """A budget for a list; without what is left, where that takes time to work out."""
    out: dict[str, Any] = {
        "name": budget.name,
        "filter": repr(budget.filter),
        "relation": budget.relation,
        "unit": budget.unit,
        "data": budget.data,
        "parent": budget.parent,
        "partition": budget.partition,
        "window": budget.window,
        "generation": budget.generation,
        "seq": budget.seq,
        "retired": budget.retired,
        "holds": len(budget.holds),
        "left": None,
    }
    return {**out, "left": left(budget, budget.balance)} if is_quick(budget) else out


def is_quick(budget: Budget) -> bool:
    """Whether what is left takes no time to work out."""
    alone = not budget.holds and budget.parent is None
    quick = budget.retired or (budget.filter.kind in _QUICK and alone)
    return quick and budget.promises_closed_form


def left(budget: Budget, balance: Balance | None) -> dict[str, Any]:
    """What is left, as a share and in words; `share` is None for a budget that is retired."""
    if balance is None:
        return {"share": None, "text": None, "capacity": budget.capacity_words}
    return {
        "share": balance.share,
        "percent": percent(balance.share),
        "percent_words": share_words(balance),
        "text": balance.text,
        "details": detail_words(balance.details),
    }
