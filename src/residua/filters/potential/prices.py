"""Prices for a menu: Rényi costs at one order, rounded, then improved by search.

Any prices are sound, for the table (`value_table.py`) is computed from them; good ones let much
through. A start that is hard to beat: the Rényi divergence at an order a little below the one that
serves a Gaussian (or whatever is expected first) best, in units of which the whole budget has some
hundred. `improved` then turns one price at a time and keeps what raises the mean, over the kinds of
query on the menu, of how many of that kind alone are admitted, against how many could be at best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from residua.bounds import Floats
from residua.filters.potential.grid import Grid, Step, step_of
from residua.filters.potential.value_table import Item, value_table
from residua.pld.constructors import gaussian
from residua.pld.pld import Pld

_TURNS = 48
"""Blocks double after so many."""
BELOW = 0.65
"""Where prices are taken: this share of `alpha - 1` at the best order."""


def best_order(loss: Pld, eps: float, delta: float) -> float:
    """About the order at which Rényi accounting admits most copies of `loss`."""
    alphas = 1.0 + np.geomspace(0.5, 400.0, 60)
    log = math.log(delta)
    budgets = eps + (log + np.log(alphas) - (alphas - 1.0) * np.log1p(-1.0 / alphas)) / (
        alphas - 1.0
    )
    costs = costs_at(loss, alphas)
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = np.where(budgets > 0.0, budgets / costs, 0.0)
    return float(alphas[int(np.nanargmax(counts))])


def costs_at(loss: Pld, alphas: Floats) -> Floats:
    """Rényi divergences at some orders, the larger of both directions."""
    forth = np.asarray(loss.renyi(alphas))
    return (
        forth if loss.is_symmetric else np.maximum(forth, np.asarray(loss.reverse().renyi(alphas)))
    )


def price_order(loss: Pld, eps: float, delta: float) -> float:
    """The order at which a menu for this kind of query is priced."""
    return 1.0 + BELOW * (best_order(loss, eps, delta) - 1.0)


def turning_order(loss: Pld) -> float:
    """The order from which a heavy tail takes over: where `D_α / α` has doubled."""
    alphas = np.geomspace(2.0, 200.0, 120)
    growth = costs_at(loss, alphas) / alphas
    return float(alphas[max(0, int(np.count_nonzero(growth <= 2.0 * growth[0])) - 1)])


def renyi_prices(losses: Sequence[Pld], alpha: float, whole: float, levels: int) -> list[float]:
    """Prices in units of which `whole` (a Rényi divergence of order `alpha`) has `levels`."""
    at = np.array([alpha])
    return [float(costs_at(loss, at)[0]) / whole * levels for loss in losses]


def whole_budget(grid: Grid, alpha: float) -> float:
    """The Rényi divergence of the largest Gaussian within the target."""
    low, high = 0.0, 64.0
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        if gaussian(mu=middle).delta(grid.eps) <= grid.delta:
            low = middle
        else:
            high = middle
    return 0.5 * alpha * high * high


@lru_cache(maxsize=512)
def _most_within_target(grid: Grid, loss: Pld, most: int) -> int:
    return _most_copies(grid, loss, None, most)


def most_copies(grid: Grid, loss: Pld, potential: Floats | None = None, most: int = 1 << 16) -> int:
    """How many copies of one query a state (or the target) covers, at least: composed in blocks."""
    if potential is None:
        return _most_within_target(grid, loss, most)
    return _most_copies(grid, loss, potential, most)


def _most_copies(grid: Grid, loss: Pld, potential: Floats | None, most: int) -> int:
    block, n, reached, turns = 1, 0, grid.zero, 0
    while n < most:
        step = step_of(grid, loss, block)
        if step.allowed(potential, reached):
            n, reached, turns = n + block, step.after(reached), turns + 1
            if turns % _TURNS == 0:
                block *= 2
        elif block == 1:
            break
        else:
            block //= 2
            turns = 1
    return n


def ratios(
    grid: Grid, steps: Sequence[Step], prices: Sequence[int], best: Sequence[float]
) -> Floats:
    """For each kind alone, what the prices admit against the best there is."""
    items = [Item(step, price) for step, price in zip(steps, prices, strict=True)]
    top = value_table(grid, items).top
    return np.array([top / c / b for c, b in zip(prices, best, strict=True)])


def improved(
    grid: Grid,
    losses: Sequence[Pld],
    prices: Sequence[int],
    *,
    sweeps: int = 2,
    change: float = 0.08,
    progress: Callable[[float], None] | None = None,
) -> list[int]:
    """Prices with a mean ratio at least that of the given ones; one at a time is turned."""
    steps = [step_of(grid, loss) for loss in losses]
    best = [float(most_copies(grid, loss)) for loss in losses]
    if min(best) < 1.0:
        return list(prices)
    now = list(prices)

    def value(candidate: Sequence[int]) -> float:
        return float(np.mean(np.minimum(ratios(grid, steps, candidate, best), 1.0)))

    reached = value(now)
    for _ in range(sweeps):
        before = reached
        for i in range(len(now)):
            for turned in (math.floor(now[i] * (1.0 - change)), math.ceil(now[i] * (1.0 + change))):
                candidate = [*now[:i], max(1, turned), *now[i + 1 :]]
                got = value(candidate)
                if got > reached:
                    now, reached = candidate, got
            if progress is not None:
                progress(reached)
        if reached <= before:
            break
    return now
