"""The menu filter: a price list for known queries, whose whole cost is worked out ahead.

Queries have integer prices and a value table (`value_table.py`) says what any use of them can come
to; the highest level that fits the target is what there is to spend. A query on the menu takes its
price, or less where the residue condition allows; any other takes the least price that it allows.
Listed queries that would cost less than some levels are sold in blocks: copies that are paid for
and not used are *held*, and cost nothing when they come.

Free by the theorem of `grid.py`: `L ∘ V_{s-c} <= V_s` holds by construction for what is listed, and
is checked for what is not; copies held are a plan beside it (`⊕` commutes).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from residuum import checks
from residuum.bounds import Floats
from residuum.errors import ArgumentError, ArgumentTypeError
from residuum.filters.decision import Decision
from residuum.filters.grid import Grid, step_of
from residuum.filters.grid_filter import (
    Counts,
    GridFilter,
    counted,
    counts_from_json,
    counts_to_json,
    grid_target,
    named,
    state_fields,
)
from residuum.filters.menus import LEVELS, Line, dust, priced, table_of
from residuum.filters.prices import price_order
from residuum.filters.query import Query, as_query, loss_of
from residuum.filters.state import State
from residuum.filters.value_table import PARTS, Progress, Table
from residuum.pld.value import Pld


@dataclass(frozen=True)
class Level(State):
    """The level that is left, in parts, and the copies that are paid for."""

    left: int
    held: Counts


@dataclass(frozen=True)
class MenuFilter(GridFilter):
    """Keeps `(eps, delta)` at a price list; without prices, Rényi costs at a good order."""

    eps: float
    delta: float
    menu: tuple[Query, ...]
    prices: tuple[int, ...] | None = None

    kind: ClassVar[str] = "menu"

    def __post_init__(self) -> None:
        eps, delta = grid_target(self.eps, self.delta)
        if isinstance(self.menu, str) or not hasattr(self.menu, "__iter__"):
            raise ArgumentTypeError(f"menu must be a list of queries, got {self.menu!r}")
        menu = tuple(named(as_query(q, "menu")) for q in self.menu)
        checks.require(len(menu) > 0, "menu", "a non-empty list of queries", self.menu)
        prices = None
        if self.prices is not None:
            prices = tuple(checks.count("prices", c) for c in self.prices)
            checks.require(len(prices) == len(menu), "prices", "one for each query", prices)
            checks.require(min(prices) >= 1, "prices", "at least 1", prices)
        self._set(eps=eps, delta=delta, menu=menu, prices=prices)
        super().__post_init__()

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is on the menu, how many at a time and for how much."""
        losses = tuple(loss_of(q) for q in self.menu)
        return _lines(self.grid, losses, self.prices)

    @property
    def table(self) -> Table:
        """The value table; worked out when it is first needed, and kept on disk."""
        return _table(self.grid, self.lines)

    def build(self, progress: Progress | None = None) -> MenuFilter:
        """Work out the table now, telling how many levels there are so far."""
        _table_with(self.grid, self.lines, progress)
        return self

    def initial(self) -> Level:
        return Level(self.fingerprint, self.table.whole, ())

    def own(self, state: Any) -> State:
        state = super().own(state)
        if not isinstance(state, Level) or not 0 <= state.left <= self.table.whole:
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def potential(self, state: Level) -> Floats:
        return self.table.at(state.left)

    def _decide(self, state: Level, query: Query, relation: str | None) -> Decision:
        loss = loss_of(query, relation)
        if loss.is_identity:
            return self._answer(state, state, 0, query, relation)
        held = dict(state.held)
        if held.get(loss, 0) > 0:
            held[loss] -= 1
            after = Level(state.of, state.left, counted(held))
            return self._answer(state, after, 0, query, relation)
        if loss.is_infinite:
            return self._answer(state, None, None, query, relation)
        copies, left = 1, -1
        for line in self.lines:
            if line.query == loss and line.price * PARTS <= state.left:
                copies, left = line.copies, state.left - line.price * PARTS
        found = self.table.best(step_of(self.grid, loss, copies), self.potential(state), state.left)
        left = max(left, -1 if found is None else found)
        if left < 0:
            return self._answer(state, None, None, query, relation)
        held[loss] = held.get(loss, 0) + copies - 1
        after = Level(state.of, left, counted(held))
        return self._answer(state, after, (state.left - left) / PARTS, query, relation)

    def spent_in(self, state: State) -> float:
        """Levels spent so far."""
        assert isinstance(state, Level)
        return (self.table.whole - state.left) / PARTS

    def worded(self, budget: Any) -> str:
        if isinstance(budget, int | float):
            return f"{budget:.6g} of {self.table.top} levels"
        return super().worded(budget)

    def state_to_json(self, state: State) -> str:
        level = self.own(state)
        assert isinstance(level, Level)
        held = counts_to_json(level.held)
        out = {"kind": self.kind, "of": level.of, "left": level.left, "held": held}
        return json.dumps(out, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def state_from_json(self, text: Any) -> State:
        fields = state_fields(self, text, {"of", "left", "held"})
        left = checks.count("left", fields["left"])
        return self.own(Level(fields["of"], left, counts_from_json("held", fields["held"])))


@lru_cache(maxsize=16)
def _lines(grid: Grid, losses: tuple[Pld, ...], prices: tuple[int, ...] | None) -> tuple[Line, ...]:
    if prices is not None:
        given = [Line(q, 1, c) for q, c in zip(losses, prices, strict=True)]
        return (*given, dust(grid))
    orders = [price_order(q, grid.eps, grid.delta) for q in losses if not q.is_infinite]
    if not orders:
        return (dust(grid),)
    alpha = min(orders)
    return (*priced(grid, losses, alpha, own=0.5), dust(grid, LEVELS))


def _table_with(grid: Grid, lines: tuple[Line, ...], progress: Progress | None) -> Table:
    return table_of(grid, lines, progress)


@lru_cache(maxsize=8)
def _table(grid: Grid, lines: tuple[Line, ...]) -> Table:
    return _table_with(grid, lines, None)
