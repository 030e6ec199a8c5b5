"""The GDP parameter of finitely many atoms.

The tradeoff curve of `G_nu` is `τ(α) = Φ(Φ⁻¹(1-α) - nu)`, so `L ⪯ G_nu` iff

    nu >= -Φ⁻¹(P(Z <= z)) - Φ⁻¹(Q(Z > z))      for every z,

and for a finite `L` the vertices of its tradeoff curve are enough: between them the curve is
straight and that of `G_nu` convex.
"""

from __future__ import annotations

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U, normal_density
from residua.pld.residue.excess import FiniteExcess
from residua.pld.support.normal_quantiles import quantile_bounds


def finite_parameter(excess: FiniteExcess) -> tuple[float, float]:
    """Bounds of the parameter of a finite loss without mass at infinity."""
    z, half = excess.losses, np.exp(0.5 * excess.losses)
    if z.size < 2:
        return 0.0, 0.0
    p, q = excess.weights * half, excess.weights / half
    wrong = excess.weight_error + 0.5 * excess.loss_error + (EXP_ULPS + 2.0 + p.size) * U
    # The smaller of both tails of each law has the digits.
    p_low, q_high = np.cumsum(p)[:-1], np.cumsum(q[::-1])[-2::-1]
    p_high, q_low = np.cumsum(p[::-1])[-2::-1], np.cumsum(q)[:-1]
    low_p, high_p = quantile_bounds(p_low, p_high, wrong)
    low_q, high_q = quantile_bounds(q_high, q_low, wrong)
    low, high = low_p + low_q, high_p + high_q
    near_low, near_high = _small_difference(excess, low_p, high_p, low_q, high_q, wrong)
    low, high = np.maximum(low, near_low), np.minimum(high, near_high)
    return max(float(np.max(low)), 0.0), float(np.max(high)) * (1.0 + 4.0 * U)


def _small_difference(
    excess: FiniteExcess, low_p: Floats, high_p: Floats, low_q: Floats, high_q: Floats, wrong: float
) -> tuple[Floats, Floats]:
    """The same from `Φ⁻¹(b) - Φ⁻¹(a) = (b - a) / φ` at a point between, for tiny losses.

    `b - a = Q(Z <= z) - P(Z <= z)` sums terms of one sign on either side of 0.
    """
    gap = 2.0 * excess.weights * np.sinh(0.5 * excess.losses)
    left, right = np.cumsum(-gap)[:-1], np.cumsum(gap[::-1])[-2::-1]
    difference = np.where(excess.losses[:-1] <= 0.0, left, right)
    spread = np.cumsum(excess.weights)[:-1]
    spread = np.where(excess.losses[:-1] <= 0.0, spread, spread[-1] - spread + excess.weights[-1])
    error = wrong * difference + 1.1 * excess.loss_error * (1.0 + wrong) * spread
    # Both quantiles lie between -high_p and low_q; the density is smallest at an end.
    first, last = -high_p, high_q
    least = np.minimum(normal_density(first), normal_density(last)) * (1.0 - 1e-12)
    most = np.where(
        (first < 0.0) & (last > 0.0), 0.4, np.maximum(normal_density(first), normal_density(last))
    )
    with np.errstate(divide="ignore", over="ignore"):
        high = np.where(least > 0.0, (difference + error) / np.maximum(least, 1e-300), np.inf)
    return (difference - error) / np.maximum(most * (1.0 + 1e-12), 1e-300), high
