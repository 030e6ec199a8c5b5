"""The GDP residue: how much of `G_mu` is left after a query `L`.

`gdp_residue(mu, L)` is the largest `mu'` with `G_mu' ⊕ L ⪯ G_mu`. What is worked out is the *cost*
`c = mu² - mu'²`, which keeps its digits however small the query. Facts used, proven in
`docs/proofs/gdp-residue.md`:

* a Gaussian part `G_nu` of `L` splits off: `c = nu² + c(rest)` at the same `mu`;
* `c` does not increase with `mu`, so a proof at a smaller `mu` serves;
* `c(L ⊕ M) <= c(L) + c(M)` with the second at what the first leaves.

`L` fits at all iff `L ⪯ G_mu`, and then `c <= mu²`. Mass at either infinity never fits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import Interval, float_down, float_up, floats_around
from residua.pld.arithmetic import FEW, MOST_STEPS
from residua.pld.arithmetic.exact import Side
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.constructors import pure_dp
from residua.pld.families.factors import largest_loss
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import SymmetricLoss
from residua.pld.order.factor_lemmas import variance_above
from residua.pld.order.tails import end
from residua.pld.pld import Pld, query
from residua.pld.residue.finite import finite_cost, finite_excess, finite_parameter
from residua.pld.residue.lattice_excess import LatticeExcess, lattice_excess
from residua.pld.residue.single_contact import cost_at_zero
from residua.pld.residue.symmetric_family import central_law
from residua.work_limit import remembered

_ALL_BUT = 1 - Fraction(1, 10**9)
"""Of `v`: a query that takes more by its `nu²` leaves too narrow a Gaussian to search for."""
_BLOCKS = 1 << 5
"""Into which equal queries are divided, where they are taken one after the other."""
_FIRST = 0.1
"""Of `nu²`: where the search for the cost begins. The least cost found is a quarter of `nu²`: it
tends to `2 KL / nu²` for two nearly disjoint laws."""
_WIDER = Fraction(101, 100)
"""How much more each query of a block may cost than the first of it."""
_LEAST_LOSS = 2.0**-256
"""Smaller losses in a composition are charged as `R_e` of this size: later numbers underflow."""
_ORDERS = np.geomspace(1e-2, 60.0, 40)


def gdp_residue(mu: float, L: Pld) -> float | None:
    """The largest `mu'` with `G_mu' ⊕ L ⪯ G_mu`, rounded down; None if `L` is not proven to fit."""
    left = Fraction(checks.non_negative("mu", mu)) ** 2
    cost = cost_bounds(left, query("L", L))
    if cost is None:
        return None
    return root(left - cost[1], "below")


def gdp_residue_cost(mu_squared: Fraction | float, L: Pld) -> Interval | None:
    """The cost `c`: `G_sqrt(mu² - hi) ⊕ L ⪯ G_mu` is proven, and no cost below `lo` will do.

    None if `L` is not proven to fit. `hi` is at most `mu²`, rounded up.
    """
    cost = cost_bounds(squared(mu_squared), query("L", L))
    return None if cost is None else Interval(float_down(cost[0]), float_up(cost[1]))


def squared(value: Any) -> Fraction:
    """Check a `mu²` given as a float or a rational."""
    if isinstance(value, Fraction):
        checks.require(value >= 0, "mu_squared", "non-negative and finite", value)
        return value
    return Fraction(checks.non_negative("mu_squared", value))


def root(square: Fraction, side: Side) -> float:
    """The square root, rounded to a side."""
    near = math.sqrt(square) if square < 1 << 1000 else math.inf
    if side == "below":
        while Fraction(near) ** 2 > square:
            near = math.nextafter(near, 0.0)
    else:
        while near < math.inf and Fraction(near) ** 2 < square:
            near = math.nextafter(near, math.inf)
    return near


@remembered(maxsize=4096)
def cost_bounds(v: Fraction, L: Pld) -> tuple[Fraction, Fraction] | None:
    """Exact ends of a proven interval for the cost, at most `v`."""
    gaussian = L._exact_variance
    if gaussian > v or max(L.mass_at_infinity, L.mass_at_minus_infinity) > 0.0:
        return None
    if not L.terms:
        return gaussian, gaussian
    rest = _rest(v, Pld(None, L.terms) if L.gaussian else L)
    if rest is None:
        return None
    low, high = gaussian + rest[0], gaussian + rest[1]
    return (low, high) if high <= v else None


def _rest(v: Fraction, L: Pld) -> tuple[Fraction, Fraction] | None:
    """Bounds for an `L` without a Gaussian part; None if it is not proven to fit."""
    low, high = floats_around(v)
    if low <= 0.0:
        return None
    law = central_law(L)
    if law is not None:
        found = cost_at_zero(law, low, high)
        return None if found is None else (Fraction(found[0]), Fraction(found[1]))
    tiny = {
        f: n for f, n in L.terms.items() if isinstance(f, SymmetricLoss) and f.top < _LEAST_LOSS
    }
    if tiny:
        others = Pld(None, {f: n for f, n in L.terms.items() if f not in tiny})
        raised = _rest(v, others + sum(tiny.values()) * pure_dp(_LEAST_LOSS))
        return None if raised is None else (Fraction(0), raised[1])
    if any(isinstance(factor, GaussianMixture) for factor in L.terms):
        return _with_mixtures(v, L)
    written = listed_atoms(L)
    if written is None:
        return _one_by_one(v, L)
    excess, surplus = written
    nu = finite_parameter(excess)[1]
    if not nu <= math.sqrt(low) * (1.0 - 2.0 * U):
        return None
    # What is below `G_nu` costs at most `nu²`, whatever else is proven.
    most = Fraction(nu) ** 2
    if not excess.is_resolved or most > _ALL_BUT * v:
        return min(Fraction(renyi_cost(L)), most), most
    found = finite_cost(excess, low, high, _FIRST * nu * nu, surplus)
    below = max(renyi_cost(L), found[0]) if surplus or not found[0] else found[0]
    wide = found[1] == low or (not surplus and found[1] > 1.001 * found[0])
    if wide and sum(L.terms.values()) > 1:
        # Large losses, little proven: what the queries take one after the other may be less.
        apart = _one_by_one(v, L)
        if apart is not None:
            most = min(most, apart[1])
    above = min(Fraction(found[1]), most)
    return min(Fraction(below), above), above


@remembered(maxsize=32)
def listed_atoms(L: Pld) -> LatticeExcess | None:
    """Its excess as a finite list, or that of a loss above it, if that can be written out."""
    if sum(L.terms.values()) > FEW // 2:
        return None
    excess = finite_excess(L) if L.is_finite else None
    return lattice_excess(L) if excess is None else LatticeExcess(excess, 0.0)


def _one_by_one(v: Fraction, L: Pld) -> tuple[Fraction, Fraction] | None:
    """One query after the other, each under what the others left: not tight, but proven.

    Large losses come first, while most is left. Equal queries go in blocks. As costs do not
    increase with the budget, what one costs at the end of its block bounds what each of it costs.
    """
    left = v
    for factor, n in sorted(L.terms.items(), key=lambda term: -largest_loss(term[0])):
        one = Pld(None, {factor: 1})
        block, to_come = -(-n // _BLOCKS), n
        while to_come:
            count = min(block, to_come)
            found = cost_bounds(left, one)
            for _ in range(MOST_STEPS):
                if found is None or count * found[1] > left:
                    return None
                # Enough is left before the last of the block for this cost to hold.
                again = cost_bounds(left - (count - 1) * found[1] * _WIDER, one)
                if again is not None and again[1] <= found[1] * _WIDER:
                    break
                found = again
            else:
                return None
            left -= count * again[1]
            to_come -= count
    return Fraction(renyi_cost(L)), v - left


def _with_mixtures(v: Fraction, L: Pld) -> tuple[Fraction, Fraction] | None:
    """Mixtures count as the Gaussian above them, and below as what their tails are.

    The tail of a mixture is that of a Gaussian (`tails.py`): if the variances at either end came
    to more than `v`, the composition would escape `G_mu` there.
    """
    mixtures = {f: n for f, n in L.terms.items() if isinstance(f, GaussianMixture)}
    above = sum((n * variance_above(f) for f, n in mixtures.items()), Fraction(0))
    ends = (
        sum((n * end(g).variance for g, n in side), Fraction(0))
        for side in (mixtures.items(), [(f.reverse(), n) for f, n in mixtures.items()])
    )
    low = max(*ends, Fraction(renyi_cost(L)))
    rest = Pld(None, {f: n for f, n in L.terms.items() if f not in mixtures})
    if rest.is_identity:
        return (min(low, above), above) if above <= v else None
    found = _rest(v, rest)
    if found is None or above + found[1] > v:
        return None
    return max(low, found[0]), above + found[1]


def renyi_cost(L: Pld) -> float:
    """A lower bound of the cost at every `mu`: `2 ln E e^{sZ} / (s(s+1))` for any `s`."""
    s = np.concatenate([-0.5 - _ORDERS[::-1], [-0.5], -0.5 + _ORDERS])
    s = s[(np.abs(s) > 1e-3) & (np.abs(s + 1.0) > 1e-3)]
    value, error = L._evaluator._moments.log_moment(s)
    spread = s * (s + 1.0)
    least = 2.0 * (value - np.sign(spread) * (error + 8.0 * U * np.abs(value))) / spread
    return max(float(np.max(least)) * (1.0 - 8.0 * U), 0.0)
