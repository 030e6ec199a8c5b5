"""The worst case over adaptive analysts: of filters that count sizes of losses, and the natural
one.

Queries are symmetric and at most `k`. Sizes are cut at `e_1 < e_2 < …`; `s_i` bounds the sum over
queries of the probability of a loss of size `e_i` or more. Then the interaction lies below
`c_{i-1} - c_i` randomized responses of each size `e_i`, unless there are more than `c_i` draws from
`e_i` upwards (`c_0 = k`, none from the last one upwards). With a total `s` the probability of `n`
draws or more is at most `(1+w)^{-(n-1)} e^{sw} / (ew)` for any `w > 0` (Markov's inequality for one
draw, and `e^{-pw}(1+pw) <= 1` for the others).

**Totals of the natural filter.** What composes to `(eps, delta)`-DP does so when losses of size `e`
or more become `RR_e` and all others nothing. With `H(m)` the height of `m` of these at `e^eps`,
which does not fall, and their number a sum of independent indicators of mean `s`, `E H <= delta`.
So `H(1) (1 - e^-s) <= delta`; and any rising line below `H` on `0..k` is at most `delta` at `s`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from flint import arb

from residua.verify.arithmetic.balls import Ball, ball, bits, exact, near, upper
from residua.verify.losses.factors import Loss, Response, together
from residua.verify.losses.hockey_stick import heights
from residua.verify.proofs.order import within
from residua.verify.proofs.verdict import Proof, proven, undecided

_BITS = 160


def of_size(size: float | Fraction, copies: int) -> Loss:
    """Several equal randomized responses."""
    e = exact(size)
    return Loss(factors=((Response(e, Fraction(0), e, Fraction(0)), copies),)) if copies else Loss()


def keeps(
    sizes: list[float],
    draws: list[int],
    totals: list[Fraction],
    rounds: int,
    eps: float,
    delta: float,
) -> Proof:
    """Whether symmetric queries with these totals stay within `(eps, delta)`, however chosen."""
    allowed = (rounds, *(min(n, rounds) for n in draws), 0)
    copies = [a - b for a, b in pairwise(allowed)]
    if min(copies) < 0:
        return undecided("more draws of a larger size are allowed than of a smaller one")
    failure = totals[-1]
    with bits(_BITS):
        for total, most in zip(totals, draws, strict=False):
            if most < rounds:
                failure += overflow(total, most)
    left = exact(delta) - failure
    if left <= 0:
        return undecided("more draws than allowed for are likely")
    whole = together(of_size(size, n) for n, size in zip(copies, sizes, strict=True))
    found = within(whole, exact(eps), left)
    if found.verdict != "proven":
        return undecided(found.reason)
    return proven(f"all rounds lie within ({eps!r}, {delta!r}) against adaptive analysts")


def overflow(total: Fraction, draws: int) -> Fraction:
    """The probability of more draws than so many, from above."""
    n = draws + 1
    if total >= n:
        return Fraction(1)
    if n == 1 or total == 0:
        return total
    s = float(total)
    gap = n - s
    w = arb((gap + math.sqrt(gap * gap + 4.0 * s)) / (2.0 * s))
    bound = (ball(total) * w - (n - 1) * (1 + w).log() - 1 - w.log()).exp()
    return min(Fraction(1), total, upper(bound))


def largest_total(size: float, eps: Fraction, delta: Fraction, rounds: int) -> Fraction:
    """The most that probabilities of losses of a size or more sum to, if all is `(eps, delta)`."""
    with bits(_BITS):
        known = _heights(size, eps, delta, rounds)
        limit = ball(delta)
        found = Fraction(rounds)
        if len(known) > 1 and known[1] > limit:
            found = min(found, upper(-(1 - limit / known[1]).log()))
        line = _under(known, near(limit), rounds)
        if line is not None:
            start, slope = line
            found = min(found, upper((limit - start) / slope))
        return max(found, Fraction(0))


def _heights(size: float, eps: Fraction, delta: Fraction, rounds: int) -> list[Ball]:
    """`H(0), H(1), …` until it is high: it does not fall afterwards."""
    few = min(int(eps / exact(size)), rounds)
    known = [arb(0)] * (few + 1)
    limit, enough = float(delta), 0.5
    while len(known) <= rounds and near(known[-1]) <= enough:
        sides = heights(of_size(size, len(known)), ball(eps))
        assert sides is not None
        if near(known[-1]) <= limit < near(sides[0]):
            enough = min(enough, limit + rounds * near(sides[0]))
        known.append(sides[0])
    return known


def _under(known: list[Ball], limit: float, rounds: int) -> tuple[Ball, Ball] | None:
    """A line `start + slope m` that lies below all heights, and meets them near `limit`."""
    points = [(m, near(h)) for m, h in enumerate(known)]
    if len(known) <= rounds:
        points.append((rounds, near(known[-1])))
    at = 0
    while points[at][1] <= limit:
        ahead = [((h - points[at][1]) / (m - points[at][0]), j)
                 for j, (m, h) in enumerate(points[at + 1:], at + 1)]  # fmt: skip
        if not ahead:
            return None
        steep, following = min(ahead)
        if points[following][1] > limit:
            break
        at = following
    if not steep > 0.0:
        return None
    slope = arb(steep)
    # What is taken for the start must do at every number of draws.
    start = known[0]
    for m, height in [*enumerate(known), (rounds, known[-1])]:
        start = start.min(height - slope * m)
    return start, slope
