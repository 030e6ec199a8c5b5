"""Filters: they say yes or no to the next query, adaptively, and keep the promise of a budget.

    f = rz.GdpResidueFilter(mu=1.0)
    f.spend(rz.laplace(scale=2.0)).admitted

Each filter is a frozen configuration with a pure `decide(state, query)`.
"""

from residua.filters.amounts import State
from residua.filters.balance import Balance, Detail
from residua.filters.base import Filter
from residua.filters.codec import KINDS, from_json
from residua.filters.decision import Decision

__all__ = ["KINDS", "Balance", "Decision", "Detail", "Filter", "State", "from_json"]
