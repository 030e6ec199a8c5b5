"""The GDP residue: how much of `G_mu` is left after a query `L`.

`gdp_residue(mu, L)` is the largest `mu'` with `G_mu' ⊕ L ⪯ G_mu`. What is worked out is the *cost*
`c = mu² - mu'²`, which keeps its digits however small the query. Facts used, proven in
`docs/gdp-residue.md`:

* a Gaussian part `G_nu` of `L` splits off: `c = nu² + c(rest)` at the same `mu`;
* `c` does not increase with `mu`, so a proof at a smaller `mu` serves;
* `c(L ⊕ M) <= c(L) + c(M)` with the second at what the first leaves.

`L` fits at all iff `L ⪯ G_mu`, and then `c <= mu²`. Mass at either infinity never fits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from residuum import checks
from residuum.bounds import Interval, float_down, float_up
from residuum.pld.bounded_range import BoundedRange
from residuum.pld.finite_residue import finite_cost, finite_excess
from residuum.pld.gdp_parameter import is_below_gaussian
from residuum.pld.laplace import Laplace
from residuum.pld.randomized_response import RandomizedResponse
from residuum.pld.residue_at_zero import cost_at_zero, parameters
from residuum.pld.value import Pld, query

_CACHED = 1 << 12


def gdp_residue(mu: float, L: Pld) -> float | None:
    """The largest `mu'` with `G_mu' ⊕ L ⪯ G_mu`, rounded down; None if `L` is not proven to fit."""
    left = Fraction(checks.non_negative("mu", mu)) ** 2
    cost = _bounds(left, query("L", L))
    if cost is None:
        return None
    return _root_down(left - cost[1])


def gdp_residue_cost(mu_squared: Fraction | float, L: Pld) -> Interval | None:
    """The cost `c`: `G_sqrt(mu² - hi) ⊕ L ⪯ G_mu` is proven, and no cost below `lo` will do.

    None if `L` is not proven to fit. `hi` is at most `mu²`, rounded up.
    """
    cost = _bounds(_square(mu_squared), query("L", L))
    if cost is None:
        return None
    return Interval(float_down(cost[0]), float_up(cost[1]))


def _square(value: Any) -> Fraction:
    if isinstance(value, Fraction):
        checks.require(value >= 0, "mu_squared", "non-negative and finite", value)
        return value
    return Fraction(checks.non_negative("mu_squared", value))


def _root_down(square: Fraction) -> float:
    """The largest float whose square is at most this."""
    root = math.sqrt(float_down(square))
    while Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root


@lru_cache(maxsize=_CACHED)
def _bounds(v: Fraction, L: Pld) -> tuple[Fraction, Fraction] | None:
    """Exact ends of a proven interval for the cost, at most `v`."""
    gaussian = L._exact_variance
    if gaussian > v or max(L.mass_at_infinity, L.mass_at_minus_infinity) > 0.0:
        return None
    if not L.terms:
        return gaussian, gaussian
    rest = _rest(v, Pld(None, L.terms))
    if rest is None:
        return None
    low, high = gaussian + Fraction(rest[0]), gaussian + Fraction(rest[1])
    return (low, high) if high <= v else None


def _rest(v: Fraction, L: Pld) -> tuple[float, float] | None:
    """Bounds for an `L` without a Gaussian part; None if it is not proven to fit."""
    low, high = float_down(v), float_up(v)
    if low <= 0.0:
        return None
    if list(L.terms.values()) == [1]:
        (factor,) = L.terms
        if isinstance(factor, RandomizedResponse | Laplace | BoundedRange):
            law = parameters(factor)
            return None if law is None else cost_at_zero(law, low, high)
    excess = finite_excess(L) if L.is_finite else None
    if excess is not None:
        return finite_cost(excess, low, high) if is_below_gaussian(L, low) else None
    return None
