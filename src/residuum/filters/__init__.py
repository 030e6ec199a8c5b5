"""Filters: they say yes or no to the next query, adaptively, and keep the promise of a budget.

    f = rz.GdpResidueFilter(mu=1.0)
    f.request(rz.laplace(scale=2.0)).admitted

One filter a file. Each is a frozen configuration with a pure `decide(state, query)`.
"""

from residuum.filters.base import Filter
from residuum.filters.codec import from_json
from residuum.filters.decision import Decision
from residuum.filters.kinds import KINDS
from residuum.filters.state import State

__all__ = ["KINDS", "Decision", "Filter", "State", "from_json"]
