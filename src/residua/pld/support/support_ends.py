"""The ends of curves: the largest finite loss and the mass at infinity, compared exactly.

Curves that touch often touch at the end of a support, where floats cannot tell; the
parameters there are rationals, so rationals decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from residua.bounds import float_down, float_up
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor, Rational
from residua.pld.families.gaussian_mixture import GaussianMixture

if TYPE_CHECKING:
    from residua.pld.pld import Pld


_MOST_BITS = 100_000
"""Exact products of masses longer than this are not worked out."""


def ends_within(a: Pld, b: Pld) -> bool:
    """Whether `a` ends where `b` does: its largest finite loss and its mass at infinity."""
    return largest_loss_within(a, b) and mass_at_infinity_within(a, b)


def mass_at_infinity_within(a: Pld, b: Pld) -> bool:
    """Whether the mass at infinity of `a` is proven at most that of `b`."""
    low, high = a.mass_at_infinity_bounds, b.mass_at_infinity_bounds
    if low.hi <= high.lo:
        return True
    mine = {f: n for f, n in a.terms.items() if f.mass_at_infinity > 0}
    theirs = {f: n for f, n in b.terms.items() if f.mass_at_infinity > 0}
    if low.lo > high.hi:
        return False
    kept_a, kept_b = survival(mine), survival(theirs)
    return kept_a is not None and kept_b is not None and kept_a >= kept_b


def mass_at_infinity_at_most(pld: Pld, level: Fraction) -> bool:
    """Whether the mass at infinity is proven at most `level`, in rationals if they are short."""
    if Fraction(float(pld.mass_at_infinity_bounds.hi)) <= level:
        return True
    kept = survival(pld.terms)
    return kept is not None and 1 - kept <= level


def survival(terms: Mapping[Factor, int]) -> Fraction | None:
    """The mass on finite losses, exactly, unless that is too long to work out."""
    lossy = [(f.mass_at_infinity, n) for f, n in terms.items() if f.mass_at_infinity > 0]
    if sum(n * m.denominator.bit_length() for m, n in lossy) > _MOST_BITS:
        return None
    kept = Fraction(1)
    for mass, n in lossy:
        kept *= (1 - mass) ** n
    return kept


def largest_loss_within(a: Pld, b: Pld) -> bool:
    """Whether the largest finite loss of `a` is proven at most that of `b`."""
    if b._evaluator._top == math.inf:
        return True
    sign = _compared(a, b)
    return sign is not None and sign <= 0


def largest_loss_exceeds(a: Pld, b: Pld) -> bool:
    """Whether the largest finite loss of `a` is proven larger than that of `b`."""
    if b._evaluator._top == math.inf:
        return False
    sign = _compared(a, b)
    return sign is not None and sign > 0


def _compared(a: Pld, b: Pld) -> int | None:
    """The sign of the difference of the largest finite losses, that of `b` finite, if known."""
    if a._evaluator._top == math.inf:
        return 1
    exact_a = sum((n * f.top for f, n in a.terms.items() if isinstance(f, Rational)), Fraction(0))
    exact_b = sum((n * f.top for f, n in b.terms.items() if isinstance(f, Rational)), Fraction(0))
    rest_a: dict[Factor, int] = {f: n for f, n in a.terms.items() if not isinstance(f, Rational)}
    rest_b: dict[Factor, int] = {f: n for f, n in b.terms.items() if not isinstance(f, Rational)}
    if rest_a == rest_b:
        return _sign(exact_a - exact_b)
    if exact_a == exact_b and sum(rest_a.values()) + sum(rest_b.values()) < 200:
        ratio_a, ratio_b = _top_ratio(rest_a), _top_ratio(rest_b)
        if ratio_a is not None and ratio_b is not None:
            return _sign(ratio_a - ratio_b)
    mine, theirs = largest_loss_bounds(a), largest_loss_bounds(b)
    if mine[1] <= theirs[0]:
        return -1
    return 1 if mine[0] > theirs[1] else None


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def largest_loss_bounds(pld: Pld) -> tuple[float, float]:
    """Enclosure of the largest finite loss, in floats."""
    top = pld._evaluator._top
    if top == float("inf"):
        return top, top
    if len(pld.terms) <= 16 and all(isinstance(f, Rational) for f in pld.terms):
        exact = sum(
            (n * f.top for f, n in pld.terms.items() if isinstance(f, Rational)), Fraction(0)
        )
        return float_down(exact), float_up(exact)
    size = slack = 0.0
    for f, n in pld.terms.items():
        if isinstance(f, Atoms):
            size, slack = size + n * _reach(f), slack + 2.0 * n * f.loss_error
        elif isinstance(f, GaussianMixture):
            low, high = f.top_bounds
            size, slack = size + n * abs(high), slack + n * (high - low)
        else:
            size += n * f.eps
    return top - slack - (2.0 * len(pld.terms) + 64.0) * U * size, top


def _reach(factor: Atoms) -> float:
    return max(abs(float(factor.z[0])), abs(float(factor.z[-1]))) if factor.z.size else 0.0


def _top_ratio(terms: Mapping[Factor, int]) -> Fraction | None:
    """`e` to the largest loss of atoms and bounded mixtures; None with others."""
    ratio = Fraction(1)
    for factor, n in terms.items():
        if isinstance(factor, Atoms):
            ratio *= factor.exact.kink(len(factor.exact) - 1) ** n
        elif isinstance(factor, GaussianMixture) and factor.top_ratio is not None:
            ratio *= factor.top_ratio**n
        else:
            return None
    return ratio
