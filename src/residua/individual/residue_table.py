"""The GDP residue of one query as a table: a certified staircase in what is left.

A step says: from `V` units on, the query costs `C` units. That is true from `V` on because the
cost does not increase with the budget (fact 1 of `docs/proofs/gdp-residue.md`), and `C <= V`, so no
budget goes below zero. Consecutive costs differ by less than 1e-4, and so a subject is charged at
most that much more than the exact residue asks for. Only right above the least budget that fits,
where the curve is vertical, the steps cannot follow it: within 1e-9 of that budget up to 2 % is
given away.

Steps are laid out by what is *left*, `w`: `V = w + c(w)` (below). Nothing here depends
on anyone's data, only on the query, the capacity and the units.

**The cost of randomized response and Laplace queries**, for whole columns. The cost `c` at which
`G_√w ⊕ L ⪯ G_√(w+c)` is given by one equation, since curves touch at `x = 1`
alone (`pld/residue/single_contact.py`, `docs/proofs/gdp-residue.md`):

    A(w) = 2 ∫ e_L(t) e^{-t²/2w} dt            over (0, e)
         <= B(w, c) = √w e^{w/8} ∫ e^{-x²/8} dx  over (√w, √(w+c)),

with `e_L(t) = sinh((e-t)/2) / cosh(e/2)` for `R_e` and `e^{-e/2} (e^{(e-t)/2} - 1)` for Laplace.
Asked the other way round, from what is *left* to what was there, `c` is explicit up to an inverse
error function, which vectorises; the result is raised and then proven by the inequality itself.

**Quadrature.** Gauss–Legendre with 32 nodes is wrong by at most `(64/15) M ρ^-64 / (1 - ρ^-2)` on
`[-1, 1]`, `M` the largest modulus on the Bernstein ellipse `ρ` (half axes `a`, `b`). At `ρ =
2.4`, `a < 1.41`, `b < 1`, `ρ^-64 < 5e-25`. For `A` on `(0, W)`, `W = min(e, 9√w)`, `e <= 16`: the
Gaussian is at most `e^{(81/8) b²} < 2.5e4`, `|e_L|` at most `e_L` with `e + 0.21 W` in place of
`e - t`, and the integral is at least `(W/9) e^{-1/2} e_L(e/2)`. The quotient is largest at `e =
16`, and the error below 1e-15. What is cut off beyond `9√w` is below 1e-16 of it. For `B`, of
length `l`, where `l √w <= c/2 <= 60` and `l <= 11`: relative to its value at the left end the
integrand is at most `e^{l²/32 + 0.21 l √w / 4}` on the ellipse, and on average at least `0.6 / (1
+ l + l√w)`: below 1e-17. Roundings: arguments are below 60, so 100 `u`
on each side and the errors of the library's functions (`pld/arithmetic/ulp_bounds.py`) stay below
5e-14.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from residua.bounds import Floats
from residua.individual.pricing import NEVER, UNAFFORDABLE, CostTable, Integers, Units
from residua.pld.families.symmetric import Laplace, RandomizedResponse
from residua.pld.pld import Pld
from residua.pld.residue.gdp_residue import gdp_residue_cost
from residua.pld.residue.single_contact import fits
from residua.pld.residue.symmetric_family import CentralLaw, height

LARGEST_TABLE_EPS = 16.0
"""The largest `eps` for which the quadrature is proven."""


def _quadrature(count: int) -> list[tuple[float, float]]:
    """Nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return list(zip((0.5 * (nodes + 1.0)).tolist(), (0.5 * weights).tolist(), strict=True))


NODES = _quadrature(32)


def query_side(w: Floats, eps: float, laplace: bool) -> Floats:
    """`A(w)`, relative error below 1e-13."""
    total = np.empty_like(w)
    # The Gaussian factor is cut off at nine standard deviations.
    narrow = 81.0 * w < eps * eps
    for chosen, width in ((narrow, 9.0 * np.sqrt(w[narrow])), (~narrow, np.float64(eps))):
        bend = -0.5 / w[chosen]
        part = np.zeros_like(bend)
        for x, weight in NODES:
            # From e downwards, so that e - t has all its digits where e_L is small.
            d = (eps - width) + width * x
            t = width * (1.0 - x)
            height = np.expm1(0.5 * d) if laplace else np.sinh(0.5 * d)
            part += weight * height * np.exp(bend * (t * t))
        total[chosen] = width * part
    scale = np.exp(-0.5 * eps) if laplace else 1.0 / np.cosh(0.5 * eps)
    return np.asarray(2.0 * scale * total)


def gaussian_side(w: Floats, c: Floats) -> Floats:
    """`B(w, c)`, relative error below 1e-13."""
    root = np.sqrt(w)
    length = c / (root + np.sqrt(w + c))
    total = np.zeros_like(w)
    for x, weight in NODES:
        step = length * x
        total += weight * np.exp(-0.125 * step * (2.0 * root + step))
    return np.asarray(root * length * total)


def cost_of_leaving(w: Floats, eps: float, laplace: bool) -> Floats:
    """`c` with `G_√w ⊕ L ⪯ G_√(w+c)` proven, elementwise; infinite where it is not.

    For `w > 0` and `0 < eps <= 16`. Above the exact cost by about 1e-12 of it.
    """
    needed = query_side(w, eps, laplace)
    with np.errstate(all="ignore"):
        # B <= c/2, and B is concave in c: Newton's steps come from below.
        c = np.maximum(_guess(w, needed), 2.0 * needed)
        for _ in range(60):
            slope = 0.5 * np.exp(-0.125 * c) * np.sqrt(w / (w + c))
            step = (needed - gaussian_side(w, c)) / slope
            c = np.maximum(c + step, 0.5 * c)
            if np.all(np.abs(step) <= 1e-13 * c):
                break
    proven = np.full_like(w, np.inf)
    side_error = 1e-13
    # By what share of it a cost is raised, one after another, until it is proven.
    for raised in (1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        open_ = ~np.isfinite(proven) & np.isfinite(c)
        if not open_.any():
            break
        tried = c[open_] * (1.0 + raised)
        reached = gaussian_side(w[open_], tried) * (1.0 - side_error)
        holds = reached >= needed[open_] * (1.0 + side_error)
        proven[open_] = np.where(holds, tried, np.inf)
    return proven


def _guess(w: Floats, needed: Floats) -> Floats:
    """The equation solved as if there were no rounding."""
    from scipy.special import erf, erfinv

    advantage = erf(np.sqrt(0.125 * w)) + needed * np.exp(-0.125 * w) / np.sqrt(2.0 * np.pi * w)
    return np.asarray(8.0 * erfinv(np.minimum(advantage, 0.999999)) ** 2 - w)


STEP = 9e-5
"""Relative distance of consecutive costs; with roundings below the 1e-4 that is promised."""


def _table(budgets: Integers, costs: Integers) -> CostTable:
    budgets = np.maximum.accumulate(budgets)
    costs = np.minimum.accumulate(costs)
    # Of steps at one budget the last is the cheapest.
    last = np.append(budgets[1:] > budgets[:-1], True)
    return CostTable(budgets[last], costs[last])


def response_table(eps: float, laplace: bool, units: Units) -> CostTable:
    """For `R_eps`, or Laplace noise with `sensitivity / scale = eps`, `0 < eps <= 16`."""
    most = float(units.capacity * units.size)
    # What is left where steps begin and end.
    least_left, most_left = 1e-5 * eps * eps, 2e4 * eps * eps
    if most <= least_left:
        # Not even close: the least budget that fits is above `eps² / 10` for eps <= 16.
        return NEVER
    coarse = np.geomspace(least_left, min(most, most_left), 128)
    costs = cost_of_leaving(coarse, eps, laplace)
    kept = np.isfinite(costs)
    if not kept.any():
        return NEVER
    coarse, costs = coarse[kept], np.minimum.accumulate(costs[kept])
    logs = -np.log(costs)
    count = max(2, math.ceil((logs[-1] - logs[0]) / STEP) + 1)
    wanted = np.linspace(logs[0], logs[-1], count)
    w = np.exp(np.interp(wanted, logs, np.log(coarse)))
    c = cost_of_leaving(w, eps, laplace)
    w, c = w[np.isfinite(c)], c[np.isfinite(c)]
    taken, kept_back = units.amounts_up(c), units.amounts_up(w)
    # The sum of the two must not wrap around; budgets above all capacities need no step.
    within = kept_back <= UNAFFORDABLE - taken
    taken, budgets = taken[within], kept_back[within] + taken[within]
    # The step below all others takes the whole budget.
    least = units.amounts_up(np.array([_least(eps, laplace)]))
    table = _table(np.concatenate([least, budgets]), np.concatenate([least, taken]))
    within = table.budgets <= units.capacity
    return CostTable(table.budgets[within], table.costs[within])


def _least(eps: float, laplace: bool) -> float:
    """The least `mu²` that the query fits, from above: `h_L(1) <= erf(√(v/8))`."""
    from scipy.special import erfinv

    law = CentralLaw(eps, *((0.5, 0.5) if laplace else (1.0 / (1.0 + math.exp(-eps)), 0.0)))
    near = 8.0 * float(erfinv(min(height(law)[0], 1.0 - 1e-15))) ** 2
    for raised in (1e-12, 1e-9, 1e-6, 1e-3, 1.0):
        if fits(law, near * (1.0 + raised)):
            return near * (1.0 + raised)
    return math.inf


@lru_cache(maxsize=4096)
def shared_table(loss: Pld, units: Units) -> CostTable:
    """For any query. Randomized response and Laplace are quick, others may take minutes."""
    if loss.gaussian is None and list(loss.terms.values()) == [1]:
        (factor,) = loss.terms
        if isinstance(factor, RandomizedResponse) and not factor.delta:
            if factor.eps <= LARGEST_TABLE_EPS:
                return response_table(factor.eps, False, units)
        elif isinstance(factor, Laplace) and float(factor.top) <= LARGEST_TABLE_EPS:
            return response_table(float(np.nextafter(float(factor.top), np.inf)), True, units)
    return _table_by_halving(loss, units)


def _table_by_halving(loss: Pld, units: Units) -> CostTable:
    """Steps by halving, each from the certified cost of one budget."""
    known: dict[Fraction, float | None] = {}

    def cost(v: Fraction) -> float | None:
        if v not in known:
            found = gdp_residue_cost(v, loss)
            known[v] = None if found is None else float(found.hi)
        return known[v]

    most = units.capacity * units.size
    if cost(most) is None:
        return NEVER
    waiting = [(Fraction(0), most)]
    while waiting:
        low, high = waiting.pop()
        below, above = cost(low) if low else None, cost(high)
        if above is None or high - low <= Fraction(1, 10**9) * high:
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
