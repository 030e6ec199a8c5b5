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
    exact = Fraction(value)
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


class AtOne:
    """`w R_e + (1-w) B_e`, or Laplace noise, against `G_mu` at `x = 1`, for any budget.

    With `X(a) = e^{a²} erfc a` every integral against `e^{-t²/2m²}` is in closed form; the bits
    follow the cancellation, and are doubled until the sign is known.
    """

    def __init__(self, eps: Fraction | float, response: float, is_laplace: bool):
        self.eps, self.response, self.is_laplace = Fraction(eps), response, is_laplace

    def sign_of_fit(self, v: float) -> int:
        """Of `h_L(1) - h_{G_mu}(1)`: positive where it does not fit."""
        for bits in (2600, 5200):
            ctx.prec = bits
            e, w = ball(self.eps), ball(self.response)
            fall, half = (-e).exp(), (-e / 2).exp()
            lacking = half
            if not self.is_laplace:
                lacking = 2 * w * fall / (1 + fall) + 2 * (1 - w) * half / (1 + half)
            found = _sign((ball(v) / 8).sqrt().erfc() - lacking)
            if found:
                return found
        raise ArithmeticError("undecided")

    def sign_of_gap(self, v: float, c: float) -> int:
        """Of `h_{L ⊕ G_m}(1) - h_{G_mu}(1)`, `m² = v - c`: positive where the cost is too small."""
        left = Fraction(v) - Fraction(c)
        sizes = (
            abs(x.numerator.bit_length() - x.denominator.bit_length()) for x in (left, self.eps)
        )
        bits = 300 + 4 * sum(sizes) + int(4 * self.eps)
        for _ in range(6):
            ctx.prec = bits
            found = _sign(self._gap(ball(left), ball(v), ball(c)))
            if found:
                return found
            bits *= 2
        raise ArithmeticError("undecided")

    def _gap(self, m2: arb, v: arb, c: arb) -> arb:
        e, w, m, root = ball(self.eps), ball(self.response), m2.sqrt(), arb(2).sqrt()
        near = _scaled_erfc(m / (2 * root))
        falling = near - (-e / 2 - e * e / (2 * m2)).exp() * _scaled_erfc((e / m + m / 2) / root)
        level = (-e / 2).exp() * (e / (m * root)).erf()
        budget = near - (-c / 8).exp() * _scaled_erfc((v / 8).sqrt())
        if self.is_laplace:
            return falling - level - budget
        rising = (e / 2 - e * e / (2 * m2)).exp() * _scaled_erfc((m / 2 - e / m) / root) - near
        rising *= (-e).exp()
        query = w * (falling - rising) / (1 + (-e).exp())
        return query + (1 - w) * (falling - 2 * level + rising) / (1 - (-e).exp()) - budget


def _scaled_erfc(a: arb) -> arb:
    if a > 50:
        return (a * a).hypgeom_u(arb(1) / 2, arb(1) / 2) / arb.pi().sqrt()
    return (a * a).exp() * a.erfc()


def _sign(x: arb) -> int:
    return 1 if x > 0 else -1 if x < 0 else 0
