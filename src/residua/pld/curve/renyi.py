"""Rényi divergence: `D_alpha = ln E[e^{(alpha-1) Z}] / (alpha - 1)`, additive over composition.

Order 1 is the mean of the loss (KL), order `inf` the largest loss. `D_alpha` does not decrease
in `alpha`, which bounds orders so close to 1 that the quotient has no digits left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats, Interval
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.curve.support_ends import largest_loss_bounds
from residua.pld.families.atoms import Atoms
from residua.pld.families.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from residua.pld.pld import Pld

_NEAR_ONE = 1e-4
"""Orders closer to 1 are bounded by those on either side."""
_LARGE = 1e6
"""Orders beyond are bounded by this one and by the largest loss."""


def renyi_bounds(pld: Pld, alpha: Floats) -> Interval:
    """Proven interval for `D_alpha`, elementwise."""
    flat = alpha.ravel()
    lo, hi = np.empty(flat.size), np.empty(flat.size)
    plain = (flat >= 1.0 + _NEAR_ONE) & (flat <= _LARGE) & _has_moments(pld)
    if plain.any():
        low, hi[plain] = _quotients(pld, flat[plain])
        lo[plain] = np.maximum(low, 0.0)
    for i in np.flatnonzero(~plain).tolist():
        lo[i], hi[i] = _one(pld, float(flat[i]))
    if alpha.ndim == 0:
        return Interval(float(lo[0]), float(hi[0]))
    return Interval(lo.reshape(alpha.shape), hi.reshape(alpha.shape))


def _has_moments(pld: Pld) -> bool:
    """Whether every divergence of an order above 1 is that of a log moment."""
    return not (pld.is_identity or pld.is_infinite or pld.mass_at_infinity_bounds.hi > 0.0)


def _one(pld: Pld, alpha: float) -> tuple[float, float]:
    if pld.is_identity:
        return 0.0, 0.0
    if pld.is_infinite:
        return np.inf, np.inf
    if alpha >= 1.0 and pld.mass_at_infinity_bounds.hi > 0.0:
        return np.inf, np.inf
    if alpha == np.inf:
        return largest_loss_bounds(pld)
    if alpha == 1.0:
        return mean_loss(pld)
    if alpha > _LARGE:
        return _large(pld, alpha)
    lo, hi = _quotient(pld, alpha)
    if 0.0 < alpha - 1.0 < _NEAR_ONE:
        lo, hi = max(lo, mean_loss(pld)[0]), min(hi, _quotient(pld, 1.0 + 2.0 * _NEAR_ONE)[1])
    elif 0.0 < 1.0 - alpha < _NEAR_ONE:
        lo = max(lo, _quotient(pld, 1.0 - 2.0 * _NEAR_ONE)[0])
        if pld.mass_at_infinity_bounds.hi == 0.0:
            hi = min(hi, mean_loss(pld)[1])
    return max(lo, 0.0), hi


def _large(pld: Pld, alpha: float) -> tuple[float, float]:
    """Large orders: `c alpha / 2` for the Gaussian part, next to the largest loss for the rest."""
    gaussian = pld.gaussian
    part = 0.5 * gaussian.variance * alpha if gaussian else 0.0
    error = part * ((gaussian.variance_error if gaussian else 0.0) + 8.0 * U)
    if not np.isfinite(part):
        return float(np.finfo(np.float64).max), np.inf
    if not pld.terms:
        return part - error, part + error
    rest = type(pld)(None, pld.terms)
    low, high = _quotient(rest, _LARGE)[0], largest_loss_bounds(rest)[1]
    slack = 4.0 * U * (abs(low) + abs(high) + part)
    return max(part + low - error - slack, 0.0), part + high + error + slack


def _quotient(pld: Pld, alpha: float) -> tuple[float, float]:
    low, high = _quotients(pld, np.array([alpha]))
    return float(low[0]), float(high[0])


def _quotients(pld: Pld, alpha: Floats) -> tuple[Floats, Floats]:
    s = alpha - 1.0
    drift = np.where((alpha >= 0.5) & (alpha <= 2.0), U, 2.0 * U)
    k, e = pld._evaluator._moments.log_moment(s)
    slope = np.array([_slope(pld, each) for each in s.tolist()])
    # s itself may be off by u relative (exact in [1/2, 2]): K changes by at most |K'| |s| u.
    e = e + drift * (np.abs(k) + slope * np.abs(s)) + 4.0 * U * np.abs(k)
    ends = (k - e) / s, (k + e) / s
    low, high = np.minimum(*ends), np.maximum(*ends)
    return low * (1.0 - np.sign(low) * 4.0 * U), high * (1.0 + np.sign(high) * 4.0 * U)


def _slope(pld: Pld, s: float) -> float:
    """A generous bound on `|K'|` near `s`: Gaussian drift plus the largest losses."""
    total = (pld.gaussian.variance if pld.gaussian else 0.0) * (abs(s) + 1.0)
    for factor, n in pld.terms.items():
        if isinstance(factor, Atoms):
            size = float(np.max(np.abs(factor.z)))
        elif isinstance(factor, GaussianMixture):
            size = factor.slope_bound(s)
        else:
            size = float(factor.top)
        total += n * size
    return 1.1 * total


def mean_loss(pld: Pld) -> tuple[float, float]:
    """Enclosure of `E Z` (KL divergence) for a PLD without mass at infinity."""
    value = error = 0.0
    if pld.gaussian:
        value = 0.5 * pld.gaussian.variance
        error = value * (pld.gaussian.variance_error + 4.0 * U)
    for factor, n in pld.terms.items():
        if isinstance(factor, Atoms):
            mean = float(factor.p @ factor.z)
            size = float(factor.p @ np.abs(factor.z))
            wrong = factor.loss_error + size * (factor.p.size + EXP_ULPS + 8.0) * U
        else:
            mean, wrong = factor.mean_loss
        value += n * mean
        error += n * wrong + 4.0 * U * abs(value)
    return value - error, value + error
