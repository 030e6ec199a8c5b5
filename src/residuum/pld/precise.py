"""High precision for what floats leave open between finite PLDs.

Randomized response has irrational masses `1/(1 + e^-eps)` but rational losses; atoms have
rational masses. Here their compositions are written out in decimal arithmetic with many
digits (`decimal`, correctly rounded `exp`), every sum of positive terms with relative error
below `10^-(digits - 20)`, and the finite check of `order.py` is repeated. Exact ties at the
ends of the supports are settled in rationals first; other exact ties stay UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from residuum.bounds import Verdict, float_down, float_up
from residuum.pld.atoms import Atoms
from residuum.pld.contour import Factor
from residuum.pld.randomized_response import RandomizedResponse
from residuum.pld.special import U
from residuum.pld.table import size

if TYPE_CHECKING:
    from residuum.pld.order import Domination
    from residuum.pld.value import Pld

_LIMIT = 1 << 9
_DIGITS = (50, 120)


def mass_at_infinity_within(a: Pld, b: Pld) -> bool:
    """Whether the mass at infinity of `a` is proven at most that of `b`."""
    low, high = a.mass_at_infinity_bounds, b.mass_at_infinity_bounds
    if low.hi <= high.lo:
        return True
    mine = {f: n for f, n in a.terms.items() if f.mass_at_infinity > 0}
    theirs = {f: n for f, n in b.terms.items() if f.mass_at_infinity > 0}
    return _survival(mine) >= _survival(theirs) if sum(mine.values()) < 200 else False


def mass_at_infinity_at_most(pld: Pld, level: Fraction) -> bool:
    """Whether the mass at infinity is proven at most `level`, in rationals if they are short."""
    if Fraction(float(pld.mass_at_infinity_bounds.hi)) <= level:
        return True
    parts = {f: n for f, n in pld.terms.items() if f.mass_at_infinity > 0}
    return sum(parts.values()) < 200 and 1 - _survival(parts) <= level


def _survival(terms: Mapping[Factor, int]) -> Fraction:
    kept = Fraction(1)
    for factor, n in terms.items():
        kept *= (1 - factor.mass_at_infinity) ** n
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


def dominated_precisely(low: Pld, high: Pld) -> Domination:
    """Repeat the kink check in decimals, with more digits if need be."""
    from residuum.pld.order import Domination, Witness

    for pld in (low, high):
        if pld.gaussian is not None or any(f.atom_count is None for f in pld.terms):
            return Domination(Verdict.UNDECIDED)
        if size(pld.terms.items()) > _LIMIT:  # type: ignore[arg-type]
            return Domination(Verdict.UNDECIDED)
    tops = (_ends(low, high), _ends(low.reverse(), high.reverse()))
    for digits in _DIGITS:
        with localcontext(Context(prec=digits)):
            a, b = _written_out(low), _written_out(high)
            open_ends = False
            a_inf, b_inf = _infinity(low), _infinity(high)
            tiny = Decimal(10) ** (20 - digits)
            order = sorted(range(len(b)), key=lambda i: b[i][0] / b[i][1])
            for rank, j in enumerate(order):
                x = b[j][0] / b[j][1]
                top = sum((p for p, q in a if p > x * q), a_inf)
                above = sum((q for p, q in a if p > x * q), Decimal(0))
                top_b = sum((b[i][0] for i in order[rank + 1 :]), b_inf)
                above_b = sum((b[i][1] for i in order[rank + 1 :]), Decimal(0))
                gap = (top - top_b) - x * (above - above_b)
                doubt = tiny * (top + top_b + x * (above + above_b) + x)
                if gap > doubt:
                    return Domination(Verdict.NO, Witness(float(x), max(0.0, float(gap - doubt))))
                tied = (rank == len(order) - 1 and tops[0]) or (rank == 0 and tops[1])
                if gap > -doubt and not tied:
                    open_ends = True
            if not open_ends:
                return Domination(Verdict.YES)
    return Domination(Verdict.UNDECIDED)


def _ends(a: Pld, b: Pld) -> bool:
    return largest_loss_within(a, b) and mass_at_infinity_within(a, b)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _infinity(pld: Pld) -> Decimal:
    return _decimal(1 - _survival(pld.terms))


def _written_out(pld: Pld) -> list[tuple[Decimal, Decimal]]:
    out = [(Decimal(1), Decimal(1))]
    for factor, n in pld.terms.items():
        if isinstance(factor, RandomizedResponse):
            grown = _binomial(factor, n)
            out = [(p * a, q * b) for p, q in out for a, b in grown]
        elif isinstance(factor, Atoms):
            exact = factor.exact
            single = [
                (_decimal(Fraction(p, exact.p_den)), _decimal(Fraction(q, exact.q_den)))
                for p, q in zip(exact.p, exact.q, strict=True)
            ]
            for _ in range(n):
                out = [(p * a, q * b) for p, q in out for a, b in single]
    return out


def _binomial(factor: RandomizedResponse, n: int) -> list[tuple[Decimal, Decimal]]:
    e = _decimal(Fraction(factor.eps)).exp()
    kept = 1 - _decimal(Fraction(factor.delta))
    heads, tails = kept * e / (1 + e), kept / (1 + e)
    return [
        (
            comb(n, k) * heads**k * tails ** (n - k),
            comb(n, k) * tails**k * heads ** (n - k),
        )
        for k in range(n + 1)
    ]
