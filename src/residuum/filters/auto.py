"""The filter for people who have not planned: it makes a plan of the first query, with exits.

Before anything is released the whole budget may still be chosen, so the first query decides: the
state becomes a plan with exits (`exits.py`), `n` copies of that query with `n` near the most there
can be, and from every point of it a way out to a menu (`menus.py`). Later,

* a query the plan is made of takes one level;
* any other query takes the least number of levels that the residue condition allows, or leaves the
  plan for the best menu level, whichever keeps the larger share;
* off a plan, a query that comes again gets a plan of its own, made from what is left.

Queries that are cheap against a level are bought in blocks, as many at once as have been asked for
so far; copies that are paid for and not yet used are *held*. With copies of `W` held, the budget is
`W^r` composed with the state's; using one is on the plan `W^r`, and any other query leaves `W^r`
alone (`⊕` commutes).

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
from residuum.filters.grid_filter import Counts, GridFilter, counted, target
from residuum.filters.menus import family, general_menu
from residuum.filters.prices import most_copies
from residuum.filters.query import Query, as_query, loss_of
from residuum.filters.state import State
from residuum.filters.value_table import Item, Table, value_table
from residuum.mechanisms.codec import from_dict as mechanism_from_dict
from residuum.pld.value import Pld

_BLOCKS = 200
"""A plan has at most about so many levels."""
_PLANS = 12
"""How many plans are made in a life, beside the first."""
_SHARES = (1.0, 0.99, 0.98, 0.97, 0.96, 0.94, 0.92, 0.9)
_LATER = (1.0, 0.96, 0.92)
_LENGTH_COUNTS = 0.88
"""How much the length of a plan counts against the quality of its exits."""
_SETTLED = 3
_LOYALTY = 2.0
_CHANGE = 0.02
"""A query that interrupts a settled plan for the first time stays on it, if that takes at most so
many times the share that leaving would, and a little; any other stays if it takes no more."""
_REMEMBERED = 8


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
    """The level of the plan, or without one of the menu; -1 at the start."""
    held: Counts
    seen: Counts
    plans: int


@dataclass(frozen=True)
class AutoFilter(GridFilter):
    """Keeps `(eps, delta)` for whatever is asked; `expect` names queries that may come."""

    eps: float
    delta: float
    expect: tuple[Query, ...] | None = None

    kind: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        eps, delta = target(self.eps, self.delta)
        given = () if self.expect is None else tuple(self.expect)
        expect = tuple(as_query(q, "expect") for q in given)
        self._set(eps=eps, delta=delta, expect=expect or None)
        super().__post_init__()

    # -- states -------------------------------------------------------------------------

    def initial(self) -> Walk:
        return Walk(self.fingerprint, None, None, -1, (), (), 0)

    def menu(self, state: Walk) -> Table:
        """The menu that a state's exits lead to."""
        expected = tuple(loss_of(q) for q in self.expect or ())
        return general_menu(self.grid, expected + (family(state.first) if state.first else ()))

    def potential(self, state: Walk) -> Floats | None:
        if state.left < 0:
            return None
        if state.plan is None:
            level: Floats = self.menu(state).levels[state.left]
            return level
        planned: Floats = self._table(state).levels[state.left]
        return planned

    def _table(self, state: Walk) -> Table:
        assert state.plan is not None
        return _plan_table(self.menu(state), state.plan)

    def own(self, state: Any) -> State:
        state = super().own(state)
        if not isinstance(state, Walk) or not self._within(state):
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def _within(self, state: Walk) -> bool:
        top = self.menu(state).top if state.left >= 0 else 0
        if state.plan is None:
            return -1 <= state.left <= top
        exits = state.plan.exits
        return 0 <= state.left < len(exits) and all(0 <= e <= top for e in exits)

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
        return state.plan is not None and state.plan.query == loss and state.left > 0

    def _walked(self, state: Walk, loss: Pld) -> tuple[Walk, str]:
        """Where to go on admitting a query that is known to fit."""
        previous = state.seen[0][0] if state.seen else None
        state = replace(state, seen=_again(state.seen, loss))
        if state.left < 0:
            state = replace(state, first=loss if family(loss) else None)
            return self._first(state, loss), "a share of the budget"
        plan = state.plan
        if plan is not None and self._on_plan(state, loss):
            return _bought(state, loss, plan.copies, state.left - 1), f"1 level of {state.left}"
        often = dict(state.seen)
        again = often[loss]
        if plan is not None and state.left > 0:
            left, copies = self._best(self._table(state), state, loss, again)
            staying = (state.left - left) / copies / state.left
            level = self.menu(state).best(step_of(self.grid, loss), self.potential(state)) or 0
            leaving = 1.0 - level / max(1, plan.exits[state.left])
            loyal = previous == plan.query and often.get(plan.query, 0) >= _SETTLED
            if staying <= (_LOYALTY * leaving + _CHANGE if loyal else leaving):
                after = _bought(state, loss, copies, left)
                return after, f"{state.left - left} of {state.left} levels"
        if again > 1 and state.plans < _PLANS:
            planned = self._planned(state, loss, _LATER)
            if planned is not None:
                return replace(planned, plans=state.plans + 1), "a new plan"
        if plan is not None:
            level = self.menu(state).best(step_of(self.grid, loss), self.potential(state)) or 0
            return replace(state, plan=None, left=level), "the plan"
        left, copies = self._best(self.menu(state), state, loss, again)
        return _bought(state, loss, copies, left), f"{state.left - left} of {state.left} levels"

    def _best(self, table: Table, state: Walk, loss: Pld, asked: int) -> tuple[int, int]:
        """The level to go on with and how many copies to buy: the cheapest per copy.

        At most as many as were asked for so far, and a tenth of what is left.
        """
        potential = self.potential(state)
        found = table.best(step_of(self.grid, loss), potential, state.left)
        best, copies = (found or 0), 1
        more = 2
        while more <= asked:
            left = table.best(step_of(self.grid, loss, more), potential, state.left)
            if left is None or (state.left - left) * 10 > state.left:
                break
            if (state.left - left) * copies < (state.left - best) * more:
                best, copies = left, more
            more *= 2
        return best, copies

    def _first(self, state: Walk, loss: Pld) -> Walk:
        planned = self._planned(state, loss, _SHARES)
        if planned is not None:
            return planned
        level = self.menu(state).best(step_of(self.grid, loss), None) or 0
        return replace(state, plan=None, left=level)

    def _planned(self, state: Walk, loss: Pld, shares: tuple[float, ...]) -> Walk | None:
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
        for share in shares:
            length = int(whole * share)
            if length < 1 or length in tried:
                continue
            if best is not None and _LENGTH_COUNTS * share + 1.0 - _LENGTH_COUNTS < best[0]:
                break
            tried.add(length)
            extra = spare if length == whole else 0
            lead = step_of(grid, loss, 1 + extra)
            first = menu.best(lead, potential)
            if first is None:
                continue
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
        made = replace(state, plan=plan, left=length)
        # The lead pays for this query and for the copies that do not fill a block.
        return _bought(made, loss, 1 + extra, length)

    # -- as text ------------------------------------------------------------------------

    def state_to_json(self, state: State) -> str:
        walk = self.own(state)
        assert isinstance(walk, Walk)
        out: dict[str, Any] = {"kind": self.kind, "of": walk.of, "left": walk.left}
        out["plans"] = walk.plans
        if walk.first is not None:
            out["first"] = _text(walk.first)
        if walk.plan is not None:
            query, copies, exits = walk.plan.query, walk.plan.copies, list(walk.plan.exits)
            out["plan"] = {"query": _text(query), "copies": copies, "exits": exits}
        for name in ("held", "seen"):
            out[name] = [[_text(query), n] for query, n in getattr(walk, name)]
        return json.dumps(out, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def state_from_json(self, text: Any) -> State:
        given = json.loads(text) if isinstance(text, str) else text
        try:
            plan = given.get("plan")
            walk = Walk(
                str(given["of"]),
                _query(given["first"]) if "first" in given else None,
                None
                if plan is None
                else Plan(
                    _query(plan["query"]),
                    checks.count("copies", plan["copies"]),
                    tuple(checks.count("exits", e) for e in plan["exits"]),
                ),
                -1 if given["left"] == -1 else checks.count("left", given["left"]),
                tuple((_query(q), checks.count("held", n)) for q, n in given["held"]),
                tuple((_query(q), checks.count("seen", n)) for q, n in given["seen"]),
                checks.count("plans", given["plans"]),
            )
        except (KeyError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, ArgumentError | ArgumentTypeError):
                raise
            raise ArgumentError(
                f"state must be a state of {self.kind}, got {checks.shown(text)}"
            ) from None
        return self.own(walk)


@lru_cache(maxsize=64)
def _plan_table(menu: Table, plan: Plan) -> Table:
    step = step_of(menu.grid, plan.query, plan.copies)
    floors = [menu.levels[level] for level in plan.exits]
    return value_table(menu.grid, [Item(step, 1)], floors, most=len(floors) - 1)


def _bought(state: Walk, loss: Pld, copies: int, left: int) -> Walk:
    """The state after buying some copies, of which one is used now."""
    held = dict(state.held)
    held[loss] = held.get(loss, 0) + copies - 1
    return replace(state, left=left, held=counted(held))


def _again(seen: Counts, loss: Pld) -> Counts:
    """Queries by how recently they were asked for, with how often."""
    often = dict(seen).get(loss, 0) + 1
    rest = [(query, n) for query, n in seen if query != loss]
    return tuple([(loss, often), *rest][:_REMEMBERED])


def _text(query: Pld) -> Any:
    return as_mechanism(query).to_dict()


def _query(given: Any) -> Pld:
    return mechanism_from_dict(given).pld()
