"""The residue from its definition, in ball arithmetic: `h_{L ⊕ G_m}(e^t) - h_{G_mu}(e^t)`.

Nothing here imports the library, and nothing is shared with it: curves are the textbook
differences of normal distribution functions, with enough bits for their cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, ctx, fmpq

Pair = tuple[Fraction, Fraction]

BITS = 400


def ball(value: object) -> arb:
    """An exact number as a ball."""
    exact = Fraction(value)  # type: ignore[arg-type]
    return arb(fmpq(exact.numerator, exact.denominator))


def normal_cdf(y: arb) -> arb:
    return (-y / arb(2).sqrt()).erfc() / 2


def gaussian(variance: arb, t: arb) -> arb:
    """`h` of a Gaussian loss at `e^t`: `Φ(a) - e^t Φ(a - m)`."""
    m = variance.sqrt()
    a = m / 2 - t / m
    return normal_cdf(a) - t.exp() * normal_cdf(a - m)


class Check:
    """One query, given as exact pairs `(p, q)`, under one budget `mu²`."""

    def __init__(self, pairs: Sequence[Pair], v: Fraction):
        self.pairs = pairs
        self.v = v

    def gap(self, c: Fraction, t: float) -> arb:
        """`h_{L ⊕ G_m} - h_{G_mu}` at `e^t`, relative to the second (or to `e^t` times the
        reversed one left of 0)."""
        ctx.prec = BITS + int(12 * abs(t) * (1 + abs(t) / float(self.v)))
        at = ball(Fraction(t))
        m2, v = ball(self.v - c), ball(self.v)
        total = arb(0)
        for p, q in self.pairs:
            total += ball(p) * gaussian(m2, at - (ball(p) / ball(q)).log())
        mine = gaussian(v, at)
        scale = mine if t >= 0 else mine - 1 + at.exp()
        return (total - mine) / scale

    def largest(self, c: Fraction, grid: Sequence[float]) -> tuple[float, float]:
        """The largest gap on a grid, refined around its best point, and where."""
        best = max(grid, key=lambda t: float(self.gap(c, t).mid()))
        step = max(abs(b - a) for a, b in pairwise(grid))
        for _ in range(40):
            around = [best + step * k / 2 for k in (-2, -1, 0, 1, 2)]
            best = max(around, key=lambda t: float(self.gap(c, t).mid()))
            step /= 2
        return float(self.gap(c, best).mid()), best
