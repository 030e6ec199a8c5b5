"""Exponentials in rationals: closed forms with irrational masses, rounded to a stated side.

`decimal` rounds `exp` correctly; 160 digits, of which 140 are claimed. A randomized response
or a discrete Laplace whose ratio `e^eps` is replaced by a rational at least as large is again
one, with a slightly larger `eps`: it dominates the given one, and no mass appears at infinity.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import lcm
from typing import Literal

from residua.pld.arithmetic.exact import ExactAtoms, canonical

Side = Literal["above", "below"]

_DIGITS = 160
_CLAIMED = Fraction(1, 10**140)
_TILT_DIGITS = 60
"""Many more than a float has: a tie within rounding does not occur."""


def exp_of(exponent: Fraction, side: Side) -> Fraction:
    """A rational at least (`above`) or at most (`below`) `e^exponent`, `|exponent| <= 10^6`."""
    with localcontext(Context(prec=_DIGITS)):
        near = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
    slack = 1 + _CLAIMED if side == "above" else 1 - _CLAIMED
    return Fraction(near) * slack


def tilted(mass: float, loss: float) -> float:
    """`mass e^-loss` to the nearest float: the same on every machine, and for the verifier."""
    with localcontext(Context(prec=_TILT_DIGITS, Emin=-(10**6), Emax=10**6)):
        return float(Decimal(mass) * Decimal(loss).copy_negate().exp())


def fall_of(exponent: Fraction, side: Side) -> Fraction:
    """`1 - e^-exponent` for `exponent >= 0`, rounded to a side with 140 digits."""
    if exponent == 0:
        return Fraction(0)
    small = max(0, exponent.denominator.bit_length() - exponent.numerator.bit_length())
    with localcontext(Context(prec=_DIGITS + small // 3 + 2)):
        near = 1 - (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
    slack = 1 + _CLAIMED if side == "above" else 1 - _CLAIMED
    return min(Fraction(near) * slack, Fraction(1))


def ratio_of(eps: Fraction, side: Side) -> Fraction:
    """`e^eps` for `eps >= 0`, rounded to a side but never below 1."""
    return max(exp_of(eps, side), Fraction(1))


def from_masses(p: list[Fraction], q: list[Fraction]) -> ExactAtoms:
    """The PLD of two lists of rational masses, outcome by outcome; the rest is at `±inf`."""
    p_den = _common(p)
    q_den = _common(q)
    return canonical([int(v * p_den) for v in p], [int(v * q_den) for v in q], p_den, q_den)


def response(eps: Fraction, delta: Fraction, side: Side, categories: int = 2) -> ExactAtoms:
    """Randomized response among `categories`, apart from mass `delta` at infinity."""
    e = ratio_of(eps, side)
    total = e + categories - 1
    kept = 1 - delta
    p = [kept * e / total, kept / total, kept * (categories - 2) / total]
    q = [kept / total, kept * e / total, kept * (categories - 2) / total]
    return from_masses(p, q)


def _common(values: list[Fraction]) -> int:
    return lcm(*(v.denominator for v in values)) if values else 1
