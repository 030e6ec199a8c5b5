"""The menus that filters start from: which queries are on them, and for how much.

A menu is a list of lines `(query, copies, price)`: cheap queries are sold in blocks, since a price
is a whole number of levels. A line of *dust*, `R_{0,η}` at price 1 with a total of a twentieth of
`delta`, lets queries that are not on the menu pay for their far tails: without it a Gaussian of a
size that is not listed could never be covered.

The general menu has randomized responses at prices from 1 up, a factor `√2` apart, as large as what
is likely to be asked for, and small Gaussians; what is not on it (Laplace noise, other sizes) pays
the least price that the residue condition allows. The small ones matter: without them the levels
rise in stairs, and whatever comes pays for a whole stair. Large ones cost everybody else.
Queries with heavier tails, such as subsampled Gaussians, need lines of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from residua.filters.noise import scaled
from residua.filters.potential.grid import Grid, step_of
from residua.filters.potential.prices import (
    most_copies,
    price_order,
    renyi_prices,
    turning_order,
    whole_budget,
)
from residua.filters.potential.table_cache import cached_table
from residua.filters.potential.value_table import Item, Progress, Table
from residua.pld.constructors import approximate_dp, gaussian, pure_dp
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.pld import Pld

LEVELS = 1000
_DUST = 0.05
_CHEAPEST = 12.0
"""Lines cost at least so many levels; cheaper queries are sold in blocks, or left out."""
_RATIO = math.sqrt(2.0)
_SMALL = 11
"""Gaussians are listed up to this price: they compose to the larger ones at no loss."""
_USUAL = 0.2
"""Responses of this size are listed whatever was asked for first."""
_GOOD_PART = 0.1
_DEARER = 0.2
"""How much more than its divergence a large response costs."""
_BEFORE_TURNING = 0.9
_WORTHWHILE = 8
"""Prices follow the heaviest tail of which so many copies fit."""
_NOISES = (0.68, 0.8, 1.0)
"""A family of heavy tails is listed at these multiples of its noise."""


@dataclass(frozen=True)
class Line:
    """Some copies of a query, sold together."""

    query: Pld
    copies: int
    price: int


def priced(
    grid: Grid, queries: Sequence[Pld], alpha: float, own: float = 0.0, levels: int = LEVELS
) -> list[Line]:
    """Lines for some queries, by their Rényi divergence; those that are too large left out.

    With `own` a share of the price is what it would be if there were no other queries.
    """
    lines = []
    for query, price in zip(
        queries, renyi_prices(queries, alpha, whole_budget(grid, alpha), levels), strict=True
    ):
        if not (price > 0.0 and price < 4.0 * levels):
            continue
        if own and (alone := most_copies(grid, query)):
            price = (1.0 - own) * price + own * levels / alone
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
def general_menu(grid: Grid, expected: tuple[Pld, ...] = (), reach: int = LEVELS) -> Table:
    """The menu for queries nobody announced; with lines for those that somebody did.

    Responses up to the price `reach`, and small Gaussians, which compose to the larger ones.
    """
    alpha = price_order(gaussian(mu=1.0), grid.eps, grid.delta)
    for query in expected:
        if has_heavy_tails(query) and most_copies(grid, query) >= _WORTHWHILE:
            alpha = min(alpha, 1.0 + _BEFORE_TURNING * (turning_order(query) - 1.0))
    unit = whole_budget(grid, alpha) / LEVELS
    lines = small_lines(grid, alpha)
    for price in _ladder(reach):
        query = _response(grid, alpha, price * unit)
        if grid.fits(step_of(grid, query).excess):
            dearer = _dearer(price) if reach < LEVELS else 1.0
            lines.append(Line(query, 1, round(price * dearer)))
    for line in priced(grid, expected, alpha):
        lines.append(line)
        if line.copies > 1:
            lines.append(Line(line.query, 1, math.ceil(line.price / line.copies)))
    return table_of(grid, [*lines, dust(grid)])


def _dearer(price: int) -> float:
    """What a response costs against its divergence: more, the larger it is."""
    size = math.log(price / _SMALL) / math.log(0.3 * LEVELS / _SMALL)
    return 1.0 + _DEARER * min(1.0, max(0.0, size))


def small_lines(grid: Grid, alpha: float) -> list[Line]:
    """Gaussians at the lowest prices, so that levels do not rise in stairs."""
    unit = whole_budget(grid, alpha) / LEVELS
    made = [Line(gaussian(mu=math.sqrt(2.0 * c * unit / alpha)), 1, c) for c in _ladder(_SMALL)]
    return [line for line in made if grid.fits(step_of(grid, line.query).excess)]


@lru_cache(maxsize=512)
def reach_for(grid: Grid, first: Pld) -> int:
    """How large the responses on a menu are: like the first query, or `R_0.2` if that is larger.

    Heavy tails have lines of their own. Large responses on a menu cost everybody else, for its
    value must cover their use; without them, they pay what the table asks. But where `R_0.2` is a
    good part of the budget, responses of every size are what people ask for.
    """
    alpha = price_order(gaussian(mu=1.0), grid.eps, grid.delta)
    if has_heavy_tails(first):
        return _SMALL
    sizes = [pure_dp(_USUAL), first]
    prices = renyi_prices(sizes, alpha, whole_budget(grid, alpha), LEVELS)
    largest = max(price for price in prices if price < math.inf)
    if prices[0] > _GOOD_PART * LEVELS:
        largest = LEVELS
    return next(price for price in _ladder(LEVELS) if price >= min(largest, LEVELS))


def _ladder(most: int) -> list[int]:
    """Whole prices from 1 up, a factor `√2` apart as soon as that is possible."""
    prices = [1]
    while prices[-1] < most:
        prices.append(max(prices[-1] + 1, round(prices[-1] * _RATIO)))
    return prices


def _response(grid: Grid, alpha: float, cost: float) -> Pld:
    """The randomized response of a given Rényi cost, on the grid where that is fine enough."""
    low, high = 0.0, 2.0 * grid.eps
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if pure_dp(middle).renyi(alpha) <= cost else (low, middle)
    spacing = float(grid.spacing)
    return pure_dp(low if low < 20.0 * spacing else math.floor(low / spacing) * spacing)


def has_heavy_tails(query: Pld) -> bool:
    """Whether subsampled Gaussians take part."""
    return any(isinstance(factor, GaussianMixture) for factor in query.terms)


def family(query: Pld) -> tuple[Pld, ...]:
    """A query with heavy tails at several noises; nothing for any other."""
    if not has_heavy_tails(query):
        return ()
    made = [scaled(query, ratio, 4) for ratio in _NOISES]
    return tuple(q for q in made if isinstance(q, Pld))
