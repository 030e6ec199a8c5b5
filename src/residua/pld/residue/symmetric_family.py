"""Randomized response, Laplace and bounded range as one family: `w R_e + (1-w) B_e`.

All three are symmetric (`bounded_range.py`), with a tilted law `e^{-z/2} L(dz)` that is constant
between atoms at `±e`. What `single_contact.py` needs of them, in plain floating point; the excess
`e_L(t) = e^{-t/2} h_L(e^t)` for `t >= 0` is explained in `excess.py`.

A guess, uncertified, at the cost that `single_contact.py` proves: its equation in error
functions.

With `∫ e^{-at - t²/2m²} dt` over `(0, e)` both sides of `A = B` at `x = 1` are in closed form: as
`e_L` is a combination of `e^{-t/2}`, 1 and `e^{t/2}`, all are error functions. These cancel where
the loss is small beside `m`, by about `(m/e)²`, and where `m` is large; that costs digits of a
start and nothing else. Newton's method begins at the Rényi bound `-8 ln Σ √(pq)`, which is below
the cost and close to it.
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


_LARGEST = 64.0
"""Of `v`: beyond, the error functions are too close to 1."""
_LEAST = 1e-9
"""Of `c/v`: below, they have too few digits left, and the Rényi bound has as many."""
_STEPS = 12
_SETTLED = 1e-6
"""Relative: the next step would be about the square of this one."""
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


def about(law: CentralLaw, v: float) -> float:
    """A cost to start from, in `(0, v)`."""
    start = c = min(_renyi(law), 0.9 * v)
    if not (v <= _LARGEST and start > _LEAST * v):
        return start
    e, response, flat = law.eps, law.response, law.flat
    erf, exp = math.erf, math.exp
    whole, edge, fall = erf(math.sqrt(0.125 * v)), e * _ROOT_HALF, exp(-0.5 * e)
    twice, least = fall * fall, -math.expm1(-e)
    for _ in range(_STEPS):
        m2 = v - c
        m = math.sqrt(m2)
        end, half, rise = edge / m, 0.5 * _ROOT_HALF * m, exp(0.125 * m2)
        middle, level = erf(half), fall * erf(end)
        falling = rise * (erf(end + half) - middle)
        ends, spread = fall * exp(-end * end), 2.0 * _ROOT_HALF_PI * m * level
        # `A - B` over `m √(π/2)`, and the density.
        gap = -2.0 * rise * (whole - middle)
        if law.is_laplace:
            gap += 2.0 * (falling - level)
            weight = ends + 0.25 * spread
        else:
            growing = twice * rise * (erf(end - half) + middle)
            gap += 2.0 * response * (falling - growing) / (1.0 + twice)
            gap += 2.0 * flat * (falling - 2.0 * level + growing) / least
            weight = response * 2.0 * ends / (1.0 + twice) + flat * 0.5 * spread / least
        if weight <= 0.0:
            return start
        move = 2.0 * _ROOT_HALF_PI * m * gap / weight
        new = c + move
        if not start <= new < v:
            # Lost digits, or far from it.
            new = 0.5 * (c + (v if move > 0.0 else start))
        c, last = new, abs(new - c)
        if last <= _SETTLED * c:
            break
    return c


def _renyi(law: CentralLaw) -> float:
    """`-8 ln Σ √(pq)`, about."""
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
