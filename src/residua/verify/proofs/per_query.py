"""The residue condition of a composition, query by query.

If `G_m ⊕ L ⪯ G_√(m²+c)` then adding `G_s` on both sides shows the same with `m² + s²`: what a query
costs at the least budget of several it costs at most at all of them. So for `L = ⊕ n_i L_i` it is
enough to walk up from `m²`, proving each `L_i` once (or once a block of equal ones) at the level
reached, and to find that all costs together are no more than what was taken. That is not tight, and
a failure shows nothing; it is close where each query is small beside the budget.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from flint import arb

from residua.verify.arithmetic.balls import ball, bits, density, near, rational
from residua.verify.arithmetic.work_limit import work
from residua.verify.losses.factors import Factor, Loss, sure
from residua.verify.losses.laws import gaussian_rise
from residua.verify.proofs.residue import prove_residue
from residua.verify.proofs.verdict import Proof, proven, undecided

_BITS = 192
_NEWTON = 12
_BLOCKS = (1, 32)
_NO = undecided("not shown query by query")


def query_by_query(loss: Loss, m2: Fraction, v: Fraction) -> Proof:
    """`G_m ⊕ L ⪯ G_√v` for bounded symmetric factors, or undecided."""
    fits = m2 > 0 and not loss.variance and not loss.stated
    if not fits or not all(f.symmetric and not f.unbounded for f, _ in loss.factors):
        return _NO
    for blocks in _BLOCKS:
        if blocks > 1 and all(n == 1 for _, n in loss.factors):
            break
        found = _walk(loss, m2, v, blocks)
        if found is not None:
            return _proved(found, m2, v)
    return _NO


Costs = list[tuple[Factor, int, Fraction]]


def _walk(loss: Loss, m2: Fraction, v: Fraction, blocks: int) -> Costs | None:
    """The approximate cost of each, going up from `m²`; None if that is too much."""
    level, found = m2, []
    # Large ones first: they lose most where little is left, so they go last, at the top.
    order = sorted(loss.factors, key=lambda each: _size(each[0]))
    for factor, n in order:
        block = -(-n // blocks)
        while n:
            count = min(block, n)
            cost = _cost(factor, level)
            if cost is None or level + count * cost > v:
                return None
            found.append((factor, count, cost))
            level += count * cost
            n -= count
    return found


def _size(factor: Factor) -> float:
    with bits(64):
        law = factor.law()
        return 0.0 if law is None else near(law.top)


def _cost(factor: Factor, level: Fraction) -> Fraction | None:
    """Where the curves meet at `x = 1`, slightly above: a guess, to be proven."""
    with bits(_BITS):
        law = factor.law()
        if law is None or not (law.p_inf.is_zero() and law.q_inf.is_zero()):
            return None
        m2 = ball(level)
        m = m2.sqrt()
        needed = law.rise(arb(0), m)[0]
        cost = needed * 2 * m / density(m / 2)
        for _ in range(_NEWTON):
            work(64)
            mu = (m2 + cost).sqrt()
            step = (gaussian_rise(arb(0), m, mu)[0] - needed) * 2 * mu / density(mu / 2)
            cost = arb((cost - step).mid())
            if not (cost > 0 and step.is_finite()):
                return None
            if abs(near(step)) < 1e-20 * near(cost):
                break
        return rational(cost * (1 + arb(2) ** -48))


def _proved(costs: Costs, m2: Fraction, v: Fraction) -> Proof:
    """All of what was taken is given out: each gets a little more than it needs."""
    needed = sum((n * cost for _, n, cost in costs), Fraction(0))
    # A float below, for short fractions.
    share = Fraction(float((v - m2) / needed)) * (1 - Fraction(1, 1 << 50))
    share = max(share, Fraction(1))
    level = m2
    for factor, count, cost in costs:
        part = cost * share
        found = prove_residue(partial(sure, factor), level, level + part)
        if found.verdict != "proven":
            return _NO
        level += count * part
    if level > v:
        return _NO
    return proven(f"residue condition on all x > 0, query by query, {len(costs)} of them")
