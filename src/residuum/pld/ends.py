"""Where curves end: the largest finite loss and the mass at infinity, compared exactly.

Curves that touch often touch at the end of a support, where floats cannot tell; the
parameters there are rationals, so rationals decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from residuum.bounds import float_down, float_up
from residuum.pld.atoms import Atoms
from residuum.pld.contour import Factor
from residuum.pld.special import U

if TYPE_CHECKING:
    from residuum.pld.value import Pld


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
    if a.gaussian is not None:
        return b.gaussian is not None
    if b.gaussian is not None:
        return True
    exact_a = sum((n * f.top for f, n in a.terms.items() if type(f) is not Atoms), Fraction(0))
    exact_b = sum((n * f.top for f, n in b.terms.items() if type(f) is not Atoms), Fraction(0))
    atoms_a = {f: n for f, n in a.terms.items() if type(f) is Atoms}
    atoms_b = {f: n for f, n in b.terms.items() if type(f) is Atoms}
    if atoms_a == atoms_b:
        return exact_a <= exact_b
    if exact_a == exact_b and sum(atoms_a.values()) + sum(atoms_b.values()) < 200:
        return _top_ratio(atoms_a) <= _top_ratio(atoms_b)
    return largest_loss_bounds(a)[1] <= largest_loss_bounds(b)[0]


def largest_loss_bounds(pld: Pld) -> tuple[float, float]:
    """Enclosure of the largest finite loss, in floats."""
    top = pld._evaluator._top
    if top == float("inf"):
        return top, top
    if len(pld.terms) <= 16 and not any(isinstance(f, Atoms) for f in pld.terms):
        exact = sum((n * Fraction(f.top) for f, n in pld.terms.items()), Fraction(0))
        return float_down(exact), float_up(exact)
    size = sum(n * (_reach(f) if isinstance(f, Atoms) else f.eps) for f, n in pld.terms.items())
    slack = sum(2.0 * n * f.loss_error for f, n in pld.terms.items() if isinstance(f, Atoms))
    return top - slack - (2.0 * len(pld.terms) + 64.0) * U * size, top


def _reach(factor: Atoms) -> float:
    return max(abs(float(factor.z[0])), abs(float(factor.z[-1]))) if factor.z.size else 0.0


def _top_ratio(terms: dict[Atoms, int]) -> Fraction:
    ratio = Fraction(1)
    for factor, n in terms.items():
        ratio *= factor.exact.kink(len(factor.exact) - 1) ** n
    return ratio
