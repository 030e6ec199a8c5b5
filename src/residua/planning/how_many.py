"""How many more queries fit, the least noise of which so many fit, and both as a frontier.

Counting itself is `filters/counting.py`. Noise is turned as a refusal does (`filters/noise.py`):
found by bisection, rounded to the private side, and checked by deciding the very queries that are
returned.

**The frontier** of what is left: how many more of each kind of query fit, by their noise. Counted
from a filter's state for Gaussian and Laplace noise, randomized response and subsampled Gaussian
noise, from the least noise of which one more fits to some times as much. Nothing is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np

from residua import checks
from residua.errors import ArgumentError
from residua.filters.amounts import State
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
from residua.filters.noise import Noisy, Queries, least, private_side, scale_noise
from residua.filters.query import Query, as_query
from residua.mechanisms import relations
from residua.mechanisms.sampled import SubsampledGaussian
from residua.pld.constructors import gaussian, laplace, pure_dp


def how_many(
    filter: Filter,
    query: Query | Sequence[Query],
    *,
    state: State | None = None,
    most: int = MOST,
    relation: str | None = None,
) -> int:
    """How many more of `query` the filter would admit before it refuses one; nothing is spent.

    A filter that has to decide each query stops counting after 50,000 decisions. A target residue
    filter, also within the automatic filter, stops after 2,000, or after a thousand million
    operations (some seconds) of sampled queries. Then the count is a proven lower bound, and
    `planning.count_more` says so.

    Args:
        filter: any filter.
        query: a query, or a list of them that is asked in order, again and again. The count is of
            single queries: with two in the list, 5 means two whole rounds and the first query of a
            third.
        state: where counting starts; by default where the filter is now.
        most: where counting ends.
        relation: the neighbouring relation for mechanisms.

    Returns:
        The count, at most `most`.
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
    state = filter.state if state is None else filter.check_state(state)
    if most and filter.decide(state, queries[0], relation=relation).is_too_expensive:
        return Count(0, False)
    if known := decreasing_costs(filter, state, queries, relation):
        found = decreasing_count(*known, most)
        if found is not None:
            return Count(found, found >= most)
    return count_decided(filter, state, queries, most, relation)


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
    state = filter.state if state is None else filter.check_state(state)
    known, found = decreasing_costs(filter, state, queries, relation), None
    if known:
        enough = _at_least(*known, n)
        if enough is not None:
            return enough
    if n > MOST and not filter.can_skip:
        raise ArgumentError(
            f"n must be at most {MOST}: {filter.kind} decides one request at a time, got {n}"
        )
    if known:
        found = decreasing_count(*known, n)
    if found is None:
        found = admitted(filter, state, queries, n, relation)[0]
    return found >= n


def _at_least(left: Fraction, costs: list[DecreasingCost], n: int) -> bool | None:
    for slack in (SLACK, 1e-6):
        try:
            found = at_least(left, costs, n, slack)
        except WideError:
            continue
        # Of so many requests, a count that is slightly too small does not matter.
        return False if found is None and n > 10**4 else found
    return None


def as_filter(value: object) -> Filter:
    """Check that an argument is a filter."""
    found: Filter = checks.instance("filter", value, Filter, "a filter")
    return found


def as_queries(query: object) -> tuple[Query, ...]:
    """One query, or a list of them, as a tuple."""
    if not isinstance(query, list | tuple):
        return (as_query(query),)
    if not query:
        raise ArgumentError("query must contain at least one query, got an empty list")
    return tuple(as_query(one, f"query[{place}]") for place, one in enumerate(query))


@overload
def least_noise(
    filter: Filter,
    mechanism_family: Sequence[Query],
    n: int = 1,
    *,
    state: State | None = None,
    relation: str | None = None,
) -> Queries | None: ...


@overload
def least_noise(
    filter: Filter,
    mechanism_family: Query | Callable[[float], Query],
    n: int = 1,
    *,
    state: State | None = None,
    relation: str | None = None,
) -> Query | None: ...


def least_noise(
    filter: Filter,
    mechanism_family: Query | Sequence[Query] | Callable[[float], Query],
    n: int = 1,
    *,
    state: State | None = None,
    relation: str | None = None,
) -> Query | Queries | None:
    """The query of a family with the least noise of which `n` more fit; None where none does.

    Args:
        filter: any filter; nothing is spent.
        mechanism_family: a query, whose noise is turned (scale, sigma, or eps and mu the other
            way); or a list of queries, all turned by the same factor, of which `n` whole rounds are
            to fit; or a function from a positive parameter to a query that loses less as the
            parameter grows.
        n: how many are to fit.
        state: where counting starts; by default where the filter is now.
        relation: the neighbouring relation for mechanisms.

    Returns:
        The query, or a tuple of them for a list. Its noise is within six digits of the least where
        more noise never fits worse, and `n` more of it are checked to be admitted.
    """
    filter, n = as_filter(filter), checks.count("n", n)
    checks.require(n > 0, "n", "at least 1", n)
    state = filter.state if state is None else filter.check_state(state)

    def fits(queries: Queries) -> bool:
        return are_admitted(filter, state, queries, n * len(queries), relation)

    many = isinstance(mechanism_family, list | tuple)
    if callable(mechanism_family):
        found = least(_from_function(mechanism_family), fits)
    else:
        template = as_queries(mechanism_family)
        if any(scale_noise(query, 2.0) is None for query in template):
            return None
        found = least(_from_template(template), fits)
    if found is None:
        return None
    return found if many else found[0]


def _from_template(template: Queries) -> Noisy:
    def scale(ratio: float, digits: int | None) -> Queries | None:
        made = [scale_noise(query, ratio, digits) for query in template]
        whole = tuple(query for query in made if query is not None)
        return whole if len(whole) == len(made) else None

    return scale


def _from_function(family: Callable[[float], Query]) -> Noisy:
    def make(noise: float, digits: int | None) -> Queries | None:
        return (as_query(family(private_side(noise, digits, True)), "mechanism_family(noise)"),)

    return make


Progress = Callable[[str, int, int], None]
"""Called with what comes next, how many steps are done, and of how many at most."""


@dataclass(frozen=True)
class Family:
    """Queries by one parameter; `query` takes the noise, which the parameter is or falls with."""

    name: str
    parameter: str
    query: Callable[[float], Query]
    shrinks: bool = False
    """Whether the parameter is loss, one over the noise."""


FAMILIES = (
    Family("Gaussian", "sigma", lambda noise: gaussian(sigma=noise)),
    Family("Laplace", "scale", lambda noise: laplace(scale=noise)),
    Family("randomized response", "eps", lambda noise: pure_dp(1.0 / noise), shrinks=True),
    Family(
        "subsampled Gaussian, rate 0.01",
        "sigma",
        lambda noise: SubsampledGaussian(sigma=noise, sampling_rate=0.01),
    ),
)


@dataclass(frozen=True)
class Line:
    """How many more of a family fit, at each value of its parameter."""

    family: str
    parameter: str
    values: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Frontier:
    """How many more queries fit, by kind and noise."""

    lines: tuple[Line, ...]

    def records(self) -> list[dict[str, Any]]:
        """As rows, for a data frame: `pandas.DataFrame(frontier.records())`."""
        return [
            {"family": line.family, "parameter": line.parameter, "value": value, "count": count}
            for line in self.lines
            for value, count in zip(line.values, line.counts, strict=True)
        ]

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from residua.figures.notebook import frontier_html

        return frontier_html(self)


def frontier(
    filter: Filter,
    *,
    state: State | None = None,
    points: int = 9,
    most: int = 1_000,
    relation: str | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """How many more of each family fit, from the least noise that fits to eight times as much.

    Args:
        filter: any filter; nothing is spent.
        state: where counting starts; by default where the filter is now.
        points: how many values of the noise there are for each family.
        most: where counts end, and a line with the first that does. A filter without a closed
            form decides every request, and a frontier should not take hours.
        relation: the neighbouring relation for mechanisms.
        progress: called after each point.

    Returns:
        The counts. The least noise is found to a hundredth, from above.
    """
    filter, most = as_filter(filter), checks.count("most", most)
    points = checks.count("points", points)
    checks.require(points >= 2, "points", "at least 2", points)
    state = filter.state if state is None else filter.check_state(state)
    lines = []
    for place, family in enumerate(FAMILIES):

        def report(done: int, family: Family = family, before: int = place * points) -> None:
            if progress is not None:
                progress(family.name, before + done, len(FAMILIES) * points)

        report(0)
        values: list[float] = []
        counts: list[int] = []
        start = _start(filter, state, family, relation)
        for noise in () if start is None else np.geomspace(start, 8.0 * start, points).tolist():
            rounded = float(f"{noise * (1.0 + 1e-6):.6g}")
            query = family.query(rounded)
            values.append(1.0 / rounded if family.shrinks else rounded)
            counts.append(how_many(filter, query, state=state, most=most, relation=relation))
            report(len(counts))
            if counts[-1] >= most:
                break
        lines.append(Line(family.name, family.parameter, tuple(values), tuple(counts)))
    return Frontier(tuple(lines))


def _start(filter: Filter, state: State, family: Family, relation: str | None) -> float | None:
    """The least noise of which one more fits, from above."""

    def fits(noise: float) -> bool:
        try:
            query = family.query(noise)
        except ArgumentError:
            return False
        return filter.decide(state, query, relation=relation).admitted

    low = high = 1.0
    while not fits(high):
        low, high = high, 4.0 * high
        if high > 1e6:
            return None
    while low >= 1e-6 and fits(low):
        low, high = low / 4.0, low
    # Not closer: next to what just fits, decisions with slack take long.
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
