"""The filter for people who have not planned: it makes a plan of the first query, with exits.

Before anything is released the whole budget may still be chosen, so the first query decides: the
state becomes a plan with exits (`exits.py`), `n` copies of that query with `n` near the most there
can be, and from every point of it a way out to a menu (`menus.py`). Later,

* a query the plan is made of takes one level;
* any other query takes the least part of the plan that the residue condition allows, or leaves the
  plan for the best menu level, whichever keeps the larger share;
* off the plan, every query takes the least part of the menu level that the condition allows.

A long plan is made of blocks of copies, and queries that cost small change are bought in blocks
too, of as many as were asked for so far; what is paid for and not yet used is *held*. With
copies of `W` held, the budget is `W^r` composed with the state's; using one is on the plan `W^r`,
and any other query leaves `W^r` alone (`⊕` commutes).

Every step is checked by the residue condition, so nothing here can break the guarantee; what is
chosen depends on the queries asked before, never on answers. The filter is free by the theorem of
`grid.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from residuum import checks
from residuum.bounds import Floats
from residuum.errors import ArgumentError, ArgumentTypeError
from residuum.filters.decision import Decision
from residuum.filters.describe import as_mechanism
from residuum.filters.exits import Exits, plan_with_exits
from residuum.filters.grid import step_of
from residuum.filters.grid_filter import (
    Counts,
    GridFilter,
    counted,
    counts_from_json,
    counts_to_json,
    grid_target,
    named,
    query_from_json,
    state_fields,
)
from residuum.filters.menus import family, general_menu
from residuum.filters.prices import most_copies
from residuum.filters.query import Query, as_query, loss_of
from residuum.filters.state import State
from residuum.filters.value_table import PARTS, Item, Table, value_table
from residuum.pld.value import Pld

_BLOCKS = 200
"""A plan has at most about so many levels."""
_SHARES = (1.0, 0.995, 0.99, 0.98, 0.97, 0.96, 0.94, 0.92, 0.9)
_SMALL_CHANGE = 2
_REMEMBERED = 16
_LENGTH_COUNTS = 0.88
"""How much the length of a plan counts against the quality of its exits."""


@dataclass(frozen=True)
class Plan:
    """Blocks of some copies of one query, and the menu level that each level can leave to."""

    query: Pld
    copies: int
    exits: tuple[int, ...]


@dataclass(frozen=True)
class Walk(State):
    """Where the walk has come to."""

    first: Pld | None
    """The first query, if the menu has lines for its family."""
    plan: Plan | None
    left: int
    """The level of the plan, or without one of the menu, in parts; -1 at the start."""
    held: Counts
    seen: Counts
    """How often the latest kinds of query were asked for."""


@dataclass(frozen=True)
class AutoFilter(GridFilter):
    """Keeps `(eps, delta)` for whatever is asked; `expect` names queries that may come."""

    eps: float
    delta: float
    expect: tuple[Query, ...] | None = None

    kind: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        eps, delta = grid_target(self.eps, self.delta)
        given = () if self.expect is None else tuple(self.expect)
        expect = tuple(named(as_query(q, "expect")) for q in given)
        self._set(eps=eps, delta=delta, expect=expect or None)
        super().__post_init__()

    # -- states -------------------------------------------------------------------------

    def initial(self) -> Walk:
        return Walk(self.fingerprint, None, None, -1, (), ())

    def menu(self, state: Walk) -> Table:
        """The menu that a state's exits lead to."""
        expected = tuple(loss_of(q) for q in self.expect or ())
        return general_menu(self.grid, expected + (family(state.first) if state.first else ()))

    def potential(self, state: Walk) -> Floats | None:
        if state.left < 0:
            return None
        if state.plan is None:
            return self.menu(state).at(state.left)
        return self._table(state).at(state.left)

    def _table(self, state: Walk) -> Table:
        assert state.plan is not None
        return _plan_table(self.menu(state), state.plan)

    def own(self, state: Any) -> State:
        state = super().own(state)
        if not isinstance(state, Walk) or not self._within(state):
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def _within(self, state: Walk) -> bool:
        if state.left < 0:
            return state.left == -1 and state.plan is None
        menu = self.menu(state)
        if state.plan is None:
            return state.left <= menu.whole
        exits = state.plan.exits
        inside = state.left <= (len(exits) - 1) * PARTS
        return inside and all(0 <= e <= menu.top for e in exits)

    # -- decisions ----------------------------------------------------------------------

    def _decide(self, state: Walk, query: Query, relation: str | None) -> Decision:
        loss = loss_of(query, relation)
        if loss.is_identity:
            return self._answer(state, state, "nothing", query, relation)
        held = dict(state.held)
        if held.get(loss, 0) > 0:
            held[loss] -= 1
            after = replace(state, held=counted(held), seen=_again(state.seen, loss))
            return self._answer(state, after, "nothing (paid for before)", query, relation)
        if not self._on_plan(state, loss) and not self.admits(state, loss):
            return self._answer(state, None, None, query, relation)
        state_after, cost = self._walked(state, loss)
        return self._answer(state, state_after, cost, query, relation)

    def _on_plan(self, state: Walk, loss: Pld) -> bool:
        """Whether a query is what the plan is made of: then it fits by construction."""
        return state.plan is not None and state.plan.query == loss and state.left >= PARTS

    def _walked(self, state: Walk, loss: Pld) -> tuple[Walk, str]:
        """Where to go on admitting a query that is known to fit."""
        state = replace(state, seen=_again(state.seen, loss))
        if state.left < 0:
            state = replace(state, first=loss if family(loss) else None)
            return self._first(state, loss), "a share of the budget"
        plan = state.plan
        if plan is not None and self._on_plan(state, loss):
            return _bought(state, loss, plan.copies, state.left - PARTS), "1 level of the plan"
        menu = self.menu(state)
        left, copies = self._best(menu, state, loss, menu.whole if plan else state.left)
        if plan is not None:
            kept, bought = self._best(self._table(state), state, loss, state.left)
            staying = (1.0 - kept / max(1, state.left)) / bought
            leaving = (1.0 - left / (PARTS * max(1, plan.exits[state.left // PARTS]))) / copies
            if staying <= leaving:
                return _bought(state, loss, bought, kept), _share(staying)
            return _bought(replace(state, plan=None), loss, copies, left), "the plan"
        share = 1.0 - left / max(1, state.left)
        return _bought(state, loss, copies, left), _share(share)

    def _best(self, table: Table, state: Walk, loss: Pld, most: int) -> tuple[int, int]:
        """The level to go on with, and how many copies to buy.

        Against a level that is small change: where copies cost less in a block, one is bought, of
        no more copies than were asked for so far and at a price of a few levels.
        """
        potential = self.potential(state)
        best, copies = table.best(step_of(self.grid, loss), potential, most) or 0, 1
        asked, more = dict(state.seen).get(loss, 1), 2
        while more <= asked and most - best <= _SMALL_CHANGE * PARTS:
            left = table.best(step_of(self.grid, loss, more), potential, most)
            if left is None or (most - left) * copies >= (most - best) * more:
                break
            best, copies, more = left, more, 2 * more
        return best, copies

    def _first(self, state: Walk, loss: Pld) -> Walk:
        planned = self._planned(state, loss)
        if planned is not None:
            return planned
        level = self.menu(state).best(step_of(self.grid, loss), None) or 0
        return replace(state, plan=None, left=level)

    def _planned(self, state: Walk, loss: Pld) -> Walk | None:
        """The best plan for a query, exits and length weighed; None where there is none."""
        menu, grid, potential = self.menu(state), self.grid, self.potential(state)
        further = most_copies(grid, loss, potential) - 1
        if further < 1:
            return None
        copies = -(-further // _BLOCKS)
        whole = further // copies
        spare = further - whole * copies
        items = [Item(step_of(grid, loss, copies), 1)]
        best: tuple[float, int, Exits, int] | None = None
        tried: set[int] = set()
        for share in _SHARES:
            length = int(whole * share)
            if length < 1 or length in tried:
                continue
            if best is not None and _LENGTH_COUNTS * share + 1.0 - _LENGTH_COUNTS < best[0]:
                break
            tried.add(length)
            extra = spare if length == whole else 0
            lead = step_of(grid, loss, 1 + extra)
            reached = menu.best(lead, potential)
            if reached is None:
                continue
            first = reached // PARTS
            exits = plan_with_exits(menu, items, length, lead, potential, first)
            if exits is None:
                continue
            value = _LENGTH_COUNTS * length / whole
            value += (1.0 - _LENGTH_COUNTS) * exits.quality(first)
            if best is None or value > best[0]:
                best = value, length, exits, extra
        if best is None:
            return None
        _, length, exits, extra = best
        plan = Plan(loss, copies, exits.levels)
        made = replace(state, plan=plan, left=length * PARTS)
        # The lead pays for this query and for the copies that do not fill a block.
        return _bought(made, loss, 1 + extra, made.left)

    # -- as text ------------------------------------------------------------------------

    def state_to_json(self, state: State) -> str:
        walk = self.own(state)
        assert isinstance(walk, Walk)
        out: dict[str, Any] = {"kind": self.kind, "of": walk.of, "left": walk.left}
        out["first"] = None if walk.first is None else as_mechanism(walk.first).to_dict()
        out["plan"] = None
        if walk.plan is not None:
            query, copies, exits = walk.plan.query, walk.plan.copies, list(walk.plan.exits)
            out["plan"] = {"query": as_mechanism(query).to_dict(), "copies": copies, "exits": exits}
        out["held"], out["seen"] = counts_to_json(walk.held), counts_to_json(walk.seen)
        return json.dumps(out, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def state_from_json(self, text: Any) -> State:
        fields = state_fields(self, text, {"of", "left", "held", "seen", "first", "plan"})
        left = fields["left"]
        walk = Walk(
            fields["of"],
            None if fields["first"] is None else query_from_json(fields["first"]),
            None if fields["plan"] is None else _plan_from_json(fields["plan"]),
            -1 if type(left) is int and left == -1 else checks.count("left", left),
            counts_from_json("held", fields["held"]),
            counts_from_json("seen", fields["seen"]),
        )
        return self.own(walk)


def _plan_from_json(given: Any) -> Plan:
    if not isinstance(given, dict) or set(given) != {"query", "copies", "exits"}:
        raise ArgumentError(f"plan must have query, copies and exits, got {checks.shown(given)}")
    if not isinstance(given["exits"], list) or not given["exits"]:
        raise ArgumentTypeError(f"exits must be a list, got {checks.shown(given['exits'])}")
    copies = checks.count("copies", given["copies"])
    checks.require(copies > 0, "copies", "at least 1", copies)
    exits = tuple(checks.count("exits", e) for e in given["exits"])
    return Plan(query_from_json(given["query"]), copies, exits)


@lru_cache(maxsize=64)
def _plan_table(menu: Table, plan: Plan) -> Table:
    step = step_of(menu.grid, plan.query, plan.copies)
    floors = [menu.levels[level] for level in plan.exits]
    return value_table(menu.grid, [Item(step, 1)], floors, most=len(floors) - 1)


def _again(seen: Counts, loss: Pld) -> Counts:
    """The latest kinds of query, with how often they were asked for."""
    often = dict(seen).get(loss, 0) + 1
    return tuple([(loss, often), *(pair for pair in seen if pair[0] != loss)][:_REMEMBERED])


def _share(share: float) -> str:
    return f"{100.0 * share:.3g} % of what was left"


def _bought(state: Walk, loss: Pld, copies: int, left: int) -> Walk:
    """The state after buying some copies, of which one is used now."""
    held = dict(state.held)
    held[loss] = held.get(loss, 0) + copies - 1
    return replace(state, left=left, held=counted(held))
