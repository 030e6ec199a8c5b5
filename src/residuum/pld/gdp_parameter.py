"""The GDP parameter of a loss: the least `nu` with `L ⪯ G_nu`.

The tradeoff curve of `G_nu` is `τ(α) = Φ(Φ⁻¹(1-α) - nu)`, so `L ⪯ G_nu` iff

    nu >= -Φ⁻¹(P(Z <= z)) - Φ⁻¹(Q(Z > z))      for every z,

and for a finite `L` the vertices of its tradeoff curve are enough: between them the curve is
straight and that of `G_nu` convex. Quantiles come from `scipy.special.ndtri` and are then proven with
the Mills ratio, whose error is known.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from residuum.bounds import Floats, Interval
from residuum.pld.finite_residue import finite_excess
from residuum.pld.randomized_response import RandomizedResponse
from residuum.pld.bounded_range import BoundedRange
from residuum.pld.laplace import Laplace
from residuum.pld.residue_at_zero import fits, height, parameters
from residuum.pld.special import EXP_ULPS, MILLS_ULPS, U, mills_ratio, normal_density
from residuum.pld.value import Pld, query

_CACHED = 1 << 10


def gdp_parameter(L: Pld) -> float:
    """The least `nu` with `L ⪯ G_nu`, rounded up; inf if there is none."""
    return float(gdp_parameter_bounds(L).hi)


def gdp_parameter_bounds(L: Pld) -> Interval:
    """Proven interval for `gdp_parameter(L)`."""
    return _bounds(query("L", L))


@lru_cache(maxsize=_CACHED)
def _bounds(L: Pld) -> Interval:
    raise NotImplementedError


def is_below_gaussian(L: Pld, v: float) -> bool:
    """Whether `L ⪯ G_√v` is proven."""
    return finite_parameter(L)[1] <= math.sqrt(v) * (1.0 - 2.0 * U)


@lru_cache(maxsize=_CACHED)
def finite_parameter(L: Pld) -> tuple[float, float]:
    """Bounds of the parameter of a finite PLD without mass at infinity."""
    excess = finite_excess(L)
    if excess is None:
        return 0.0, math.inf
    half = np.exp(0.5 * excess.losses)
    p, q = excess.weights * half, excess.weights / half
    wrong = excess.weight_error + 0.5 * excess.loss_error + (EXP_ULPS + 2.0 + p.size) * U
    # The smaller of both tails of each law has the digits.
    p_low, q_high = np.cumsum(p)[:-1], np.cumsum(q[::-1])[-2::-1]
    p_high, q_low = np.cumsum(p[::-1])[-2::-1], np.cumsum(q)[:-1]
    low_p, high_p = _quantile(p_low, p_high, wrong)
    low_q, high_q = _quantile(q_high, q_low, wrong)
    return max(float(np.max(low_p + low_q)), 0.0), float(np.max(high_p + high_q)) * (1.0 + 4.0 * U)


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


def _tail_at_least(y: Floats, level: Floats) -> NDArray[np.bool_]:
    value, error = _tail(y)
    return np.asarray((value * (1.0 - error) >= level) | (y < -0.4))


def _tail_at_most(y: Floats, level: Floats) -> NDArray[np.bool_]:
    value, error = _tail(y)
    return np.asarray((value * (1.0 + error) <= level) & (y >= -0.4))
