"""The cost of a query under `G_mu` where only the curve from some point on matters.

For a target `(eps, delta)` the curve of what is still to come is read at `x = e^eps` alone. After
queries whose losses add up to at most `b` it is read at `x >= e^{eps-b}`: the analyst who has lost
`z <= b` so far reads it at `e^{eps-z}`. So a budget `G_mu` may become `G_m` after a query `L` if

    h_{G_m ⊕ L}(e^t) <= h_{G_mu}(e^t)      for all t >= t0 = eps - b,

a weaker condition than the residue on the whole line. While `t0 > 0`, one point is enough for
randomized response, Laplace noise and bounded ranges:

**Lemma.** Let `L` be one of these and `t0 >= 0`. If the inequality holds at `t0`, it holds at all
`t >= t0`.

*Proof.* In the notation of `single_contact.py`, let `g = e_L - e_{G_√c}`, `c = mu² - m²`. It is
even, and on `y > 0` it changes sign at most once, from plus to minus, at `y*` say. With `l = t/m²`,
the sign of the difference of both sides at `t` is that of `D(l) = ∫_0^∞ g(y) e^{-y²/2m²} cosh(ly)
dy`. For `l >= l0 >= 0` the quotient `cosh(ly) / cosh(l0 y)` does not decrease in `y`, so

    D(l) <= cosh(ly*) / cosh(l0 y*) D(l0),

term by term: where `g >= 0` the quotient is at most that at `y*`, where `g <= 0` at least. Hence
`D(l0) <= 0` implies `D(l) <= 0`. For `m = 0` the left side is `h_L`, the limit `m -> 0`. ∎

A loss of at most `e` in both directions is below `R_e`, and so costs no more than `R_e` does.

The left side at `t0` is a sum over a list of outcomes that dominates `L`: the part of the law
between the atoms, `e^{-z/2} L(dz) = k dz`, goes to the points of a grid of spacing `D` so that each
cell keeps its mass under both laws, which leaves `2 tanh(D/4) k` for each end of a cell, tilted in
the same way. All terms are positive. At `t0` the list is only larger than `L`, and from there on
the lemma speaks of `L` itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from residua.bounds import Floats, float_down, float_up
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.families import gaussian
from residua.pld.pld import Pld
from residua.pld.residue.symmetric_family import CentralLaw, central_law, renyi_cost, tilted
from residua.work_limit import remembered

_LEAST_CELLS, _MOST_CELLS, _FINE = 48, 512, 24.0
"""Cells of the grid between the atoms: at least, at most, and for each `mu` of its length."""
_ROUNDING = 1024.0 * U
"""Relative error of a mass, and of a sum of as many terms as there are points."""
_STEPS, _ABOVE = 60, 1.25
"""Of a search: how many steps, and where it ends at first, beside the cost on the whole line."""
_CLOSE = 1e-7
"""Relative accuracy of the cost at which the search ends."""
_RAISES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
"""By how much of itself the cost is raised, in turn, until the inequality is proven."""


def cost_from(
    v: Fraction, loss: Pld, start: Fraction, most: Fraction | None = None
) -> Fraction | None:
    """A cost `c <= v`, proven: `h_{G_√(v-c) ⊕ L}(e^t) <= h_{G_√v}(e^t)` for all `t >= start`.

    Args:
        v: `mu²` of the budget.
        loss: one randomized response without `delta`, Laplace noise or bounded range.
        start: the least `t` that can be reached, positive.
        most: the largest cost that is of interest, at most `v`, which is the default.

    Returns:
        The cost, rounded up. None if none up to about `most` is proven, or the loss is not one of
        these.
    """
    law = central_law(loss)
    if law is None or v <= 0 or start <= 0:
        return None
    return _cost(
        *v.as_integer_ratio(), law, *start.as_integer_ratio(), float(v if most is None else most)
    )


# By the integers: to hash a rational takes a division modulo a prime.
@remembered(maxsize=4096)
def _cost(
    n: int, d: int, law: CentralLaw, start_n: int, start_d: int, most: float
) -> Fraction | None:
    v, start = Fraction(n, d), Fraction(start_n, start_d)
    # Each side is read at the end of an enclosure of `start` that is safe for it.
    out, early = float_up(start), float_down(start)
    budget = float(gaussian.curve(np.array([out]), 0.0, float_down(v), 4.0 * U)[0][0])
    points = _points(law, v)
    near, least = float(v), math.inf
    for high in (min(_ABOVE * renyi_cost(law), most), most):
        least = _height(points, max(near - high, 0.0), early)
        if least <= budget:
            break
    if not budget > 0.0 or not least <= budget:
        return None
    found = _search(points, near, early, budget, high, least)
    for raised in _RAISES:
        cost = min(Fraction(found * (1.0 + raised)), v)
        if _height(points, float_up(v - cost), early) <= budget:
            return cost
    return v if _height(points, 0.0, early) <= budget else None


def _points(law: CentralLaw, v: Fraction) -> tuple[Floats, Floats]:
    """Losses and masses, from above, of a list that dominates the law."""
    e, (ends, flat) = law.eps, tilted(law)
    if not flat:
        z, weights = np.array([-e, e]), np.array([ends, ends])
    else:
        wanted = _FINE * 2.0 * e / math.sqrt(float_up(v))
        cells = int(min(max(wanted, _LEAST_CELLS), _MOST_CELLS))
        z = np.linspace(-e, e, cells + 1)
        share = 2.0 * flat * math.tanh(0.5 * e / cells)
        weights = np.full(z.size, 2.0 * share)
        weights[[0, -1]] = share + ends
    return z, weights * np.exp(0.5 * z) * (1.0 + _ROUNDING)


def _height(points: tuple[Floats, Floats], left: float, t: float) -> float:
    """`h(e^t)` of the list and the Gaussian that is left, from above."""
    z, masses = points
    at = t - z
    if left > 0:
        heights = gaussian.curve(at, 4.0 * U * (t + z[-1]), left, 4.0 * U)[1]
    else:
        below = np.minimum(at - 4.0 * U * (t + z[-1]), 0.0)
        heights = -np.expm1(below) * (1.0 + _ROUNDING)
    return float(masses @ heights) * (1.0 + _ROUNDING)


def _search(
    points: tuple[Floats, Floats], v: float, t: float, wanted: float, most: float, least: float
) -> float:
    """About the cost with the height `wanted`, by false position (Illinois) for its logarithm.

    At the cost `most` the height is `least`, which is at most `wanted`.
    """

    def log_ratio(height: float) -> float:
        return (math.log(height) if height > 0.0 else -1e3) - math.log(wanted)

    def gap(cost: float) -> float:
        return log_ratio(_height(points, max(v - cost, 0.0), t))

    low, high = 0.0, most
    more, less = gap(low), log_ratio(least)
    if not more > 0.0:
        return low
    side = 0
    for _ in range(_STEPS):
        if high - low <= _CLOSE * high:
            break
        cost = low + (high - low) * more / (more - less)
        cost = min(max(cost, low + 0.1 * _CLOSE * high), high - 0.1 * _CLOSE * high)
        found = gap(cost)
        if abs(found) < 1e-12:
            return cost
        if found > 0.0:
            low, more, less = cost, found, less / 2.0 if side > 0 else less
            side = 1
        else:
            high, less, more = cost, found, more / 2.0 if side < 0 else more
            side = -1
    return high
