"""Randomized response, Laplace and bounded range as one family: `w R_e + (1-w) B_e`.

All three are symmetric (`bounded_range.py`), with a tilted law `e^{-z/2} L(dz)` that is constant
between atoms at `±e`. What `single_contact.py` needs of them, in plain floating point; the excess
`e_L(t) = e^{-t/2} h_L(e^t)` for `t >= 0` is explained in `excess.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from residua.bounds import quotient_up
from residua.pld.families.bounded_range import BoundedRange
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse

Central = RandomizedResponse | Laplace | BoundedRange
CENTRAL = (RandomizedResponse, Laplace, BoundedRange)
"""Factors whose only contact is at `x = 1`."""

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


class CentralLaw(NamedTuple):
    """Largest loss, weights of `R_e` and `B_e`, and whether these stand for Laplace noise."""

    eps: float
    response: float
    flat: float
    is_laplace: bool


def parameters(factor: Central) -> CentralLaw | None:
    """The law in floats, rounded up; None with mass at infinity."""
    if isinstance(factor, RandomizedResponse):
        return None if factor.delta > 0.0 else CentralLaw(factor.eps, 1.0, 0.0, False)
    if isinstance(factor, Laplace):
        return CentralLaw(quotient_up(factor.sensitivity, factor.scale), 0.0, 0.0, True)
    return CentralLaw(factor.eps, factor.atomic, 1.0 - factor.atomic, False)


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


def lack(law: CentralLaw, t: float) -> float:
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


def density(law: CentralLaw, m2: float) -> float:
    """The tilted law against `e^{-z²/2m²}`."""
    m, e = math.sqrt(m2), law.eps
    spread = m * _ROOT_TWO_PI * math.erf(e / (m * math.sqrt(2.0)))
    ends = math.exp(-0.5 * e - 0.5 * e * e / m2)
    if law.is_laplace:
        return ends + 0.25 * math.exp(-0.5 * e) * spread
    flat = 0.5 * spread * math.exp(-0.5 * e) / -math.expm1(-e) if law.flat else 0.0
    return law.response * 2.0 * ends / (1.0 + math.exp(-e)) + law.flat * flat
