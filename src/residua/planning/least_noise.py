"""Find the least noise that fits: for one more query, or for many.

Noise is turned as a refusal does (`filters/noise.py`): found by bisection, rounded to the private
side, and checked by deciding the very queries that are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from residua import checks
from residua.filters.base import Filter
from residua.filters.noise import Noisy, Queries, least, private_side, scale_noise
from residua.filters.query import Query, as_query
from residua.filters.state import State
from residua.planning.how_many import are_admitted, as_filter, as_queries


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

    A family is one of

    * a query, whose noise is turned (scale, sigma, or eps and mu the other way);
    * a list of queries, all turned by the same factor, of which `n` whole rounds are to fit; a
      tuple of the same length is returned;
    * a function from a positive parameter to a query that loses less as the parameter grows.

    The noise is within six digits of the least where more noise never fits worse, and what is
    returned is checked: `n` more of it are admitted from `state`, or from where the filter is now.
    """
    filter, n = as_filter(filter), checks.count("n", n)
    checks.require(n > 0, "n", "at least 1", n)
    state = filter.state if state is None else filter.own(state)

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
    def turned(ratio: float, digits: int | None) -> Queries | None:
        made = [scale_noise(query, ratio, digits) for query in template]
        whole = tuple(query for query in made if query is not None)
        return whole if len(whole) == len(made) else None

    return turned


def _from_function(family: Callable[[float], Query]) -> Noisy:
    def made(noise: float, digits: int | None) -> Queries | None:
        return (as_query(family(private_side(noise, digits, True)), "mechanism_family(noise)"),)

    return made
