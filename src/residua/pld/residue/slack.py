"""Gaussian with slack: what a query costs of a budget `G_mu ⊕ R_{0,delta}`.

A query `L` may be charged `(c, η)` if `L ⊕ G_m ⪯ G_mu ⊕ R_{0,η}`, `m² = mu² - c`: the rest of the
budget composed to both sides leaves `G_m ⊕ R_{0,delta'}`, `1 - delta = (1-η)(1 - delta')`. With
slack the query may have mass at infinity, be asymmetric, or have tails that no Gaussian of its size
covers. As a formula,

    h_{L ⊕ G_m}(e^t) <= (1-η) h_{G_mu}(e^t) + η      for all t, in both directions,

which is inequality (*) of `reserve.py` without reserves: its proof by cells serves. At `t < 0` both
sides differ by `e^t` times as much as those of the reversed curves do at `-t`.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from residua import checks
from residua.bounds import Interval, float_down, float_up
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.constructors import approximate_dp
from residua.pld.constructors import gaussian as gaussian_of
from residua.pld.pld import Pld, query
from residua.pld.residue.gdp_residue import gdp_residue_cost, squared
from residua.pld.residue.outcomes import outcomes_above
from residua.pld.residue.reserve import Inequality, Reserves, level
from residua.work_limit import remembered

_SHARES = (1e-4, 1e-3, 1e-2, 0.1)
"""By how much of itself the cost is raised, in turn, until it is proven."""
_FINE, _MOST_OUTCOMES = 0.03, 1 << 8
"""The distance of outcomes beside the size of the loss at 1, and their own place; a finite query
with at most so many is taken as it is."""
_ALL = 0.99
"""The share of `mu²` from which a query takes all there is."""
_LEAST = 1e-12
"""The least share of `mu²` that a search looks at."""


def slack_cost(mu_squared: Fraction | float, L: Pld, eta: float) -> Interval | None:
    """The cost `c` of a query for a given slack: `L ⊕ G_sqrt(mu² - hi) ⪯ G_mu ⊕ R_{0,η}` is proven.

    Args:
        mu_squared: `mu²`, 0 or more.
        L: the query; its Gaussian part splits off.
        eta: the slack `η`, a probability; 0 is `gdp_residue_cost`.

    Returns:
        An interval: `hi` is proven to be enough, `lo` is the Gaussian part alone. None if `L` is
        not proven to fit.
    """
    v, share = squared(mu_squared), checks.probability("eta", eta)
    if share == 0.0:
        return gdp_residue_cost(v, L)
    return _cost(v, query("L", L), share)


@remembered(maxsize=4096)
def _cost(v: Fraction, L: Pld, eta: float) -> Interval | None:
    part = L._exact_variance
    low = float_down(v)
    if part > v or eta >= 1.0:
        return None
    rest = Pld(None, L.terms)
    # What is (0, η)-DP fits the slack alone: `L ⪯ R_{0,η}` is `h(1) <= η`.
    if rest.is_identity or rest.delta(0.0) <= eta:
        return Interval(float_down(part), float_up(part))
    sides = outcomes_above(rest, level(eta), _FINE, _MOST_OUTCOMES)
    if sides is None or any(side.at_infinity >= eta for side in sides) or low <= 0.0:
        return None
    found = _proven_cost(Inequality(low, Reserves((), ()), eta, sides, 0.0))
    if found is not None:
        # What is raised to be proven may come to more than without any slack.
        alone = gdp_residue_cost(low, rest)
        found = found if alone is None else min(found, float(alone.hi))
    else:
        # Nothing to speak of would be left: then all is taken, if the query fits at all.
        fits = rest <= gaussian_of(mu=math.sqrt(low) * (1.0 - 2.0 * U)) + approximate_dp(0.0, eta)
        found = low if fits else None
    if found is None or part + Fraction(found) > v:
        return None
    # A Gaussian part costs at least itself; nothing better is claimed below.
    return Interval(float_down(part), float_up(part + Fraction(found)))


def _proven_cost(inequality: Inequality) -> float | None:
    """A cost of at most `_ALL` of the budget that is proven; None if none is."""
    from scipy.optimize import brentq

    v = inequality.v

    def gap(log_share: float) -> float:
        return float(np.max(inequality.gaps(v * -math.expm1(log_share))))

    first, last = math.log(_LEAST), math.log(_ALL)
    if gap(last) > 0.0:
        return None
    found = first if gap(first) <= 0.0 else brentq(gap, first, last, xtol=2e-5)
    for share in _SHARES:
        c = v * math.exp(found) * (1.0 + share)
        if c < _ALL * v and inequality.proves(v - c, 0.0):
            return c
    return None
