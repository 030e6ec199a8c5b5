"""Randomized response, Laplace and bounded range as one family, each by two weights.

All three are symmetric (`families/symmetric.py`): mass `a` at `e`, `a e^-e` at `-e`, and density
`b e^{(z-e)/2} / 2` between, so the tilted law `e^{-z/2} L(dz)` is constant between atoms at `±e`.
The masses add up: `a (1 + q) + b (1 - q) = 1` with `q = e^-e`. What `single_contact.py` needs of
them, in plain floating point; the excess `e_L(t) = e^{-t/2} h_L(e^t)` for `t >= 0` is explained in
`excess.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from residua.pld.arithmetic.ulp_bounds import SQRT_TWO_PI
from residua.pld.families.symmetric import SymmetricLoss
from residua.pld.pld import Pld


class CentralLaw(NamedTuple):
    """Largest loss and the two weights."""

    eps: float
    a: float
    b: float


@lru_cache(maxsize=1 << 12)
def central_law(loss: Pld) -> CentralLaw | None:
    """The law of one of these, its largest loss rounded up; None for any other loss."""
    match list(loss.terms.items()):
        case [(SymmetricLoss() as one, 1)] if loss.gaussian is None and not one.mass_at_infinity:
            return CentralLaw(one.eps_above, *one.weights)
    return None


def height(law: CentralLaw) -> tuple[float, float]:
    """`h_L(1) = e_L(0)` and `1 - h_L(1)`, relative errors below 64 u."""
    e, a, b = law
    fall = math.exp(-0.5 * e)
    return excess(law, 0.0, e), 2.0 * (a * math.exp(-e) - b * fall * math.expm1(-0.5 * e))


def excess(law: CentralLaw, t: float, d: float) -> float:
    """`e_L(t)`, `d = e - t`."""
    g = -math.expm1(-0.5 * d)
    return math.exp(-0.5 * t) * g * (2.0 * law.a + (law.b - law.a) * g)


def complement(law: CentralLaw, t: float) -> float:
    """`e^{-t/2} - e_L(t)` for `0 <= t <= e`."""
    e, a, b = law
    tilt = math.exp(0.5 * t - e) + math.exp(-0.5 * t - e)
    return (a - b) * tilt + 2.0 * b * math.exp(-0.5 * e)


def tilted(law: CentralLaw) -> tuple[float, float]:
    """The tilted law `e^{-z/2} L(dz)`: its mass at each of `±e`, and its density between."""
    fall = math.exp(-0.5 * law.eps)
    return law.a * fall, 0.5 * law.b * fall


def density(law: CentralLaw, m2: float) -> float:
    """The tilted law against `e^{-z²/2m²}`."""
    (ends, flat), m, e = tilted(law), math.sqrt(m2), law.eps
    spread = m * SQRT_TWO_PI * math.erf(e / (m * math.sqrt(2.0)))
    return 2.0 * ends * math.exp(-0.5 * e * e / m2) + flat * spread


def renyi_cost(law: CentralLaw) -> float:
    """About `-8 ln Σ √(pq)`: below the cost under any budget, and close to it."""
    x, a, b = 0.5 * law.eps, law.a, law.b
    # The affinity is `2 e^-x (a + bx)`, and what it lacks to 1 a sum of positive terms.
    flat = math.sinh(x) / x - 1.0 if x > 1e-2 else x * x / 6.0
    missing = a * math.expm1(-x) ** 2 + 2.0 * b * x * math.exp(-x) * flat
    if missing < 0.9:
        return -8.0 * math.log1p(-missing)
    return 8.0 * (x - math.log(2.0 * (a + b * x)))
