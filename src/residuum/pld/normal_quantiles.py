"""Normal quantiles with proven bounds; by them the tradeoff curve of a Gaussian, and the GDP
parameter of finitely many atoms.

The tradeoff curve of `G_nu` is `τ(α) = Φ(Φ⁻¹(1-α) - nu)`, so `L ⪯ G_nu` iff

    nu >= -Φ⁻¹(P(Z <= z)) - Φ⁻¹(Q(Z > z))      for every z,

and for a finite `L` the vertices of its tradeoff curve are enough: between them the curve is
straight and that of `G_nu` convex. Quantiles come from `scipy.special.ndtri` and are then proven
with the Mills ratio, whose error is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from residuum.bounds import Floats
from residuum.pld.excess import FiniteExcess
from residuum.pld.gaussian import Gaussian
from residuum.pld.special import EXP_ULPS, MILLS_ULPS, TINY, U, mills_ratio, normal_density


def gaussian_tradeoff(gaussian: Gaussian, alpha: Floats) -> tuple[Floats, Floats]:
    """Enclosure of `Φ(Φ⁻¹(1-α) - mu)` for `0 < α < 1`."""
    mu, off = float(np.sqrt(gaussian.variance)), gaussian.variance_error + 4.0 * U
    # From a half on, `1 - α` is exact.
    low, high = _quantile(alpha, 1.0 - alpha, 0.0)
    slack = off * mu + 2.0 * U * (mu + np.abs(low) + np.abs(high))
    least, _ = _tail_bounds(mu - low + slack)
    _, most = _tail_bounds(mu - high - slack)
    return least, most


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
    low_p, high_p = _quantile(p_low, p_high, wrong)
    low_q, high_q = _quantile(q_high, q_low, wrong)
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


def _quantile(mass: Floats, rest: Floats, wrong: float) -> tuple[Floats, Floats]:
    """Bounds of `-Φ⁻¹(mass)`, from mass and its complement, each of that relative error."""
    small = mass <= rest
    low, high = _upper_quantile(np.minimum(mass, rest), wrong)
    return np.where(small, low, -high), np.where(small, high, -low)


def _upper_quantile(mass: Floats, wrong: float) -> tuple[Floats, Floats]:
    """Bounds of the `y` with `1 - Φ(y) = mass`, for masses up to about a half."""
    from scipy.special import ndtri

    near = np.maximum(-ndtri(np.clip(mass, 1e-300, 0.5)), 0.0)
    # d ln(1 - Φ) / dy = -1/R, at least max(y, 0.79) in size.
    step = (wrong + 1e-13 + 1e-15 * near * near) * mills_ratio(near) * 2.0 + 1e-15 * near
    low, high = near - step, near + step
    for _ in range(60):
        bad = ~_tail_at_least(low, mass * (1.0 + wrong))
        low = np.where(bad, low - step, low)
        worse = ~_tail_at_most(high, mass * (1.0 - wrong))
        high = np.where(worse, high + step, high)
        if not (bad.any() or worse.any()):
            return low, high
        step = 2.0 * step
    return np.where(bad, -np.inf, low), np.where(worse, np.inf, high)


def _tail(y: Floats) -> tuple[Floats, Floats]:
    """`1 - Φ(y)` for `y >= -0.3` or so, and its relative error."""
    at = np.maximum(y, -0.4)
    return normal_density(at) * mills_ratio(at), (EXP_ULPS + MILLS_ULPS + 8.0 + 2.0 * at * at) * U


def _tail_bounds(y: Floats) -> tuple[Floats, Floats]:
    """Enclosure of `1 - Φ(y)` for every `y`."""
    value, error = _tail(np.minimum(np.abs(y), 1e4))
    low = np.where(value > 4.0 * TINY, value * (1.0 - error), 0.0)
    high = value * (1.0 + error) + 4.0 * TINY
    right = y >= 0.0
    low, high = np.where(right, low, 1.0 - high - U), np.where(right, high, 1.0 - low + U)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def _tail_at_least(y: Floats, level: Floats) -> NDArray[np.bool_]:
    value, error = _tail(y)
    return np.asarray((value * (1.0 - error) >= level) | (y < -0.4))


def _tail_at_most(y: Floats, level: Floats) -> NDArray[np.bool_]:
    value, error = _tail(y)
    return np.asarray((value * (1.0 + error) <= level) & (y >= -0.4))
