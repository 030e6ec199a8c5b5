"""The GDP residue of one query as a table: a certified staircase in what is left.

A step says: from `V` units on, the query costs `C` units. That is true from `V` on because the
cost does not increase with the budget (fact 1 of `docs/gdp-residue.md`), and `C <= V`, so nobody
goes below zero. Consecutive costs differ by less than 1e-4, and so a subject is charged at most
that much more than the exact residue asks for. Only right above the least budget that fits, where
the curve is vertical, the steps cannot follow it: within 1e-9 of that budget up to 2 % is given
away.

Steps are laid out by what is *left*, `w`: `V = w + c(w)` (`residue_curve.py`). Nothing here depends
on anyone's data, only on the query, the capacity and the units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from residua.individual.pricing.residue_curve import LARGEST_EPS, cost_of_leaving
from residua.individual.pricing.units import MOST, Integers, Units
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld
from residua.pld.residue.gdp_residue import gdp_residue_cost
from residua.pld.residue.single_contact import fits
from residua.pld.residue.symmetric_family import CentralLaw, height

STEP = 9e-5
"""Relative distance of consecutive costs; with roundings below the 1e-4 that is promised."""
_COARSE = 128
_NARROWEST = 1e-5
_WIDEST = 2e4
_LEAST_GAP = Fraction(1, 10**9)
_CACHED = 4096


@dataclass(frozen=True, eq=False)
class ResidueTable:
    """From `budgets[i]` units on the query costs `costs[i]`; below `budgets[0]` it does not fit."""

    budgets: Integers
    costs: Integers


EMPTY = ResidueTable(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
"""Of a query that fits nobody."""


def _table(budgets: Integers, costs: Integers) -> ResidueTable:
    budgets = np.maximum.accumulate(budgets)
    costs = np.minimum.accumulate(costs)
    # Of steps at one budget the last is the cheapest.
    last = np.append(budgets[1:] > budgets[:-1], True)
    return ResidueTable(budgets[last], costs[last])


@lru_cache(maxsize=_CACHED)
def response_table(eps: float, laplace: bool, units: Units) -> ResidueTable:
    """For `R_eps`, or Laplace noise with `sensitivity / scale = eps`, `0 < eps <= 16`."""
    from scipy.interpolate import CubicSpline

    most = float(units.capacity * units.size)
    square = eps * eps
    if most <= _NARROWEST * square:
        # Not even close: the least budget that fits is above `eps² / 10` for eps <= 16.
        return EMPTY
    top = min(most, _WIDEST * square)
    coarse = np.geomspace(_NARROWEST * square, top, _COARSE)
    costs = cost_of_leaving(coarse, eps, laplace)
    kept = np.isfinite(costs)
    if not kept.any():
        return EMPTY
    coarse, costs = coarse[kept], np.minimum.accumulate(costs[kept])
    logs = -np.log(costs)
    count = max(2, math.ceil((logs[-1] - logs[0]) / STEP) + 1)
    wanted = np.linspace(logs[0], logs[-1], count)
    w = np.exp(np.interp(wanted, logs, np.log(coarse)))
    guess = np.exp(-CubicSpline(np.log(coarse), logs)(np.log(w)))
    c = cost_of_leaving(w, eps, laplace, start=guess)
    w, c = w[np.isfinite(c)], c[np.isfinite(c)]
    taken, kept_back = units.amounts_up(c), units.amounts_up(w)
    # The sum of the two must not wrap around; what nobody has needs no step.
    within = kept_back <= MOST - taken
    taken, budgets = taken[within], kept_back[within] + taken[within]
    # The step below all others: everything that is there goes.
    least = units.amounts_up(np.array([_least(eps, laplace)]))
    table = _table(np.concatenate([least, budgets]), np.concatenate([least, taken]))
    within = table.budgets <= units.capacity
    return ResidueTable(table.budgets[within], table.costs[within])


def _least(eps: float, laplace: bool) -> float:
    """The least `mu²` that the query fits, from above: `h_L(1) <= erf(√(v/8))`."""
    from scipy.special import erfinv

    law = CentralLaw(eps, 0.0, 0.0, True) if laplace else CentralLaw(eps, 1.0, 0.0, False)
    near = 8.0 * float(erfinv(min(height(law)[0], 1.0 - 1e-15))) ** 2
    for raised in (1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        if fits(law, near * (1.0 + raised)):
            return near * (1.0 + raised)
    return math.inf


@lru_cache(maxsize=_CACHED)
def shared_table(loss: Pld, units: Units) -> ResidueTable:
    """For any query. Randomized response and Laplace are quick, others may take minutes."""
    if loss.gaussian is None and list(loss.terms.values()) == [1]:
        (factor,) = loss.terms
        if isinstance(factor, RandomizedResponse) and not factor.delta:
            if factor.eps <= LARGEST_EPS:
                return response_table(factor.eps, False, units)
        elif isinstance(factor, Laplace) and float(factor.top) <= LARGEST_EPS:
            return response_table(float(np.nextafter(float(factor.top), np.inf)), True, units)
    return _halved(loss, units)


def _halved(loss: Pld, units: Units) -> ResidueTable:
    """Steps by halving, each from the certified cost of one budget."""
    known: dict[Fraction, float | None] = {}

    def cost(v: Fraction) -> float | None:
        if v not in known:
            found = gdp_residue_cost(v, loss)
            known[v] = None if found is None else float(found.hi)
        return known[v]

    most = units.capacity * units.size
    if cost(most) is None:
        return EMPTY
    waiting = [(Fraction(0), most)]
    while waiting:
        low, high = waiting.pop()
        below, above = cost(low) if low else None, cost(high)
        if above is None or high - low <= _LEAST_GAP * high:
            continue
        if below is not None and below <= above * (1.0 + STEP):
            continue
        middle = (low + high) / 2
        middle = Fraction(float(middle))
        waiting += [(low, middle), (middle, high)]
    fits = sorted((v, c) for v, c in known.items() if c is not None)
    costs = units.amounts_up(np.array([c for _, c in fits], dtype=np.float64))
    budgets = np.array([units.up(v) for v, _ in fits], dtype=np.int64)
    return _table(np.maximum(budgets, costs), costs)


def look_up(table: ResidueTable, left: Integers) -> Integers:
    """What is left after the query; -1 where it does not fit. Elementwise."""
    place = np.searchsorted(table.budgets, left, side="right")
    if not table.budgets.size:
        return np.full_like(left, -1)
    taken = table.costs[np.maximum(place, 1) - 1]
    return np.where(place > 0, left - taken, -1)
