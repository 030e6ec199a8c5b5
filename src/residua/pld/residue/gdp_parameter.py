"""The GDP parameter of a loss: the least `nu` with `L ⪯ G_nu`.

A finite loss has it in closed form (`normal_quantiles.py`), and so have randomized response,
Laplace and bounded range, whose curves touch at `x = 1` only (`single_contact.py`): `h_L(1) =
erf(nu/√8)`. Otherwise `L = G_g ⊕ M` is below `G_nu` iff the cost of `M` under `G_nu` leaves `g²`:
since `nu² - c(nu)` increases, a search finds where it does, and ends on the proven side."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from residua.bounds import Interval, float_down
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.families import gaussian
from residua.pld.families.bounded_range import BoundedRange
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.order.tails import end
from residua.pld.pld import Pld, query
from residua.pld.residue.finite_parameter import finite_parameter
from residua.pld.residue.gdp_residue import cost_bounds, renyi_cost, written_out
from residua.pld.residue.single_contact import fits, refuses
from residua.pld.residue.symmetric_family import CentralLaw, height, parameters
from residua.work_limit import remembered

_CACHED = 1 << 10
_STEPS = 60
_SETTLED = 2e-8
_LARGEST = 1e12
_BELOW = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def gdp_parameter(L: Pld) -> float:
    """The least `nu` with `L ⪯ G_nu`, rounded up; inf if there is none."""
    # What is proven too small is not needed here, and takes far longer.
    return _above(query("L", L))


def gdp_parameter_bounds(L: Pld) -> Interval:
    """Proven interval for `gdp_parameter(L)`."""
    return _bounds(query("L", L))


def closed_form_parameter(L: Pld) -> float:
    """`gdp_parameter(L)` where it has a closed form; inf where a search would have to find it."""
    closed = _closed_form(L)
    return math.inf if closed is None else closed[1]


@remembered(maxsize=_CACHED)
def _bounds(L: Pld) -> Interval:
    closed, high = _closed_form(L), _above(L)
    if closed is not None and closed[0] is not None:
        return Interval(closed[0], high)
    if high == math.inf:
        return Interval(math.sqrt(_tail_variance(L)) * (1.0 - 4.0 * U), high)
    return Interval(_refuted(L, high * high), high)


@remembered(maxsize=_CACHED)
def _above(L: Pld) -> float:
    closed = _closed_form(L)
    return _searched(L) if closed is None else closed[1]


@remembered(maxsize=_CACHED)
def _closed_form(L: Pld) -> tuple[float | None, float] | None:
    """Proven bounds; without the lower one where only a loss above `L` was written out."""
    if max(L.mass_at_infinity_bounds.lo, L.mass_at_minus_infinity_bounds.lo) > 0.0:
        return math.inf, math.inf
    if not L.terms:
        return _root(L._exact_variance, down=True), _root(L._exact_variance, down=False)
    if L.gaussian is None and list(L.terms.values()) == [1]:
        (factor,) = L.terms
        if isinstance(factor, RandomizedResponse | Laplace | BoundedRange):
            law = parameters(factor)
            if law is not None:
                return _central(law)
    if L.gaussian is None and not any(isinstance(f, GaussianMixture) for f in L.terms):
        written = written_out(L)
        if written is not None:
            low, high = finite_parameter(written.excess)
            return None if written.surplus else low, high
    return None


def _central(law: CentralLaw) -> tuple[float, float]:
    from scipy.special import erfcinv, erfinv

    at_one, lacking = height(law)
    near = math.sqrt(8.0) * float(erfinv(at_one) if at_one < 0.5 else erfcinv(lacking))
    low, high, share = 0.0, math.inf, 1e-13
    while share < 1.0 and (low == 0.0 or high == math.inf):
        if high == math.inf and fits(law, near * near * (1.0 + share)):
            high = near * (1.0 + share)
        if low == 0.0 and refuses(law, near * near * (1.0 - share)):
            low = near * (1.0 - share)
        share *= 4.0
    return low, high


def _root(square: Fraction, down: bool) -> float:
    root = math.sqrt(square) if square < Fraction(2) ** 1000 else math.inf
    if down:
        while Fraction(root) ** 2 > square:
            root = math.nextafter(root, 0.0)
    else:
        while Fraction(root) ** 2 < square:
            root = math.nextafter(root, math.inf)
    return root


def _searched(L: Pld) -> float:
    """Find where nothing is left, from above. What is left grows at least as fast as the budget."""
    low, high, left = max(float_down(L._exact_variance), 1e-12), math.inf, math.inf
    v = 2.0 * low
    for _ in range(_STEPS):
        found = cost_bounds(Fraction(v), L)
        if found is None:
            low = v
            v = math.sqrt(low * high) if high < math.inf else 4.0 * v
        else:
            high, left = v, float(v - found[1])
            v = max(high - left * (1.0 - _SETTLED) + 0.1 * _SETTLED * high, low)
        if v > _LARGEST or (high < math.inf and min(high - low, left) <= _SETTLED * high):
            break
    return math.sqrt(high) * (1.0 + 2.0 * U)


def _tail_variance(L: Pld) -> float:
    """The least variance that the tails of `L` allow."""
    ends = (
        sum(
            (n * end(f).variance for f, n in side.terms.items() if isinstance(f, GaussianMixture)),
            L._exact_variance,
        )
        for side in (L, L.reverse())
    )
    return float_down(max(ends))


def _refuted(L: Pld, good: float) -> float:
    """A parameter that is proven too small, next to the square root of `good` if possible."""
    least = max(_tail_variance(L), renyi_cost(L))
    for share in _BELOW:
        v = good * (1.0 - share)
        if v <= least:
            break
        top = min(L._evaluator.reach(1e-9), L.reverse()._evaluator.reach(1e-9), 30.0)
        for side in (L,) if L.is_symmetric else (L, L.reverse()):
            t = top * np.linspace(0.0, 1.0, 65) ** 2
            lo, _ = side._evaluator.right(t, 0.0, 1e-5)
            _, hi = gaussian.curve(t, 0.0, v, 0.0)
            if np.any(lo > hi):
                return math.sqrt(v) * (1.0 - 4.0 * U)
    return math.sqrt(least) * (1.0 - 4.0 * U)
