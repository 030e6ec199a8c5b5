"""How a budget stands, in words and as a gauge.

The gauge is for the eye: the share of the filter's own amounts (or of its plan, or of its levels)
that is left beside open reservations, of several the smallest. What counts is the words, which are
the library's, rounded down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from residuum.filters.filter import Additive, Filter
from residuum.filters.plan import PlanFilter
from residuum.filters.renyi_commit import RenyiCommitFilter
from residuum.filters.value_table import PARTS
from residuum.filters.walk import WalkFilter
from residuum.ledger import rules
from residuum.ledger.views import Budget
from residuum.ledger.wording import words


def row(budget: Budget) -> dict[str, Any]:
    """A budget for a list; without what is left, where that takes time to work out."""
    out: dict[str, Any] = {
        "name": budget.name,
        "filter": repr(budget.filter),
        "neighbouring": budget.neighbouring,
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
    remaining = budget.remaining
    return {
        "remaining": None if remaining is None else words(budget, remaining),
        "capacity": words(budget, budget.capacity),
        "spent": None if budget.spent is None else words(budget, budget.spent, up=True),
        "share": 0.0 if remaining is None else share(budget),
    }


def share(budget: Budget) -> float | None:
    """The share that is left, between 0 and 1; None for filters that keep no amounts."""
    own = budget._line[0]
    held = rules.follow(own, own.state, own.holds) or own.state
    ratios = list(_ratios(budget.filter, held))
    return max(0.0, min([1.0, *ratios])) if ratios else None


def _ratios(filter: Filter, state: Any) -> Iterator[float]:
    """Of each amount that a state keeps, the share that is left."""
    if isinstance(filter, WalkFilter):
        if state.left < 0:
            # Nothing is laid out yet.
            yield 1.0
        elif state.plan is None:
            yield state.left / max(1, filter.table_in(state).whole)
        else:
            # Laid out after the first block was bought.
            yield state.left / (PARTS * len(state.plan.exits))
    elif isinstance(filter, PlanFilter):
        yield sum(state.left) / max(1, sum(filter.initial().left))
    elif isinstance(filter, Additive):
        whole = filter.initial().left
        yield from (float(now / then) for now, then in zip(state.left, whole, strict=True) if then)
    elif isinstance(filter, RenyiCommitFilter) and not state.committed:
        yield float(state.left / filter.initial().left)
