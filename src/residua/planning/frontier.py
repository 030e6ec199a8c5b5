"""The frontier of what is left: how many more of each kind of query fit, by their noise.

Counted from a filter's state for Gaussian and Laplace noise, randomized response and subsampled
Gaussian noise, from the least noise of which one more fits to some times as much. Nothing is spent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from residua import checks
from residua.errors import ArgumentError
from residua.filters.base import Filter
from residua.filters.query import Query
from residua.filters.state import State
from residua.mechanisms.sampled import SubsampledGaussian
from residua.planning.how_many import as_filter, how_many
from residua.pld.constructors import gaussian, laplace, pure_dp

Progress = Callable[[str, int, int], None]
"""Called with a family, how many points of lines are done, and of how many at most."""


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

SPAN = 8.0
"""How many times the least noise of a line the largest one is."""


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
        for noise in () if start is None else np.geomspace(start, SPAN * start, points).tolist():
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


__all__ = ["FAMILIES", "Family", "Frontier", "Line", "frontier"]
