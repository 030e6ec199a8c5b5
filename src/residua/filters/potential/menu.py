"""The menu filter: a price list for known queries, whose whole cost is worked out ahead.

Queries have integer prices, and a value table (`grid.py`) says what any use of them can come
to; the highest level that fits the target is what there is to spend. A query on the menu takes its
price. Any other query, and one on the menu whose price is not left, takes the least part of the
table that the residue condition allows.

Without prices, a query costs its Rényi divergence at an order a little below the one that serves
the menu best, in units of which the whole budget has about two hundred.

Free by the theorem of `grid.py`: `L ∘ V_{s-c} <= V_s` holds by construction for what is listed, and
is checked for what is not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError
from residua.filters import amounts
from residua.filters.amounts import State
from residua.filters.balance import Detail, make_detail
from residua.filters.base import Filter
from residua.filters.costs import renyi_cost, response_eps
from residua.filters.decision import Decision, make_decision
from residua.filters.noise import largest_response
from residua.filters.potential.grid import PARTS, Grid, Item, Table, grid_for, step_of, value_table
from residua.filters.query import Query, as_list, loss_of, mechanism_if_known
from residua.filters.target import (
    alone_words,
    largest_mu,
    moderate_target,
    needed_alone,
    order_for,
)
from residua.pld.constructors import approximate_dp, pure_dp
from residua.pld.pld import Pld
from residua.work_limit import remembered, remembered_property


@dataclass(frozen=True)
class Levels(State):
    """What is left of the table, in parts of a level."""

    left: int


@dataclass(frozen=True)
class MenuFilter(Filter):
    """Keeps `(eps, delta)` at a price list; without prices, at rounded Rényi costs."""

    eps: float
    delta: float
    menu: tuple[Query, ...]
    prices: tuple[int, ...] | None = None

    kind: ClassVar[str] = "menu"
    remaining_is_a_query: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps, delta = moderate_target(self.eps, self.delta)
        menu = tuple(mechanism_if_known(q) for q in as_list(self.menu, "menu"))
        checks.require(len(menu) > 0, "menu", "a non-empty list of queries", self.menu)
        prices = None
        if self.prices is not None:
            given = checks.items("prices", self.prices, "a list of whole numbers")
            prices = tuple(checks.count("prices", c) for c in given)
            checks.require(len(prices) == len(menu), "prices", "one for each query", prices)
            checks.require(min(prices) >= 1, "prices", "at least 1", prices)
        checks.set_fields(self, eps=eps, delta=delta, menu=menu, prices=prices)
        super().__post_init__()

    @remembered_property
    def grid(self) -> Grid:
        """Where potentials are kept."""
        return grid_for(self.eps, self.delta)

    @remembered_property
    def listed(self) -> Mapping[Pld, int]:
        """The price of each query on the menu; queries that are too large have none."""
        losses = tuple(loss_of(q) for q in self.menu)
        return dict(_listed(self.eps, self.delta, losses, self.prices))

    @remembered_property
    def table(self) -> Table:
        """The value table."""
        return _table(self.grid, tuple(self.listed.items()))

    def initial(self) -> Levels:
        return Levels(self.fingerprint, self.table.whole)

    def check_state(self, state: Any) -> Levels:
        state = super().check_state(state)
        whole = self.table.whole
        if not isinstance(state, Levels) or not 0 <= state.left <= whole:
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def tables(self, state: State) -> dict[str, bytes]:
        """The potential of a state: a line of JSON, then doubles, least significant byte first.

        The line names the grid and the highest level of the table; the doubles are the values at
        the points of the grid, from left to right.
        """
        line: dict[str, float] = {"cells": self.grid.cells, "half": self.grid.half, "v": 1}
        line |= {"delta": self.delta, "eps": self.eps, "whole": self.table.whole}
        head = json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False)
        potential = self.potential(self.check_state(state))
        return {"potential": head.encode() + b"\n" + potential.astype("<f8").tobytes()}

    def potential(self, state: Levels) -> Floats:
        """What a state covers."""
        return self.table.at(state.left)

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)

    # -- decisions ----------------------------------------------------------------------

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """Levels."""
        assert isinstance(state, Levels)
        left, whole = Fraction(state.left, PARTS), Fraction(self.table.whole, PARTS)
        return (make_detail(self.kind, "levels", left, whole),)

    def admits(self, state: Any, query: Query, relation: str | None = None) -> bool:
        """Whether a state covers a query (and then nothing)."""
        loss = loss_of(query, relation)
        if loss.is_identity:
            return True
        price = self.listed.get(loss)
        if loss.is_infinite or (price is not None and price * PARTS <= state.left):
            return not loss.is_infinite
        return step_of(self.grid, loss).allowed(self.potential(state), self.grid.zero)

    def _decide(self, state: Levels, query: Query, relation: str | None) -> Decision:
        left = self._after(state, loss_of(query, relation))
        if left is None:
            why = "exceeds what is left"
            return make_decision(self, state, None, None, query, relation, why)
        cost = (state.left - left) / PARTS
        return make_decision(self, state, Levels(state.of, left), cost, query, relation)

    def _after(self, state: Levels, loss: Pld) -> int | None:
        """The rest after a query, or None if it does not fit."""
        if loss.is_identity:
            return state.left
        if loss.is_infinite:
            return None
        price = self.listed.get(loss)
        if price is not None and price * PARTS <= state.left:
            return state.left - price * PARTS
        return self.table.best(step_of(self.grid, loss), self.potential(state), state.left)

    # -- what is shown ------------------------------------------------------------------

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`."""
        return largest_response(self.eps, lambda eps: self.admits(state, pure_dp(eps)))

    def cost_words(self, decision: Decision) -> str:
        return f"{amounts.shown(decision.cost, up=True)} of {self.table.top} levels"

    def _need(self, decision: Decision) -> str:
        """With what the query needs by itself, unless that is no more than what is left."""
        needed = needed_alone(loss_of(decision.query, decision._relation), self.delta)
        if needed <= self.eps:
            left = response_eps(self.remaining_in(decision._before))
            if left is not None and needed <= left:
                return decision._why_not
        return f"{decision._why_not} ({alone_words(needed, self.delta)})"


@remembered(maxsize=64)
def _listed(
    eps: float, delta: float, losses: tuple[Pld, ...], prices: tuple[int, ...] | None
) -> tuple[tuple[Pld, int], ...]:
    """The queries that have a price, with it; of equal ones the last."""
    if prices is not None:
        found = zip(losses, prices, strict=True)
        return tuple({loss: c for loss, c in found if not loss.is_identity}.items())
    some = [loss for loss in losses if not (loss.is_infinite or loss.is_identity)]
    orders = [order_for(loss, eps, delta) for loss in some]
    if not orders:
        return ()
    # Prices are taken somewhat below the best order, and what fits by itself costs four fifths of
    # all levels at most.
    alpha = float(f"{1.0 + 0.65 * (min(orders) - 1.0):.6g}")
    whole = approximate_dp(eps, delta)
    costs = {loss: min(_share(loss, alpha, eps, delta), 0.8) for loss in some if loss <= whole}
    if not costs:
        return ()
    # Enough for the cheapest query to cost two.
    levels = _level_count(math.ceil(2 / min(costs.values())))
    return tuple((loss, max(1, round(share * levels))) for loss, share in costs.items())


def _level_count(wanted: float) -> float:
    """A number of levels near the one wanted: each takes memory, and few make prices coarse."""
    return min(max(200, wanted), 1000)


def _share(loss: Pld, alpha: float, eps: float, delta: float) -> float:
    """The Rényi cost of a query as a share of that of the largest Gaussian within the target."""
    cost = renyi_cost(loss, alpha)
    whole = 0.5 * alpha * largest_mu(eps, delta) ** 2
    return math.inf if cost is None or not whole else float(cost) / whole


@remembered(maxsize=16)
def _table(grid: Grid, listed: tuple[tuple[Pld, int], ...]) -> Table:
    if not listed:
        return Table(grid, np.zeros((1, grid.size)))
    alpha = order_for(pure_dp(min(grid.eps, 0.1)), grid.eps, grid.delta)
    shares = [(price, _share(loss, alpha, grid.eps, grid.delta)) for loss, price in listed]
    about = max((price / share for price, share in shares if share < math.inf), default=0.0)
    # Some `delta` for far tails: without it a Gaussian of a size that is not listed is not covered.
    dust = approximate_dp(0.0, 0.05 * grid.delta / _level_count(about))
    items = [Item(step_of(grid, loss), price) for loss, price in (*listed, (dust, 1))]
    return value_table(grid, items)
