"""What is left of a budget, in words and as a gauge of the same numbers."""

from __future__ import annotations

from typing import Any

from residua.filters.additive.base import Additive
from residua.ledger.api.views import Budget
from residua.ledger.api.wording import percent_of, percent_words, share_of, words


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
    quick = isinstance(budget.filter, Additive) and not budget.holds and budget.parent is None
    return {**out, "left": left(budget)} if quick or budget.retired else out


def left(budget: Budget) -> dict[str, Any]:
    """What is left, in words and as a share; `remaining` is None for a budget that is retired."""
    share = share_of(budget.amounts)
    return {
        "remaining": None if budget.remaining is None else words(budget, "remaining"),
        "capacity": words(budget, "capacity"),
        "share": None if share is None else float(share[0]),
        "percent": percent_of(budget.amounts),
        "percent_words": percent_words(budget.amounts),
        "of": share[1] if share is not None and len(budget.amounts) > 1 else None,
    }
