"""High precision for comparisons of finite PLDs that floats leave open.

Randomized response has irrational masses `1/(1 + e^-eps)` but rational losses; atoms have
rational masses. Here their compositions are written out in decimal arithmetic with many
digits (`decimal`, correctly rounded `exp`), every sum of positive terms with relative error
below `10^-(digits - 20)`, and the finite check of `compare.py` is repeated. Exact ties at the
ends of the supports are settled in rationals first; other exact ties stay UNDECIDED.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from residua.bounds import Verdict
from residua.pld.families.atoms import Atoms
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.order.domination import Domination, Witness
from residua.pld.support.small_support import size
from residua.pld.support.support_ends import ends_within, survival
from residua.work_limit import work

if TYPE_CHECKING:
    from residua.pld.pld import Pld

_LIMIT = 1 << 9
_DIGITS = (50, 120)


def dominated_precisely(low: Pld, high: Pld) -> Domination:
    """Repeat the kink check in decimals, with more digits if need be."""
    for pld in (low, high):
        if pld.gaussian is not None or any(f.atom_count is None for f in pld.terms):
            return Domination(Verdict.UNDECIDED)
        if size(pld.terms.items()) > _LIMIT:  # type: ignore[arg-type]
            return Domination(Verdict.UNDECIDED)
    kept_low, kept_high = survival(low.terms), survival(high.terms)
    if kept_low is None or kept_high is None:
        return Domination(Verdict.UNDECIDED)
    tops = (ends_within(low, high), ends_within(low.reverse(), high.reverse()))
    for digits in _DIGITS:
        with localcontext(Context(prec=digits)):
            a, b = _written_out(low), _written_out(high)
            open_ends = False
            a_inf, b_inf = _decimal(1 - kept_low), _decimal(1 - kept_high)
            tiny = Decimal(10) ** (20 - digits)
            work(100.0 * len(b) * (len(a) + len(b)))
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


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _written_out(pld: Pld) -> list[tuple[Decimal, Decimal]]:
    work(200.0 * size(pld.terms.items()))  # type: ignore[arg-type]
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
