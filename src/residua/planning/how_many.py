"""How many more queries fit; the counting itself is `filters/counting.py`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import DecreasingCost, Filter
from residua.filters.counting import (
    MOST,
    SLACK,
    Count,
    WideError,
    admitted,
    at_least,
    count_decided,
    decreasing_costs,
    decreasing_count,
)
from residua.filters.query import Query, as_query
from residua.filters.state import State
from residua.mechanisms import relations

_SLACKS = (SLACK, 1e-6)
_MANY = 10**4
"""Beyond so many requests, a count that is slightly too small does not matter."""


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

    A filter that has to decide each query stops counting after 50,000 decisions. A target residue
    filter, also within the automatic filter, stops after 2,000, or after a thousand million
    operations (some seconds) of sampled queries. Then the count is a proven lower bound, and
    `planning.count_more` says so.
    """
    return count_more(filter, query, state=state, most=most, relation=relation).copies


def count_more(
    filter: Filter,
    query: Query | Sequence[Query],
    *,
    state: State | None = None,
    most: int = MOST,
    relation: str | None = None,
) -> Count:
    """The same, and whether counting ended before a refusal: then more may fit."""
    most = checks.count("most", most)
    if relation is not None:
        relations.relation(relation)
    filter, queries = as_filter(filter), as_queries(query)
    state = filter.state if state is None else filter.own(state)
    if most and filter.decide(state, queries[0], relation=relation).is_too_expensive:
        return Count(0, False)
    if known := decreasing_costs(filter, state, queries, relation):
        found = decreasing_count(*known, most)
        if found is not None:
            return Count(found, found >= most)
    return count_decided(filter, state, queries, most, relation)


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
    if known := decreasing_costs(filter, state, queries, relation):
        found = decreasing_count(*known, most)
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
    if known := decreasing_costs(filter, state, queries, relation):
        found = _at_least(*known, n)
        if found is not None:
            return found
    if n > MOST and not filter.skips:
        raise ArgumentError(
            f"n must be such that at most {MOST} requests are decided by {filter.kind},"
            f" which decides one by one, got {n} requests"
        )
    return counted(filter, state, queries, n, relation) >= n


def _at_least(left: Fraction, costs: list[DecreasingCost], n: int) -> bool | None:
    for slack in _SLACKS:
        try:
            found = at_least(left, costs, n, slack)
        except WideError:
            continue
        return False if found is None and n > _MANY else found
    return None


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
