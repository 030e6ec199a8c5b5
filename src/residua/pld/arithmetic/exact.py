"""Finite privacy losses in exact rationals.

A finite PLD is a list of atoms `(p, q)`, the masses that `P` and `Q` give to one
outcome, with loss `ln(p/q)`. Here both are integers over common denominators, sorted
by strictly increasing loss, so that composition, reversal, order, supremum and
infimum are integer arithmetic. This is the slow path that decides what floats cannot.

Seen from above, the atoms are the edges of a concave polygon (the testing region,
or ROC curve) with vertices `(Q(Z > z), P(Z > z))`, from `(0, p_inf)` to
`(1 - q_inf, 1)`: the tradeoff curve upside down. `L ⪯ M` is inclusion of regions.

Exponentials in rationals: closed forms with irrational masses, rounded to a stated side.

`decimal` rounds `exp` correctly; 160 digits, of which 140 are claimed. A randomized response
or a discrete Laplace whose ratio `e^eps` is replaced by a rational at least as large is again
one, with a slightly larger `eps`: it dominates the given one, and no mass appears at infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import lcm
from operator import lt, mul
from typing import Literal

import numpy as np

from residua.bounds import Floats
from residua.work_limit import work

Side = Literal["above", "below"]

DIGITS = 160
"""Of decimals, 20 of which are left to rounding: a tie of floats does not occur."""


def exp_of(exponent: Fraction, side: Side) -> Fraction:
    """A rational at least (`above`) or at most (`below`) `e^exponent`, `|exponent| <= 10^6`."""
    with localcontext(Context(prec=DIGITS)):
        near = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
    return Fraction(near) * _slack(side)


def _slack(side: Side) -> Fraction:
    claimed = Fraction(1, 10 ** (DIGITS - 20))
    return 1 + claimed if side == "above" else 1 - claimed


def tilted(mass: float, loss: float) -> float:
    """`mass e^-loss` to the nearest float: the same on every machine, and for the verifier."""
    with localcontext(Context(prec=DIGITS, Emin=-(10**6), Emax=10**6)):
        return float(Decimal(mass) * Decimal(loss).copy_negate().exp())


def fall_of(exponent: Fraction, side: Side) -> Fraction:
    """`1 - e^-exponent` for `exponent >= 0`, rounded to a side with 140 digits."""
    if exponent == 0:
        return Fraction(0)
    small = max(0, exponent.denominator.bit_length() - exponent.numerator.bit_length())
    with localcontext(Context(prec=DIGITS + small // 3 + 2)):
        near = 1 - (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
    return min(Fraction(near) * _slack(side), Fraction(1))


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


MAX_BITS = 8192
"""Rational vertices keep exact common denominators up to this size."""
GRID = 1 << 400
"""Vertices that need not be exact are rounded to multiples of `1 / GRID`."""


@dataclass(frozen=True)
class ExactAtoms:
    """Atoms `p[i]/p_den`, `q[i]/q_den`, losses strictly increasing; the rest is at `±inf`."""

    p: tuple[int, ...]
    q: tuple[int, ...]
    p_den: int
    q_den: int

    @cached_property
    def p_tails(self) -> tuple[int, ...]:
        """`P(Z >= z_i)`, numerators: atom `i` and all above, `+inf` too; the last is `p_inf`."""
        return _tails(self.p, self.p_inf)

    @cached_property
    def q_tails(self) -> tuple[int, ...]:
        """`Q(Z >= z_i)`, numerators, aligned with `p_tails`; the last is 0."""
        return _tails(self.q, 0)

    @cached_property
    def p_inf(self) -> int:
        """Numerator of `P`'s mass at `+inf`."""
        return self.p_den - sum(self.p)

    @cached_property
    def q_inf(self) -> int:
        """Numerator of `Q`'s mass at `-inf`."""
        return self.q_den - sum(self.q)

    def __len__(self) -> int:
        return len(self.p)

    def reverse(self) -> ExactAtoms:
        """The PLD of `(Q, P)`."""
        return ExactAtoms(self.q[::-1], self.p[::-1], self.q_den, self.p_den)

    def compose(self, other: ExactAtoms) -> ExactAtoms:
        """The exact composition; equal losses are merged."""
        work(60.0 * _long(self.p_den * other.p_den) * len(self.p) * len(other.p))
        p = [a * b for a in self.p for b in other.p]
        q = [a * b for a in self.q for b in other.q]
        return canonical(p, q, self.p_den * other.p_den, self.q_den * other.q_den)

    def vertices(self) -> list[tuple[Fraction, Fraction]]:
        """Vertices `(Q(Z > z), P(Z > z))` of the testing region, left to right."""
        return [
            (Fraction(b, self.q_den), Fraction(a, self.p_den))
            for a, b in zip(reversed(self.p_tails), reversed(self.q_tails), strict=True)
        ]

    def height(self, at: int, x_num: int, x_den: int) -> Fraction:
        """The line `P - xQ` through vertex `at`: `h(x)` if that vertex is the best one."""
        return Fraction(self.p_tails[at], self.p_den) - Fraction(
            x_num * self.q_tails[at], x_den * self.q_den
        )

    def hockey_stick(self, x: Fraction) -> Fraction:
        """`h(x)` exactly."""
        low, high = 0, len(self.p)
        while low < high:
            mid = (low + high) // 2
            above = (
                self.p[mid] * self.q_den * x.denominator > x.numerator * self.q[mid] * self.p_den
            )
            low, high = (low, mid) if above else (mid + 1, high)
        return self.height(low, x.numerator, x.denominator)

    def kink(self, i: int) -> Fraction:
        """`e^z` of atom `i`."""
        return Fraction(self.p[i] * self.q_den, self.q[i] * self.p_den)

    def same(self, other: ExactAtoms) -> bool:
        """Whether two are one PLD."""
        return len(self) == len(other) and all(
            a * d == b * c
            for mine, theirs, c, d in (
                (self.p, other.p, self.p_den, other.p_den),
                (self.q, other.q, self.q_den, other.q_den),
            )
            for a, b in zip(mine, theirs, strict=True)
        )


EXACT_IDENTITY = ExactAtoms((1,), (1,), 1, 1)


def _long(denominator: int) -> float:
    """How much longer arithmetic takes than on short numbers."""
    return 1.0 + denominator.bit_length() / 512.0


def _tails(masses: Sequence[int], at_infinity: int) -> tuple[int, ...]:
    return tuple(accumulate(reversed(masses), initial=at_infinity))[::-1]


def integers(values: Floats) -> tuple[list[int], int]:
    """Floats as integers over one power of two: `values[i] == ints[i] / 2**shift`."""
    work(100.0 * values.size)
    mantissas, exponents = np.frexp(values)
    wholes = (mantissas * 2.0**53).astype(np.int64).tolist()
    powers = (exponents - 53).tolist()
    least = min(powers, default=0)
    return [m << (e - least) for m, e in zip(wholes, powers, strict=True)], -least


def floats(numerators: Sequence[int], denominator: int) -> Floats:
    """Rationals as floats: correctly rounded for short lists, else within `3 u`."""
    if len(numerators) <= 64 or denominator.bit_length() > 1000:
        return np.array([a / denominator for a in numerators], dtype=np.float64)
    return np.array(list(map(float, numerators))) / float(denominator)


def canonical(p: Sequence[int], q: Sequence[int], p_den: int, q_den: int) -> ExactAtoms:
    """Sort atoms by exact loss and merge equal ones; atoms without mass are dropped."""
    work(300.0 * len(p))
    kept = [(a, b) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]
    kept.sort(key=_log_ratio)
    return sorted_atoms([a for a, _ in kept], [b for _, b in kept], p_den, q_den)


def sorted_atoms(p: Sequence[int], q: Sequence[int], p_den: int, q_den: int) -> ExactAtoms:
    """Atoms in almost increasing order (near ties may be swapped): finish exactly and merge."""
    work(50.0 * _long(p_den) * len(p), 64.0 * _long(p_den) * len(p))
    if all(map(lt, map(mul, p, q[1:]), map(mul, p[1:], q))):
        return ExactAtoms(tuple(p), tuple(q), p_den, q_den)
    out: list[tuple[int, int]] = []
    for a, b in zip(p, q, strict=True):
        i = len(out)
        while i > 0 and out[i - 1][0] * b > a * out[i - 1][1]:
            i -= 1
        if i > 0 and out[i - 1][0] * b == a * out[i - 1][1]:
            out[i - 1] = (out[i - 1][0] + a, out[i - 1][1] + b)
        else:
            out.insert(i, (a, b))
    return ExactAtoms(tuple(a for a, _ in out), tuple(b for _, b in out), p_den, q_den)


def _log_ratio(atom: tuple[int, int]) -> float:
    return math.log(atom[0]) - math.log(atom[1])


def from_vertices(vertices: Sequence[tuple[int, int]], q_den: int, p_den: int) -> ExactAtoms:
    """The PLD whose testing region has these vertices (numerators of `Q`, `P`), left to right.

    The first vertex is `(0, p_inf)`, the last at `P = 1`; slopes decrease strictly, as those
    of `upper_hull` do. A last flat edge (slope 0) is `Q`'s mass at `-inf` and no atom.
    """
    edges = [
        (b[1] - a[1], b[0] - a[0]) for a, b in pairwise(vertices) if b[1] > a[1] and b[0] > a[0]
    ]
    return ExactAtoms(
        tuple(p for p, _ in reversed(edges)), tuple(q for _, q in reversed(edges)), p_den, q_den
    )


def upper_hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The concave upper hull, exactly, of points sorted by first coordinate."""
    hull: list[tuple[int, int]] = []
    for x, y in points:
        if hull and hull[-1][0] == x:
            if hull[-1][1] >= y:
                continue
            hull.pop()
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2], hull[-1]
            if (y1 - y0) * (x - x1) > (y - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def from_rational_vertices(points: Sequence[tuple[Fraction, Fraction]]) -> ExactAtoms:
    """The PLD of the concave hull of rational testing-region points `(Q, P)`.

    Exact while the common denominators stay below `MAX_BITS`; beyond that the points are
    rounded towards the inside, which gives a PLD below the exact one.
    """
    work(600.0 * len(points))
    q_den = p_den = 1
    for q, p in points:
        q_den, p_den = lcm(q_den, q.denominator), lcm(p_den, p.denominator)
        if max(q_den, p_den).bit_length() > MAX_BITS:
            q_den = p_den = 1 << 1024
            break
    whole = [
        (-((-q.numerator * q_den) // q.denominator), p.numerator * p_den // p.denominator)
        for q, p in points
    ]
    return region(whole, q_den, p_den)


def rounded_region(points: Sequence[tuple[Fraction, Fraction]], side: Side) -> ExactAtoms:
    """A PLD above or below that of testing-region points `(Q, P)`, rounded to the grid."""
    outward = side == "above"
    whole = []
    for q, p in points:
        at, height = min(_on_grid(q, not outward), GRID), min(_on_grid(p, outward), GRID)
        # The diagonal P = Q belongs to every region.
        whole.append((at, max(height, at)))
    return region(whole, GRID, GRID)


def _on_grid(value: Fraction, up: bool) -> int:
    scaled = value.numerator * GRID
    return -(-scaled // value.denominator) if up else scaled // value.denominator


def region(points: Sequence[tuple[int, int]], q_den: int, p_den: int) -> ExactAtoms:
    """The PLD of the concave hull of testing-region points, numerators of `(Q, P)`.

    The hull is flat after its highest vertex; if that is not at `P = 1`, the corner
    `(1, 1)`, which belongs to every region, completes it.
    """
    work(150.0 * _long(p_den) * len(points), 128.0 * _long(p_den) * len(points))
    hull = upper_hull(sorted(points))
    while len(hull) > 1 and hull[-2][1] >= hull[-1][1]:
        hull.pop()
    if hull[-1][1] < p_den:
        hull = upper_hull([*hull, (q_den, p_den)])
    return from_vertices(hull, q_den, p_den)
