"""Count how many copies of a query are admitted one after another.

The answer is that of requesting one by one until the first refusal. Filters that charge a query the
same whatever is left (pure, basic, Rényi, zCDP, GDP) say it in closed form: `n` times the cost `c`
fits what is left if and only if `n <= left / c`, in rationals. Where the cost falls with what is
left (GDP residues) most requests are jumped over (`decreasing_cost.py`). Plans count what is
planned in closed form. Elsewhere (menus, queries off a plan, custom rules) each request is
decided.

Counting ends after a number of decisions, and then the count is a lower bound. That number is small
for target residue filters, which may take 50 ms to draw on a reserve for a sampled query. For them
the count is what was decided or, of a union, what one component admits in closed form by itself.
A component that admits every query stays live, so the union admits at least as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.filters import decreasing_cost
from residua.filters.noise import is_sampled
from residua.filters.query import Query
from residua.filters.state import Left, State
from residua.work_limit import OPERATIONS, UNLIMITED, limited

if TYPE_CHECKING:
    from residua.filters.base import DecreasingCost, Filter

MOST = 10**6
"""Where counting ends unless told otherwise."""
MOST_DECIDED = 1000
"""Where it ends for a count that is shown, if every request has to be decided: within a second."""

MOST_ONE_BY_ONE, MOST_RESIDUES, MOST_SHOWN = 50_000, 2_000, 20
"""How many requests are decided one by one at most; by a target residue filter; and by one with a
reserve if they are sampled and the count is shown: then it must not depend on the time."""
PATIENCE = OPERATIONS // 2
"""How many operations such decisions take at most, about, for a count that is not shown."""


class Count(NamedTuple):
    """How many copies are admitted, and whether counting ended before one was refused."""

    copies: int
    ended: bool


def count_copies(filter: Filter, state: State, query: Query, relation: str | None = None) -> Count:
    """How many more copies of a query are admitted; counting ends at `MOST` or `MOST_DECIDED`."""
    most = MOST
    if not filter.skips:
        known = decreasing_costs(filter, state, (query,), relation)
        found = decreasing_cost.count(*known, MOST) if known else None
        if found is not None:
            return Count(found, found >= MOST)
        most = MOST_DECIDED
    elif filter.skip(state, (query,), 1, relation)[0] == 0:
        most = MOST_DECIDED
    return count_decided(filter, state, (query,), most, relation, shown=True)


def count_decided(
    filter: Filter,
    state: State,
    queries: Sequence[Query],
    most: int,
    relation: str | None = None,
    *,
    shown: bool = False,
) -> Count:
    """How many of the repeating `queries` are admitted; a lower bound if counting ended.

    It ends at `most`, and after a number of decisions, fewer if the count is `shown`.
    """
    rounds, after = filter.skip(state, queries, most // len(queries), relation)
    done, decisions = rounds * len(queries), MOST_ONE_BY_ONE
    residues, ends = _target_residues(filter, state, queries, relation), UNLIMITED
    if residues:
        slow = any(map(is_sampled, queries)) and any(each.reserve > 0.0 for each in residues)
        decisions = MOST_SHOWN if slow and shown else MOST_RESIDUES
        certain = _certain(filter, state, queries, most, relation)
        if certain >= done + decisions:
            return Count(certain, True)
        ends = PATIENCE if slow and not shown else ends
    limit = min(most, done + decisions)
    with limited("counting", UNLIMITED) as budget:
        while done < limit and budget.done < ends:
            decision = filter.decide(after, queries[done % len(queries)], relation=relation)
            if not decision.admitted:
                return Count(done, False)
            done, after = done + 1, decision.state
    return Count(done, True)


def _target_residues(
    filter: Filter, state: State, queries: Sequence[Query], relation: str | None
) -> list[Any]:
    """The live target residue filters that decide."""
    inner: Any = filter.in_force(state, queries[0], relation)
    components = inner.filters if inner.kind == "union" else (inner,)
    parts = getattr(state, "parts", ()) or (state,) * len(components)
    both = zip(components, parts, strict=True)
    return [each for each, part in both if part is not None and each.kind == "target_residue"]


def _certain(
    filter: Filter, state: State, queries: Sequence[Query], most: int, relation: str | None
) -> int:
    """How many queries one component of a union admits for sure by itself."""
    inner: Any = filter.in_force(state, queries[0], relation)
    if inner.kind != "union":
        return 0
    parts = getattr(state, "parts", ()) or inner.initial().parts
    rounds: int = inner.most_rounds(parts, queries, most // len(queries), relation)
    return rounds * len(queries)


def count_copies_before(
    filter: Filter,
    state: State,
    query: Query,
    follows: Callable[[State], bool],
    relation: str | None = None,
) -> Count:
    """The same where something must still fit after them (`follows`), as it does now.

    What fits after some copies is taken to fit after fewer.
    """
    states: list[State] = []
    if filter.skips:
        most, ended = count_copies(filter, state, query, relation)
    else:
        states.append(filter.own(state))
        slow = is_sampled(query) and _target_residues(filter, state, (query,), relation)
        decided = MOST_SHOWN if slow else MOST_DECIDED
        while len(states) <= decided:
            decision = filter.decide(states[-1], query, relation=relation)
            if not decision.admitted:
                break
            states.append(decision.state)
        most, ended = len(states) - 1, len(states) > decided

    def after(n: int) -> State:
        return states[n] if states else admitted(filter, state, (query,), n, relation)[1]

    if follows(after(most)):
        return Count(most, ended)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if follows(after(middle)) else (low, middle)
    return Count(low, False)


def decreasing_costs(
    filter: Filter, state: State, queries: Sequence[Query], relation: str | None
) -> tuple[Fraction, list[DecreasingCost]] | None:
    """The one amount that is left and what each query takes of it, where there are such."""
    if not isinstance(state, Left) or len(state.left) != 1:
        return None
    costs = [filter.decreasing_cost(query, relation) for query in queries]
    known = [cost for cost in costs if cost is not None]
    return (state.left[0], known) if len(known) == len(costs) else None


def admitted(
    filter: Filter,
    state: State | None,
    queries: Sequence[Query],
    most: int,
    relation: str | None = None,
) -> tuple[int, State]:
    """How many of the repeating `queries` are admitted before the first refusal, and the state."""
    state = filter.state if state is None else filter.own(state)
    rounds, state = filter.skip(state, queries, most // len(queries), relation)
    count = rounds * len(queries)
    while count < most:
        decision = filter.decide(state, queries[count % len(queries)], relation=relation)
        if not decision.admitted:
            break
        count, state = count + 1, decision.state
    return count, state
