"""The best `(eps, delta)` that one Rényi order can promise, for the any-order rule.

By data processing only two outcomes matter: `D_α(P‖Q) <= rho` and `h(e^eps) >= delta` are possible
together exactly if they are for a pair of coins `(p, q)` with `p - e^eps q = delta`. So the most
that an order may spend is

    rho* = min_q ln F(q) / (α-1),    F(q) = p^α q^{1-α} + (1-p)^α (1-q)^{1-α},  p = delta + e^eps q,

and anything below it implies `(eps, delta)`-DP. It is more than the conversion of Canonne, Kamath
and Steinke allows, which bounds the first term alone. `F` is convex (a perspective, along a line),
so with `F'(a) <= 0 <= F'(b)`, or `b` where `p = 1`, the minimum is at least
`F(a) + F'(a) (b - a)`. Decimals of fifty digits; the 1e-30th part of each term is taken off.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

_PRECISION = 50
_KEPT = 20
_SLACK = Decimal("1e-30")
_BRACKET = Decimal("1e-12")
"""The relative width of the interval that holds the minimum."""


@lru_cache(maxsize=64)
def optimal_renyi_budget(alpha: Fraction, eps: Fraction, delta: Fraction) -> Fraction:
    """`rho*` from below: `D_α <= rho` implies `(eps, delta)`-DP for every `rho` up to it."""
    with localcontext() as context:
        context.prec = _PRECISION
        a, e, d = (Decimal(v.numerator) / Decimal(v.denominator) for v in (alpha, eps, delta))
        slope = e.exp()
        # Right of `high` F rises, or p would exceed 1; left of `low` it falls.
        low, high = d / slope, (1 - d) / slope
        while _curve(a, slope, d, low)[1] > 0:
            low /= 2
        while high - low > _BRACKET * high:
            middle = (low * high).sqrt() if high > 2 * low else (low + high) / 2
            falls = _curve(a, slope, d, middle)[1] <= 0
            low, high = (middle, high) if falls else (low, middle)
        value, falling = _curve(a, slope, d, low)
        least = value * (1 - _SLACK) + falling * (high - low) * (1 + _SLACK)
        rho = least.ln() / (a - 1)
        rho -= (abs(rho) + 1 / (a - 1)) * _SLACK
    if rho <= 0:
        return Fraction(0)
    return Fraction(Context(prec=_KEPT, rounding=ROUND_FLOOR).create_decimal(rho))


def _curve(a: Decimal, slope: Decimal, delta: Decimal, q: Decimal) -> tuple[Decimal, Decimal]:
    """`F(q)` and `F'(q)`."""
    p = delta + slope * q
    up, down = p / q, (1 - p) / (1 - q)
    value = q * up**a + (1 - q) * down**a
    by_p = a * (up ** (a - 1) - down ** (a - 1))
    by_q = (1 - a) * (up**a - down**a)
    return value, by_p * slope + by_q
