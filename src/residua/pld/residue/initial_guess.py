"""A guess, uncertified, at the cost that `single_contact.py` proves: its equation in error
functions.

With `∫ e^{-at - t²/2m²} dt` over `(0, e)` both sides of `A = B` at `x = 1` are in closed form: as
`e_L` is a combination of `e^{-t/2}`, 1 and `e^{t/2}`, all are error functions. These cancel where
the loss is small beside `m`, by about `(m/e)²`, and where `m` is large; that costs digits of a
start and nothing else. Newton's method begins at the Rényi bound `-8 ln Σ √(pq)`, which is below
the cost and close to it.
"""

from __future__ import annotations

import math

from residua.pld.residue.symmetric_family import CentralLaw

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
        # e^-x (1 + x)
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
