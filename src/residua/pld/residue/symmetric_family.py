"""Randomized response, Laplace and bounded range as one family: `w R_e + (1-w) B_e`.

All three are symmetric (`bounded_range.py`), with a tilted law `e^{-z/2} L(dz)` that is constant
between atoms at `±e`. What `single_contact.py` needs of them, in plain floating point; the excess
`e_L(t) = e^{-t/2} h_L(e^t)` for `t >= 0` is explained in `excess.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from residua.bounds import quotient_up
from residua.pld.arithmetic.ulp_bounds import SQRT_TWO_PI
from residua.pld.families.bounded_range import BoundedRange
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld


class CentralLaw(NamedTuple):
    """Largest loss, weights of `R_e` and `B_e`, and whether these stand for Laplace noise."""

    eps: float
    response: float
    flat: float
    is_laplace: bool


@lru_cache(maxsize=1 << 12)
def central_law(loss: Pld) -> CentralLaw | None:
    """The law of one of these, in floats and rounded up; None for any other loss."""
    match list(loss.terms.items()):
        case [(RandomizedResponse(eps=eps, delta=0.0), 1)] if loss.gaussian is None:
            return CentralLaw(eps, 1.0, 0.0, False)
        case [(Laplace(scale=scale, sensitivity=sensitivity), 1)] if loss.gaussian is None:
            return CentralLaw(quotient_up(sensitivity, scale), 0.0, 0.0, True)
        case [(BoundedRange(eps=eps, atomic=atomic), 1)] if loss.gaussian is None:
            return CentralLaw(eps, atomic, 1.0 - atomic, False)
    return None


def height(law: CentralLaw) -> tuple[float, float]:
    """`h_L(1) = e_L(0)` and `1 - h_L(1)`, relative errors below 64 u."""
    e = law.eps
    if law.is_laplace:
        return -math.expm1(-0.5 * e), math.exp(-0.5 * e)
    lacking = 2.0 * law.response * math.exp(-e) / (1.0 + math.exp(-e))
    lacking += 2.0 * law.flat * math.exp(-0.5 * e) / (1.0 + math.exp(-0.5 * e))
    return excess(law, 0.0, e), lacking


def excess(law: CentralLaw, t: float, d: float) -> float:
    """`e_L(t)`, `d = e - t`."""
    fall = math.exp(-0.5 * t)
    if law.is_laplace:
        return -fall * math.expm1(-0.5 * d)
    value = law.response * -math.expm1(-d) / (1.0 + math.exp(-law.eps))
    if law.flat:
        value += law.flat * math.expm1(-0.5 * d) ** 2 / -math.expm1(-law.eps)
    return fall * value


def complement(law: CentralLaw, t: float) -> float:
    """`e^{-t/2} - e_L(t)` for `0 <= t <= e`."""
    e = law.eps
    if law.is_laplace:
        return math.exp(-0.5 * e)
    # cosh(t/2) 2/(1 + e^e) of R_e, and (1 - e^{-e/2} cosh(t/2)) / sinh(e/2) of B_e.
    tilt = math.exp(0.5 * t - e) + math.exp(-0.5 * t - e)
    value = law.response * tilt / (1.0 + math.exp(-e))
    if law.flat:
        value += law.flat * (2.0 * math.exp(-0.5 * e) - tilt) / -math.expm1(-e)
    return value


def tilted(law: CentralLaw) -> tuple[float, float]:
    """The tilted law `e^{-z/2} L(dz)`: its mass at each of `±e`, and its density between."""
    fall = math.exp(-0.5 * law.eps)
    if law.is_laplace:
        return 0.5 * fall, 0.25 * fall
    flat = 0.5 * law.flat * fall / -math.expm1(-law.eps) if law.flat else 0.0
    return law.response * fall / (1.0 + math.exp(-law.eps)), flat


def density(law: CentralLaw, m2: float) -> float:
    """The tilted law against `e^{-z²/2m²}`."""
    (ends, flat), m, e = tilted(law), math.sqrt(m2), law.eps
    spread = m * SQRT_TWO_PI * math.erf(e / (m * math.sqrt(2.0)))
    return 2.0 * ends * math.exp(-0.5 * e * e / m2) + flat * spread


def renyi_cost(law: CentralLaw) -> float:
    """About `-8 ln Σ √(pq)`: below the cost under any budget, and close to it."""
    x = 0.5 * law.eps
    if law.is_laplace:
        # The affinity is e^-x (1 + x).
        return 8.0 * (x - math.log1p(x) if x > 1e-4 else x * x * (0.5 - x / 3.0))
    fall = math.exp(-2.0 * x)
    atoms = math.expm1(-x) ** 2 / (1.0 + fall)
    missing = law.response * atoms
    if law.flat:
        flat = 1.0 - 2.0 * x * math.exp(-x) / -math.expm1(-2.0 * x) if x > 1e-2 else x * x / 6.0
        missing += law.flat * flat
    if missing < 0.9:
        return -8.0 * math.log1p(-missing)
    # Σ √(pq) = e^-x 2 (w / (1 + e^-2x) + (1-w) x / (1 - e^-2x)): sums of positive terms.
    shared = law.response / (1.0 + fall) + law.flat * x / -math.expm1(-2.0 * x)
    return 8.0 * (x - math.log(2.0 * shared))
