"""Count how many copies of a query are admitted one after another.

The answer is that of requesting one by one until the first refusal. Filters that charge a query the
same whatever is left (pure, basic, Rényi, zCDP, GDP) say it in closed form: `n` times the cost `c`
fits what is left if and only if `n <= left / c`, in rationals. Where the cost falls with what is
left (GDP residues) most requests are jumped over. Plans count what is planned in closed form.
Elsewhere (menus, queries off a plan, custom rules) each request is decided.

Counting ends after a number of decisions, and then the count is a lower bound. That number is small
for target residue filters, which may take 50 ms to draw on a reserve for a sampled query. For them
the count is what was decided or, of a union, what one component admits in closed form by itself.
A component that admits every query stays live, so the union admits at least as many.

**Jumps.** Of one amount `s` a request takes `ĉ(s)`, within a relative `slack` above an exact cost
`c(s)` that does not increase with `s`. So where `k` requests lead from `s` to `s'`,

    k c(s)  <=  s - s'  <=  k c(s') (1 + slack),

and from a bracket `[a, b]` around what is left one jumps to the bracket `[a', b - k c(b)]` with any
`a'` such that `k c(a') (1 + slack) <= a - a'`. A round of several queries is one request: each
`s - c(s)` moves two states further apart, and so do their compositions. Either end of the bracket
is followed for itself, and a jump takes a fixed part of what is left; towards the end, where the
cost moves, jumps are single requests. That is as many jumps as the count has digits, about, and
what they are off by is about as many requests as a part is of the whole, for each. The count is
certain as soon as both ends agree on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.filters.amounts import Left, State
from residua.filters.noise import is_sampled
from residua.filters.query import Query
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

SLACK = 1e-9
"""How far a charge may be above the exact cost, relatively, for what is counted in jumps."""
_PARTS = (1 / 4, 1 / 32, 1 / 256)
"""How much of what is left a jump takes, in turn until the count is certain."""
_ULPS = 2.0**-50
"""More than the relative error of a few operations."""

_Bounds = Callable[[float], tuple[float, float] | None]
"""A cost, as a function of what is left, rounded outwards."""


class Count(NamedTuple):
    """How many copies are admitted, and whether counting ended before one was refused."""

    copies: int
    ended: bool


def count_copies(filter: Filter, state: State, query: Query, relation: str | None = None) -> Count:
    """How many more copies of a query are admitted; counting ends at `MOST` or `MOST_DECIDED`."""
    most = MOST
    if not filter.can_skip:
        known = decreasing_costs(filter, state, (query,), relation)
        found = decreasing_count(*known, MOST) if known else None
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
        while done < limit and budget.operations < ends:
            decision = filter.decide(after, queries[done % len(queries)], relation=relation)
            if not decision.admitted:
                return Count(done, False)
            done, after = done + 1, decision.state
    return Count(done, True)


def _target_residues(
    filter: Filter, state: State, queries: Sequence[Query], relation: str | None
) -> list[Any]:
    """The live target residue filters that decide."""
    inner: Any = filter.deciding_filter(state, queries[0], relation)
    components = inner.filters if inner.kind == "union" else (inner,)
    parts = getattr(state, "parts", ()) or (state,) * len(components)
    both = zip(components, parts, strict=True)
    return [each for each, part in both if part is not None and each.kind == "target_residue"]


def _certain(
    filter: Filter, state: State, queries: Sequence[Query], most: int, relation: str | None
) -> int:
    """How many queries one component of a union admits for sure by itself."""
    inner: Any = filter.deciding_filter(state, queries[0], relation)
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
    if filter.can_skip:
        most, ended = count_copies(filter, state, query, relation)
    else:
        states.append(filter.check_state(state))
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
    state = filter.state if state is None else filter.check_state(state)
    rounds, state = filter.skip(state, queries, most // len(queries), relation)
    count = rounds * len(queries)
    while count < most:
        decision = filter.decide(state, queries[count % len(queries)], relation=relation)
        if not decision.admitted:
            break
        count, state = count + 1, decision.state
    return count, state


# -- costs that fall with what is left ------------------------------------------------------


def decreasing_count(
    left: Fraction, costs: Sequence[DecreasingCost], most: int, slack: float = SLACK
) -> int | None:
    """How many requests of a repeating list are admitted; None where that is left open.

    Open as well where bounds of a cost are seen to be further apart than `slack`.
    """
    narrow = [_narrow(cost, slack) for cost in costs]
    try:
        for part in _PARTS:
            least, largest = (
                _follow(float(left), narrow, most, slack, part, upper) for upper in (False, True)
            )
            if least == largest:
                return least
    except WideError:
        return None
    return None


def at_least(
    left: Fraction, costs: Sequence[DecreasingCost], n: int, slack: float = SLACK
) -> bool | None:
    """Whether `n` requests of a repeating list are admitted; None where that is left open.

    Raises `WideError` where bounds of a cost are seen to be further apart than `slack`.
    """
    narrow = [_narrow(cost, slack) for cost in costs]
    # Of many requests the shortest jumps are not needed to tell the noise to six digits.
    for part in _PARTS[: 2 if n >= 10**5 else 3]:
        if _follow(float(left), narrow, n, slack, part, upper=False) == n:
            return True
        if _follow(float(left), narrow, n, slack, part, upper=True) < n:
            return False
    return None


def _follow(
    left: float, costs: Sequence[_Bounds], most: int, slack: float, part: float, upper: bool
) -> int:
    """How many requests one end of the bracket is admitted, from a bound of what is left."""
    away = math.inf if upper else -math.inf
    outwards = 1.0 - _ULPS if upper else 1.0 + _ULPS

    def charge(bounds: tuple[float, float]) -> float:
        return bounds[0] if upper else bounds[1] * (1.0 + slack)

    def charge_of_round(state: float, turned: Sequence[_Bounds]) -> float | None:
        total = 0.0
        for cost in turned:
            bounds = cost(state)
            if bounds is None:
                return None
            state = math.nextafter(state - charge(bounds), away)
            total += charge(bounds)
        return total * outwards ** len(turned)

    state, done = math.nextafter(left, away), 0
    while done < most:
        place = done % len(costs)
        turned = (*costs[place:], *costs[:place])
        # On the way no state is above this one or below `1 - part` of it, where a round takes the
        # least and the most.
        taken = charge_of_round(state if upper else (1.0 - part) * state, turned)
        rounds = (most - done) // len(costs)
        if taken:
            rounds = int(min(rounds, part * state * (1.0 - _ULPS) / taken))
        if taken is not None and rounds > 1:
            state = math.nextafter(state - rounds * taken * outwards, away)
            done += rounds * len(costs)
            continue
        bounds = turned[0](state)
        if bounds is None:
            return done
        state, done = math.nextafter(state - charge(bounds), away), done + 1
    return done


class WideError(Exception):
    """Bounds are too far apart to count by."""


def _narrow(cost: DecreasingCost, slack: float) -> _Bounds:
    """The cost in floats, rounded outwards."""

    def checked(left: float) -> tuple[float, float] | None:
        bounds = cost(Fraction(left)) if left >= 0.0 else None
        if bounds is None:
            return None
        low, high = float(bounds[0]) * (1.0 - _ULPS), float(bounds[1]) * (1.0 + _ULPS)
        if not high <= low * (1.0 + slack):
            raise WideError
        return low, high

    return checked
