"""Normal quantiles with proven bounds, and by them the tradeoff curve of a Gaussian.

The tradeoff curve of `G_nu` is `τ(α) = Φ(Φ⁻¹(1-α) - nu)`. Quantiles come from
`scipy.special.ndtri` and are then proven with the Mills ratio, whose error is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    MILLS_ULPS,
    TINY,
    U,
    mills_ratio,
    normal_density,
)
from residua.pld.families.gaussian import Gaussian
from residua.work_limit import work


def gaussian_tradeoff(gaussian: Gaussian, alpha: Floats) -> tuple[Floats, Floats]:
    """Enclosure of `Φ(Φ⁻¹(1-α) - mu)` for `0 < α < 1`."""
    mu, off = float(np.sqrt(gaussian.variance)), gaussian.variance_error + 4.0 * U
    # From a half on, `1 - α` is exact.
    low, high = quantile_bounds(alpha, 1.0 - alpha, 0.0)
    slack = off * mu + 2.0 * U * (mu + np.abs(low) + np.abs(high))
    least, _ = _tail_bounds(mu - low + slack)
    _, most = _tail_bounds(mu - high - slack)
    return least, most


def quantile_bounds(mass: Floats, rest: Floats, wrong: float) -> tuple[Floats, Floats]:
    """Bounds of `-Φ⁻¹(mass)`, from mass and its complement, each of that relative error."""
    small = mass <= rest
    low, high = _upperquantile_bounds(np.minimum(mass, rest), wrong)
    return np.where(small, low, -high), np.where(small, high, -low)


def _upperquantile_bounds(mass: Floats, wrong: float) -> tuple[Floats, Floats]:
    """Bounds of the `y` with `1 - Φ(y) = mass`, for masses up to about a half."""
    from scipy.special import ndtri

    near = np.maximum(-ndtri(np.clip(mass, 1e-300, 0.5)), 0.0)
    # d ln(1 - Φ) / dy = -1/R, at least max(y, 0.79) in size.
    step = (wrong + 1e-13 + 1e-15 * near * near) * mills_ratio(near) * 2.0 + 1e-15 * near
    low, high = near - step, near + step
    for _ in range(60):
        work(50.0 * mass.size)
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
