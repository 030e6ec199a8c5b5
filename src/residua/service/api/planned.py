"""Planning: how many copies of a query fit, and the least noise that fits. Pure, for a worker."""

from __future__ import annotations

import time
from typing import Any

from residua.errors import TooLargeError
from residua.filters.base import Filter
from residua.filters.query import as_mechanism
from residua.ledger.api.views import Budget
from residua.ledger.domain.described_query import asked as described
from residua.ledger.domain.receipts import plain
from residua.mechanisms.mechanism import Mechanism
from residua.planning import count_more, least_noise

PATIENCE = 2.0
"""Seconds that a plan may take, more or less."""
FIRST = 64


def planned(budget: Budget, asked: list[Mechanism], n: int, most: int) -> dict[str, Any]:
    """How many more would fit of a budget, and with how little noise `n` rounds would."""
    at: dict[str, Any] = {"state": budget.state, "relation": budget.relation}
    if any(described(one).contradicts(budget.relation, budget.unit) for one in asked):
        return {
            "how_many": 0,
            "rounds": 0,
            "counting_ended": False,
            "n": n,
            "least_noise": None,
            "remaining": plain(budget.remaining),
        }
    count, ended, pace = counted(budget.filter, asked, most, at)
    if pace * n * len(asked) > PATIENCE:
        raise TooLargeError(
            f"n must be small enough to be tried out for this filter, got {n}; each try"
            f" takes about {pace:.2g} s a query"
        )
    least = least_noise(budget.filter, asked, n, **at)
    return {
        "how_many": count,
        "rounds": count // len(asked),
        "counting_ended": ended,
        "n": n,
        "least_noise": None if least is None else [as_mechanism(one).to_dict() for one in least],
        "remaining": plain(budget.remaining),
    }


def counted(
    filter: Filter, asked: list[Mechanism], most: int, at: dict[str, Any]
) -> tuple[int, bool, float]:
    """How many fit, whether counting ended before a refusal, and the seconds that a decision took.

    Some filters decide each query one by one, so counting goes as far as there is patience.
    """
    start = time.monotonic()
    upto = min(most, FIRST)
    while True:
        begun = time.monotonic()
        count, ended = count_more(filter, asked, most=upto, **at)
        pace = (time.monotonic() - begun) / max(1, count)
        if count < upto or upto == most or time.monotonic() - start > PATIENCE / 3:
            return count, ended, pace
        upto = min(most, 4 * upto)
