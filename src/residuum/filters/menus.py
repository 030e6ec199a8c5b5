"""The menus that filters start from: which queries are on them, and for how much.

A menu is a list of lines `(query, copies, price)`: cheap queries are sold in blocks, since a price
is a whole number of levels. A line of *dust*, `R_{0,η}` at price 1 with a total of a twentieth of
`delta`, lets queries that are not on the menu pay for their far tails: without it a Gaussian of a
size that is not listed could never be covered.

The general menu has randomized responses and Gaussians of all sizes, a factor `√2` apart; what is
not on it (Laplace noise, other sizes) pays the least price that the residue condition allows.
Queries with heavier tails, such as subsampled Gaussians, need lines of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from residuum.filters.grid import Grid, step_of
from residuum.filters.noise import scaled
from residuum.filters.prices import price_order, renyi_prices, whole_budget
from residuum.filters.table_cache import cached_table
from residuum.filters.value_table import Item, Progress, Table
from residuum.pld.constructors import approximate_dp, gaussian, pure_dp
from residuum.pld.gaussian_mixture import GaussianMixture
from residuum.pld.value import Pld

LEVELS = 300
_DUST = 0.05
_CHEAPEST = 5.0
"""Lines cost at least so many levels; cheaper queries are sold in blocks, or left out."""
_RATIO = math.sqrt(2.0)
_LARGEST = 2.5
_NOISES = (0.8, 0.9, 1.0, 1.15, 1.35)
"""A family of heavy tails is listed at these multiples of its noise."""


@dataclass(frozen=True)
class Line:
    """Some copies of a query, sold together."""

    query: Pld
    copies: int
    price: int


def priced(grid: Grid, queries: Sequence[Pld], alpha: float, levels: int = LEVELS) -> list[Line]:
    """Lines for some queries, by their Rényi divergence of order `alpha`; those too large left out."""
    lines = []
    for query, price in zip(
        queries, renyi_prices(queries, alpha, whole_budget(grid, alpha), levels), strict=True
    ):
        if not (price > 0.0 and price < 4.0 * levels):
            continue
        copies = max(1, math.ceil(_CHEAPEST / price))
        if grid.fits(step_of(grid, query, copies).excess):
            lines.append(Line(query, copies, max(1, round(copies * price))))
    return lines


def dust(grid: Grid, levels: int = LEVELS) -> Line:
    """What pays for far tails."""
    return Line(approximate_dp(0.0, _DUST * grid.delta / levels), 1, 1)


def table_of(grid: Grid, lines: Sequence[Line], progress: Progress | None = None) -> Table:
    """The value table of a menu."""
    items = [Item(step_of(grid, line.query, line.copies), line.price) for line in lines]
    return cached_table(grid, items, progress)


@lru_cache(maxsize=16)
def general_menu(grid: Grid, expected: tuple[Pld, ...] = ()) -> Table:
    """The menu for queries nobody announced; with lines for those that somebody did."""
    heavy = [query for query in expected if has_heavy_tails(query)]
    lead = heavy[0] if heavy else gaussian(mu=1.0)
    alpha = price_order(lead, grid.eps, grid.delta)
    whole = whole_budget(grid, alpha)
    listed: list[Pld] = []
    size = min(_LARGEST, 0.7 * grid.eps)
    while True:
        both = [pure_dp(on_grid(grid, size)), gaussian(mu=on_grid(grid, size))]
        if max(renyi_prices(both, alpha, whole, LEVELS)) < _CHEAPEST:
            break
        listed += both
        size /= _RATIO
    lines = [line for line in priced(grid, listed, alpha) if line.copies == 1]
    lines += priced(grid, expected, alpha)
    return table_of(grid, [*lines, dust(grid)])


def on_grid(grid: Grid, size: float) -> float:
    """The nearest size that is a multiple of the grid's spacing."""
    spacing = float(grid.spacing)
    return max(1, round(size / spacing)) * spacing


def has_heavy_tails(query: Pld) -> bool:
    """Whether subsampled Gaussians take part."""
    return any(isinstance(factor, GaussianMixture) for factor in query.terms)


def family(query: Pld) -> tuple[Pld, ...]:
    """A query with heavy tails at several noises; nothing for any other."""
    if not has_heavy_tails(query):
        return ()
    made = [scaled(query, ratio, 4) for ratio in _NOISES]
    return tuple(q for q in made if isinstance(q, Pld))
