"""The menu filter: a price list for known queries, whose whole cost is worked out ahead.

Queries have integer prices and a value table (`value_table.py`) says what any use of them can come
to; the highest level that fits the target is what there is to spend. A query on the menu takes its
price, or less where the residue condition allows; any other takes the least price that it allows.

Where prices are given, that is all. Without, they are Rényi costs at a good order, drawn half-way
to what each query would cost alone, and the first query makes a plan with exits to the menu unless
the menu serves it as well (`walk.py`).

Free by the theorem of `grid.py`: `L ∘ V_{s-c} <= V_s` holds by construction for what is listed, and
is checked for what is not; copies held are a plan beside it (`⊕` commutes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.balance import Detail, make_detail
from residua.filters.decision import Decision
from residua.filters.potential.grid import Grid
from residua.filters.potential.grid_filter import grid_target, named
from residua.filters.potential.menus import LEVELS, Line, dust, priced, small_lines, table_of
from residua.filters.potential.prices import price_order
from residua.filters.potential.value_table import PARTS, Progress, Table
from residua.filters.potential.walk import Walk, WalkFilter
from residua.filters.query import Query, as_list, loss_of
from residua.filters.state import State
from residua.pld.pld import Pld

_OWN = 0.5
"""How far prices are drawn from Rényi costs to what a query would cost alone."""
_SHORT = 4
"""Short menus sell cheap queries in blocks. On longer ones, blocks of many kinds would lie about
unused: small lines are added, so that single copies can be had at what they are worth."""


@dataclass(frozen=True)
class MenuFilter(WalkFilter):
    """Keeps `(eps, delta)` at a price list; without prices, at a plan and Rényi costs."""

    eps: float
    delta: float
    menu: tuple[Query, ...]
    prices: tuple[int, ...] | None = None

    kind: ClassVar[str] = "menu"
    length_counts: ClassVar[float] = 0.7

    def __post_init__(self) -> None:
        eps, delta = grid_target(self.eps, self.delta)
        menu = tuple(named(q) for q in as_list(self.menu, "menu"))
        checks.require(len(menu) > 0, "menu", "a non-empty list of queries", self.menu)
        prices = None
        if self.prices is not None:
            given = checks.items("prices", self.prices, "a list of whole numbers")
            prices = tuple(checks.count("prices", c) for c in given)
            checks.require(len(prices) == len(menu), "prices", "one for each query", prices)
            checks.require(min(prices) >= 1, "prices", "at least 1", prices)
        checks.set_fields(self, eps=eps, delta=delta, menu=menu, prices=prices)
        super().__post_init__()

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """What is on the menu, how many at a time and for how much."""
        losses = tuple(loss_of(q) for q in self.menu)
        return _lines(self.grid, losses, self.prices)

    @cached_property
    def table(self) -> Table:
        """The value table; worked out when it is first needed, and kept on disk."""
        return _table(self.grid, self.lines)

    @cached_property
    def _listed(self) -> Mapping[Pld, Line]:
        return {line.query: line for line in self.lines}

    def build(self, progress: Progress | None = None) -> MenuFilter:
        """Work out the table now, telling how many levels there are so far."""
        _table_with(self.grid, self.lines, progress)
        return self

    def initial(self) -> Walk:
        return Walk(self.fingerprint, None, None, self._start, (), ())

    @property
    def _start(self) -> int:
        """The whole menu at the prices that were given; open without."""
        return -1 if self.prices is None else self.table.whole

    def _within(self, state: Walk) -> bool:
        if self.prices is not None and (state.plan is not None or state.left < 0):
            return False
        return super()._within(state)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """Levels, at the prices that were given; none without."""
        if self.prices is None or not isinstance(state, Walk):
            return ()
        left, whole = Fraction(state.left, PARTS), Fraction(self.table.whole, PARTS)
        return (make_detail(self.kind, "levels", left, whole),)

    def table_in(self, state: Walk) -> Table:
        return self.table

    def listed(self) -> Mapping[Pld, Line]:
        return self._listed

    @property
    def in_blocks(self) -> bool:
        return len(self.menu) <= _SHORT

    def _free(self, state: Walk) -> Any:
        return 0

    def _paid(self, before: int, after: int) -> float:
        return (before - after) / PARTS

    def cost_words(self, decision: Decision) -> str:
        cost = decision.cost
        if isinstance(cost, int | float):
            return f"{amounts.shown(cost, up=True)} of {self.table.top} levels"
        return super().cost_words(decision)


@lru_cache(maxsize=16)
def _lines(grid: Grid, losses: tuple[Pld, ...], prices: tuple[int, ...] | None) -> tuple[Line, ...]:
    if prices is not None:
        given = [Line(q, 1, c) for q, c in zip(losses, prices, strict=True)]
        return (*given, dust(grid))
    orders = [price_order(q, grid.eps, grid.delta) for q in losses if not q.is_infinite]
    if not orders:
        return (dust(grid),)
    alpha = min(orders)
    lines = priced(grid, losses, alpha, own=_OWN)
    small = small_lines(grid, alpha) if len(losses) > _SHORT else []
    return (*lines, *small, dust(grid, LEVELS))


def _table_with(grid: Grid, lines: tuple[Line, ...], progress: Progress | None) -> Table:
    return table_of(grid, lines, progress)


@lru_cache(maxsize=8)
def _table(grid: Grid, lines: tuple[Line, ...]) -> Table:
    return _table_with(grid, lines, None)
