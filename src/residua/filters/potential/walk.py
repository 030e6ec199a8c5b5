"""Walks over a menu, with a plan for the first query: what `menu` and `auto` have in common.

Before anything is released the whole budget may still be chosen, so the first query decides: the
state becomes a plan with exits (`exits.py`), `n` copies of that query with `n` near the most there
can be, and from every point of it a way out to a menu, a value table (`value_table.py`); or the
menu at once, where that serves the first query nearly as well. Later,

* a query the plan is made of takes one level;
* any other query takes the least part of the plan that the residue condition allows, or leaves the
  plan for the best menu level, whichever keeps the larger share;
* off the plan, every query takes the least part of the menu level that the condition allows, and
  never more than its listed price.

A long plan is made of blocks of copies, and queries that cost small change are bought in blocks
too, of as many as were asked for so far; what is paid for and not yet used is *held*. With
copies of `W` held, the budget is `W^r` composed with the state's; using one is on the plan `W^r`,
and any other query leaves `W^r` alone (`⊕` commutes).

Every step is checked by the residue condition or satisfies it by construction (plans, listed
prices), so nothing here can break the guarantee; what is chosen depends on the queries asked
before, never on answers. The filters are free by the theorem of `grid.py`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.decision import Decision
from residua.filters.potential.descriptions import (
    Names,
    counts_from_json,
    counts_to_json,
    from_plain,
    kept,
    name_of,
    to_dict,
)
from residua.filters.potential.exits import Exits, plan_with_exits
from residua.filters.potential.grid import step_of
from residua.filters.potential.grid_filter import Counts, GridFilter, counted, state_fields
from residua.filters.potential.menus import Line
from residua.filters.potential.prices import most_copies
from residua.filters.potential.value_table import PARTS, Item, Table, value_table
from residua.filters.query import Query, loss_of
from residua.filters.state import State
from residua.pld.pld import Pld

_BLOCKS = 200
"""A plan has at most about so many levels."""
_SHARES = (1.0, 0.995, 0.99, 0.98, 0.97, 0.96, 0.94, 0.92, 0.9)
_SAMPLED = (0.9, 0.7, 0.5, 0.3, 0.1)
"""Where on the menu it is tried what the first query costs there."""
_SMALL_CHANGE = 2
_REMEMBERED = 16


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
    """The first query, which the menu may depend on."""
    plan: Plan | None
    left: int
    """The level of the plan, or without one of the menu, in parts; -1 at the start."""
    held: Counts
    seen: Counts
    """How often the latest kinds of query were asked for."""
    names: Names = ()
    """What those were asked for as that do not describe themselves."""

    def named(self, names: Names) -> Walk:
        """The same with the names of what it holds, of its own and these."""
        if not self.names and not names:
            return self
        losses = [] if self.first is None else [self.first]
        if self.plan is not None:
            losses.append(self.plan.query)
        losses += [loss for loss, _ in (*self.held, *self.seen)]
        return replace(self, names=kept(self.names + names, losses))


class WalkFilter(GridFilter):
    """A filter for `(eps, delta)` that walks over a menu."""

    length_counts: ClassVar[float] = 0.88
    """How much the length of a plan counts against the quality of its exits."""

    @abstractmethod
    def table_in(self, state: Walk) -> Table:
        """The menu that a state is on, or that its plan can be left for."""

    def listed(self) -> Mapping[Pld, Line]:
        """Queries that have a price on the menu."""
        return {}

    @property
    def in_blocks(self) -> bool:
        """Whether listed queries are bought in blocks from the start."""
        return False

    def potential(self, state: Walk) -> Floats | None:
        if state.left < 0:
            return None
        if state.plan is None:
            return self.table_in(state).at(state.left)
        return self._table(state).at(state.left)

    def whole(self, state: Walk) -> int:
        return self.table_in(state).whole

    def _table(self, state: Walk) -> Table:
        assert state.plan is not None
        return _plan_table(self.table_in(state), state.plan)

    def own(self, state: Any) -> State:
        state = super().own(state)
        if not isinstance(state, Walk) or not self._within(state):
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def _within(self, state: Walk) -> bool:
        if state.left < 0:
            return state.left == -1 and state.plan is None
        menu = self.table_in(state)
        if state.plan is None:
            return state.left <= menu.whole
        exits = state.plan.exits
        inside = state.left <= (len(exits) - 1) * PARTS
        return inside and min(exits) >= 0 and max(exits) <= menu.top

    # -- decisions ----------------------------------------------------------------------

    def _decide(self, state: Walk, query: Query, relation: str | None) -> Decision:
        loss = loss_of(query, relation)
        if loss.is_identity:
            return self._answer(state, state, self._free(state), query, relation)
        held = dict(state.held)
        if held.get(loss, 0) > 0:
            held[loss] -= 1
            after = replace(state, held=counted(held), seen=_again(state.seen, loss))
            after = after.named(name_of(loss, query, relation))
            return self._answer(state, after, self._free(state), query, relation)
        if not self._on_plan(state, loss) and not self.admits(state, loss):
            return self._answer(state, None, None, query, relation)
        after, cost = self._walked(state, loss)
        after = after.named(name_of(loss, query, relation))
        return self._answer(state, after, cost, query, relation)

    def _free(self, state: Walk) -> Any:
        """The cost of what takes nothing."""
        return "nothing"

    def _on_plan(self, state: Walk, loss: Pld) -> bool:
        """Whether a query is what the plan is made of: then it fits by construction."""
        return state.plan is not None and state.plan.query == loss and state.left >= PARTS

    def _walked(self, state: Walk, loss: Pld) -> tuple[Walk, Any]:
        """Where to go on admitting a query that is known to fit."""
        state = replace(state, seen=_again(state.seen, loss))
        if state.left < 0:
            return self._first(replace(state, first=loss), loss), "a share of the budget"
        plan = state.plan
        if plan is not None and self._on_plan(state, loss):
            return _bought(state, loss, plan.copies, state.left - PARTS), "1 level of the plan"
        menu = self.table_in(state)
        left, copies = self._best(menu, state, loss, menu.whole if plan else state.left)
        if plan is not None:
            kept, bought = self._best(self._table(state), state, loss, state.left)
            staying = (1.0 - kept / max(1, state.left)) / bought
            leaving = (1.0 - left / (PARTS * max(1, plan.exits[state.left // PARTS]))) / copies
            if staying <= leaving:
                return _bought(state, loss, bought, kept), _share(staying, "plan")
            return _bought(replace(state, plan=None), loss, copies, left), "the plan"
        line = self.listed().get(loss)
        if line is not None and (self.in_blocks or line.copies <= dict(state.seen)[loss]):
            price = line.price * PARTS
            if price <= state.left and price * copies < (state.left - left) * line.copies:
                left, copies = state.left - price, line.copies
        return _bought(state, loss, copies, left), self._paid(state.left, left)

    def _paid(self, before: int, after: int) -> Any:
        """What a query took of a menu level."""
        return _share(1.0 - after / max(1, before), "menu")

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
        """A plan with exits, or the menu at once: the better of both for the first query."""
        menu, grid = self.table_in(state), self.grid
        level = menu.best(step_of(grid, loss), None) or 0
        on_menu = replace(state, plan=None, left=level)
        further = most_copies(grid, loss) - 1
        if further < 1:
            return on_menu
        copies = -(-further // _BLOCKS)
        alone = min(1.0, int(self._served(menu, loss, copies, level)) / further)
        value = self.length_counts * alone + 1.0 - self.length_counts
        found = self._planned(menu, loss, further, copies, value)
        if found is None:
            return on_menu
        length, exits, extra = found
        made = replace(state, plan=Plan(loss, copies, exits.levels), left=length * PARTS)
        # The lead pays for this query and for the copies that do not fill a block.
        return _bought(made, loss, 1 + extra, made.left)

    def _served(self, menu: Table, loss: Pld, copies: int, level: int) -> float:
        """About how many of a query the menu alone would admit from a level on."""
        step, served = step_of(self.grid, loss, copies), 0.0
        for share in _SAMPLED:
            at = int(level * share)
            kept = menu.best(step, menu.at(at), at)
            if kept is not None and kept < at:
                served += level * copies / (len(_SAMPLED) * (at - kept))
        return served

    def _planned(
        self, menu: Table, loss: Pld, further: int, copies: int, value: float
    ) -> tuple[int, Exits, int] | None:
        """The best plan for a first query, exits and length weighed; None if none beats `value`."""
        grid = self.grid
        whole = further // copies
        spare = further - whole * copies
        items = [Item(step_of(grid, loss, copies), 1)]
        best: tuple[int, Exits, int] | None = None
        tried: set[int] = set()
        for share in _SHARES:
            length = int(whole * share)
            if length < 1 or length in tried:
                continue
            if self.length_counts * share + 1.0 - self.length_counts < value:
                break
            tried.add(length)
            extra = spare if length == whole else 0
            lead = step_of(grid, loss, 1 + extra)
            reached = menu.best(lead, None)
            if reached is None:
                continue
            first = reached // PARTS
            exits = plan_with_exits(menu, items, length, lead, None, first)
            if exits is None:
                continue
            got = self.length_counts * length / whole + (1.0 - self.length_counts) * exits.quality(
                first
            )
            if got > value:
                best, value = (length, exits, extra), got
        return best

    # -- as text ------------------------------------------------------------------------

    def state_to_json(self, state: State) -> str:
        walk = self.own(state)
        assert isinstance(walk, Walk)
        out: dict[str, Any] = {"kind": self.kind, "of": walk.of, "left": walk.left}
        names = walk.names
        out["first"] = None if walk.first is None else to_dict(names, walk.first)
        out["plan"] = None
        if walk.plan is not None:
            query, copies, exits = walk.plan.query, walk.plan.copies, list(walk.plan.exits)
            out["plan"] = {"query": to_dict(names, query), "copies": copies, "exits": exits}
        out["held"], out["seen"] = (counts_to_json(names, c) for c in (walk.held, walk.seen))
        return json.dumps(out, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def state_from_json(self, text: Any) -> State:
        fields = state_fields(self, text, {"of", "left", "held", "seen", "first", "plan"})
        left = fields["left"]
        left = -1 if type(left) is int and left == -1 else checks.count("left", left)
        first, names = (None, ()) if fields["first"] is None else from_plain(fields["first"])
        plan = None
        if fields["plan"] is not None:
            plan, more = _plan_from_json(fields["plan"])
            names += more
        held, more = counts_from_json("held", fields["held"])
        seen, others = counts_from_json("seen", fields["seen"])
        walk = Walk(fields["of"], first, plan, left, held, seen)
        return self.own(walk.named(names + more + others))


def _plan_from_json(given: Any) -> tuple[Plan, Names]:
    if not isinstance(given, dict) or set(given) != {"query", "copies", "exits"}:
        raise ArgumentError(f"plan must have query, copies and exits, got {checks.shown(given)}")
    if not isinstance(given["exits"], list) or not given["exits"]:
        raise ArgumentTypeError(f"exits must be a list, got {checks.shown(given['exits'])}")
    copies = checks.count("copies", given["copies"])
    checks.require(copies > 0, "copies", "at least 1", copies)
    exits = tuple(checks.count("exits", e) for e in given["exits"])
    query, names = from_plain(given["query"])
    return Plan(query, copies, exits), names


@lru_cache(maxsize=64)
def _plan_table(menu: Table, plan: Plan) -> Table:
    step = step_of(menu.grid, plan.query, plan.copies)
    floors = [menu.levels[level] for level in plan.exits]
    return value_table(menu.grid, [Item(step, 1)], floors, most=len(floors) - 1)


def _again(seen: Counts, loss: Pld) -> Counts:
    """The latest kinds of query, with how often they were asked for."""
    often = dict(seen).get(loss, 0) + 1
    return tuple([(loss, often), *(pair for pair in seen if pair[0] != loss)][:_REMEMBERED])


def _share(share: float, of: str) -> str:
    return f"{100.0 * share:.3g} % of the levels left on the {of}"


def _bought(state: Walk, loss: Pld, copies: int, left: int) -> Walk:
    """The state after buying some copies, of which one is used now."""
    held = dict(state.held)
    held[loss] = held.get(loss, 0) + copies - 1
    return replace(state, left=left, held=counted(held))
