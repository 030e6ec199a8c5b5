"""How many more queries fit.

The answer is that of requesting one by one until the first refusal. Filters that charge a query the
same whatever is left (pure, basic, Rényi, zCDP, GDP, and plans for what is on them) say it in
closed form: `n` times the cost `c` fits what is left if and only if `n <= left / c`, in rationals.
Where the cost falls with what is left (GDP residues) most requests are jumped over
(`decreasing_cost.py`). Elsewhere (menus, rules of your own) each request is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import FallingCost, Filter
from residua.filters.query import Query, as_query
from residua.filters.state import Left, State
from residua.mechanisms import relations
from residua.planning import decreasing_cost

MOST = 10**6
"""Where counting ends unless told otherwise."""
_SLACKS = (decreasing_cost.SLACK, 1e-6)
_MANY = 10**4
"""Of more requests, a hundredth of one more or less is no matter."""


def how_many(
    filter: Filter,
    query: Query | Sequence[Query],
    *,
    state: State | None = None,
    most: int = MOST,
    relation: str | None = None,
) -> int:
    """How many more of `query` the filter would admit before it refuses one; at most `most`.

    A list of queries is asked in order, again and again, and the count is of single queries: with
    two queries in the list, 5 means two whole rounds and the first query of a third. The count is
    from `state`, or from where the filter is now; nothing is spent.
    """
    most = checks.count("most", most)
    if relation is not None:
        relations.relation(relation)
    return counted(as_filter(filter), state, as_queries(query), most, relation)


def counted(
    filter: Filter,
    state: State | None,
    queries: Sequence[Query],
    most: int,
    relation: str | None = None,
) -> int:
    """How many of the repeating `queries` are admitted before the first refusal."""
    state = filter.state if state is None else filter.own(state)
    found = None
    if known := _falling(filter, state, queries, relation):
        found = decreasing_cost.count(*known, most)
    return admitted(filter, state, queries, most, relation)[0] if found is None else found


def are_admitted(
    filter: Filter,
    state: State | None,
    queries: Sequence[Query],
    n: int,
    relation: str | None = None,
) -> bool:
    """Whether the first `n` of the repeating `queries` are admitted.

    Of very many requests that would have to be decided one by one it says no where it is so close
    that bounds leave it open.
    """
    state = filter.state if state is None else filter.own(state)
    if falls := _falling(filter, state, queries, relation):
        found = _at_least(*falls, n)
        if found is not None:
            return found
    if n > MOST and not filter.skips:
        raise ArgumentError(
            f"n must be such that at most {MOST} requests are decided by {filter.kind},"
            f" which decides one by one, got {n} requests"
        )
    return counted(filter, state, queries, n, relation) >= n


def _at_least(left: Fraction, costs: list[FallingCost], n: int) -> bool | None:
    for slack in _SLACKS:
        try:
            found = decreasing_cost.at_least(left, costs, n, slack)
        except decreasing_cost.WideError:
            continue
        return False if found is None and n > _MANY else found
    return None


def _falling(
    filter: Filter, state: State, queries: Sequence[Query], relation: str | None
) -> tuple[Fraction, list[FallingCost]] | None:
    """The one amount that is left and what each query takes of it, where there are such."""
    if not isinstance(state, Left) or len(state.left) != 1:
        return None
    costs = [filter.falling_cost(query, relation) for query in queries]
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


def as_filter(value: object) -> Filter:
    """Check that an argument is a filter."""
    if not isinstance(value, Filter):
        raise ArgumentTypeError(f"filter must be a filter, got {checks.shown(value)}")
    return value


def as_queries(query: object) -> tuple[Query, ...]:
    """One query, or a list of them, as a tuple."""
    if not isinstance(query, list | tuple):
        return (as_query(query),)
    if not query:
        raise ArgumentError("query must hold at least one query, got an empty list")
    return tuple(as_query(one, f"query[{place}]") for place, one in enumerate(query))
