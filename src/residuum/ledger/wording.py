"""The amounts of a budget in words: what is left rounded down, what was spent rounded up."""

from __future__ import annotations

from numbers import Real
from typing import Any

from residuum.errors import ResiduumError
from residuum.ledger.receipts import plain
from residuum.ledger.views import Budget

__all__ = ["words"]


def words(budget: Budget, amount: Any, *, up: bool = False) -> str:
    """An amount as its filter says it, or as itself where another filter's cap binds."""
    if type(amount) is type(budget.capacity) or isinstance(amount, Real):
        try:
            return budget.filter.worded(amount, up=up)
        except (ResiduumError, AttributeError, TypeError, ValueError):
            # A cap of another filter has amounts that this one has no words for.
            pass
    told = plain(amount)
    return str(told["text"]) if isinstance(told, dict) and "text" in told else str(told)
