"""Which decisions are cheap: closed forms make them, and the kinds alone tell which these are.

Everything else may take long, and is not computed where others wait for it. What is cheap by these
rules takes well below a millisecond, a refusal with its advice some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from residua.filters.additive.base import Additive
from residua.ledger.domain.described_query import DescribedQuery
from residua.ledger.domain.rules import BudgetSnapshot, adds_up

FILTERS = frozenset(
    {"pure", "basic", "zcdp", "approximate_zcdp", "gdp", "renyi", "gdp_residue"}
)  # fmt: skip
QUERIES = frozenset({"gaussian", "laplace", "pure_dp", "approximate_dp", "zcdp", "gdp"})
MOST_HOLDS = 16
"""Open holds that a spend may fold again and still be cheap. Sums are cheap for all."""


def is_simple(query: DescribedQuery) -> bool:
    """Whether a query is decided by a closed form wherever there is one."""
    return getattr(query.query, "kind", None) in QUERIES


def is_closed_form(snapshot: BudgetSnapshot, query: DescribedQuery) -> bool:
    """Whether a query, and the open holds with it, are decided by closed forms on a budget."""
    return (
        snapshot.filter.kind in FILTERS
        and is_simple(query)
        and (not snapshot.holds or _are_cheap(snapshot))
    )


def _are_cheap(snapshot: BudgetSnapshot) -> bool:
    """Whether the open holds are checked quickly: by one sum, or one after another if few."""
    known = len(snapshot.set_aside) == len(snapshot.holds)
    few = len(snapshot.holds) <= MOST_HOLDS or adds_up(snapshot.filter)
    return known or (few and all(map(is_simple, snapshot.holds)))


def states_closed_form(line: Iterable[BudgetSnapshot]) -> bool:
    """Whether what a receipt says is left has a closed form; a balance takes more than that.

    Beside open holds it has one where costs are fixed: what is left is a sum.
    """
    line = tuple(line)
    if not any(snapshot.holds for snapshot in line):
        return leaves_closed_form(line)
    return all(
        snapshot.filter.kind in FILTERS
        and adds_up(snapshot.filter)
        and (not snapshot.holds or _are_cheap(snapshot))
        for snapshot in line
    )


def leaves_closed_form(line: Iterable[BudgetSnapshot]) -> bool:
    """Whether what is left of a budget, with the ancestors that it charges, has a closed form."""
    line = tuple(line)
    if any(snapshot.holds for snapshot in line):
        return False
    if all(isinstance(snapshot.filter, Additive) for snapshot in line):
        return True
    return len(line) == 1 and line[0].filter.kind in FILTERS
