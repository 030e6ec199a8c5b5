"""The filter for people who have not planned: it makes a plan of the first query, with exits.

A walk (`walk.py`) over a menu for queries that nobody announced (`menus.py`). The menu is made when
the first query is known: it has lines for a family of heavy tails if the first query is of one, and
its lines are as large as that query, or as what people ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from residua import checks
from residua.filters.potential.grid_filter import grid_target, named
from residua.filters.potential.menus import family, general_menu, reach_for
from residua.filters.potential.value_table import Table
from residua.filters.potential.walk import Walk, WalkFilter
from residua.filters.query import Query, as_list, loss_of
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld


@dataclass(frozen=True)
class AutoFilter(WalkFilter):
    """Keeps `(eps, delta)` for whatever is asked; `expect` names queries that may come."""

    eps: float
    delta: float
    expect: tuple[Query, ...] | None = None

    kind: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        eps, delta = grid_target(self.eps, self.delta)
        given = () if self.expect is None else self.expect
        if isinstance(given, Pld | Mechanism):
            given = (given,)
        expect = tuple(named(q) for q in as_list(given, "expect"))
        checks.set_fields(self, eps=eps, delta=delta, expect=expect or None)
        super().__post_init__()

    def initial(self) -> Walk:
        return Walk(self.fingerprint, None, None, -1, (), ())

    def table_in(self, state: Walk) -> Table:
        expected = tuple(loss_of(q) for q in self.expect or ())
        if state.first is None:
            return general_menu(self.grid, expected)
        reach = reach_for(self.grid, state.first)
        return general_menu(self.grid, expected + family(state.first), reach)
