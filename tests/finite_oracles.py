"""Finite laws in exact fractions: the slow twin of `residua.pld`'s finite arithmetic.

A finite law is a list of pairs `(p, q)`, what `P` and `Q` give to one outcome:
`q = 0` is loss +inf, `p = 0` loss -inf. With fractions everything is exact; with
mpmath numbers it is good to about 60 digits.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Any, NamedTuple

from mpmath import mp, mpf

mp.dps = 60
NOISE = mpf("1e-50")  # below this, a difference of two 60-digit numbers is zero

Number = Any  # Fraction or mpf
Pair = tuple[Number, Number]


class Bracket(NamedTuple):
    """The truth lies in `[lo, hi]`."""

    lo: Number
    hi: Number


def real(x: object) -> mpf:
    """Any exact number as an mpf (floats, integers and fractions without loss beyond 60 digits)."""
    if isinstance(x, Fraction):
        return mpf(x.numerator) / x.denominator
    return mpf(float(x)) if hasattr(x, "dtype") else mpf(x)


def exact(x: object) -> Fraction:
    """A float as the dyadic rational it is."""
    return x if isinstance(x, Fraction) else Fraction(float(x))


def _below(a: Number, b: Number) -> bool:
    """`a <= b` for fractions, mpf and infinite floats alike."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a <= b
    return bool(real(a) <= real(b))


def _comparable(end: float) -> Number:
    """One end of an interval, exactly."""
    end = float(end)
    return Fraction(end) if abs(end) < float("inf") else mpf(end)


def agrees(interval: Any, truth: Number | Bracket) -> bool:
    """Whether the interval holds the truth (or, for a bracket, meets it)."""
    lo, hi = truth if isinstance(truth, Bracket) else (truth, truth)
    return _below(_comparable(interval.lo), hi) and _below(lo, _comparable(interval.hi))


def near(value: Number) -> Bracket:
    """An mpmath result with the last digits of its 60 left open."""
    value = real(value)
    spread = NOISE * (1 + abs(value)) if abs(value) < mp.inf else mpf(0)
    return Bracket(value - spread, value + spread)


@dataclass(frozen=True)
class Finite:
    """A law on finitely many outcomes, `pairs` of `P` and `Q` masses."""

    pairs: tuple[Pair, ...]

    @staticmethod
    def of(p: Iterable[object], q: Iterable[object]) -> Finite:
        """Two vectors of floats or fractions, each divided by its exact sum."""
        ps, qs = [exact(v) for v in p], [exact(v) for v in q]
        total_p, total_q = sum(ps), sum(qs)
        return Finite(tuple((a / total_p, b / total_q) for a, b in zip(ps, qs, strict=True)))

    @staticmethod
    def from_hockey_stick(xs: Iterable[object], values: Iterable[object]) -> Finite:
        """The law whose curve is linear between `(0, 1)` and the points, constant after them."""
        points = [(Fraction(0), Fraction(1))]
        points += [(exact(x), exact(v)) for x, v in zip(xs, values, strict=True)]
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points)]
        slopes = [*slopes, Fraction(0)]
        pairs: list[Pair] = [(Fraction(0), 1 + slopes[0])]
        for (x, _), before, after in zip(points[1:], slopes, slopes[1:], strict=False):
            pairs.append((x * (after - before), after - before))
        pairs.append((points[-1][1], Fraction(0)))
        return Finite(tuple(pair for pair in pairs if pair != (0, 0)))

    @staticmethod
    def from_tradeoff(alphas: Iterable[object], betas: Iterable[object]) -> Finite:
        """The law whose tradeoff curve is linear between the points and reaches 0 at the last."""
        points = [(exact(a), exact(b)) for a, b in zip(alphas, betas, strict=True)]
        pairs: list[Pair] = [(Fraction(0), 1 - points[0][1])]
        for (a, b), (c, d) in itertools.pairwise(points):
            pairs.append((c - a, b - d))
        pairs.append((1 - points[-1][0], points[-1][1]))
        return Finite(tuple(pair for pair in pairs if pair != (0, 0)))

    @property
    def is_exact(self) -> bool:
        return all(isinstance(v, (Fraction, int)) for pair in self.pairs for v in pair)

    def real(self) -> Finite:
        """The same law in mpmath numbers."""
        return Finite(tuple((real(p), real(q)) for p, q in self.pairs))

    @property
    def mass_at_infinity(self) -> Number:
        return sum((p for p, q in self.pairs if q == 0), Fraction(0))

    @property
    def mass_at_minus_infinity(self) -> Number:
        return sum((q for p, q in self.pairs if p == 0), Fraction(0))

    @property
    def kinks(self) -> list[Number]:
        """The likelihood ratios `p / q` that are neither 0 nor infinite."""
        return sorted({p / q for p, q in self.pairs if p and q})

    def hockey_stick(self, x: object) -> Number:
        if isinstance(x, mpf) or not self.is_exact:
            gains = [(real(p), real(p) - real(x) * real(q)) for p, q in self.pairs]
            return mp.fsum(gain for p, gain in gains if gain > NOISE * p)
        return sum((max(p - exact(x) * q, Fraction(0)) for p, q in self.pairs), Fraction(0))

    def tradeoff_points(self) -> list[Pair]:
        """Vertices of the tradeoff curve: reject where `p / q` is least first (Neyman-Pearson)."""
        merged: dict[Number, list[Number]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
        for p, q in self.pairs:
            if p and q:
                merged[p / q][0] += p
                merged[p / q][1] += q
        number = real if any(isinstance(p, mpf) for pair in self.pairs for p in pair) else exact
        points = [(number(0), number(1 - self.mass_at_minus_infinity))]
        for ratio in sorted(merged):
            a, b = points[-1]
            points.append((a + merged[ratio][0], b - merged[ratio][1]))
        return [*points, (number(1), number(0))] if self.mass_at_infinity else points

    def tradeoff(self, alpha: object) -> Number:
        return interpolate(self.tradeoff_points(), exact(alpha))

    def inverse_tradeoff(self, beta: object) -> Number:
        return self.reverse().tradeoff(beta)

    def reverse(self) -> Finite:
        return Finite(tuple((q, p) for p, q in self.pairs))

    def merge(self) -> Finite:
        """Outcomes with one likelihood ratio joined; the law is the same."""
        totals: dict[Number, list[Number]] = defaultdict(lambda: [0, 0])
        for p, q in self.pairs:
            if p or q:
                key = p / q if q else "+inf"
                totals[key][0] += p
                totals[key][1] += q
        return Finite(tuple((p, q) for p, q in totals.values()))

    def __add__(self, other: Finite) -> Finite:
        pairs = tuple((a * c, b * d) for a, b in self.pairs for c, d in other.pairs)
        together = Finite(pairs)
        return together.merge() if together.is_exact else together

    def power(self, n: int) -> Finite:
        """The n-fold composition, by the multinomial theorem."""
        if n == 0:
            return IDENTITY
        atoms = self.merge().pairs if self.is_exact else self.pairs
        result = []
        for counts in _compositions(n, len(atoms)):
            ways = factorial(n)
            for c in counts:
                ways //= factorial(c)
            p = q = mpf(ways) if not self.is_exact else Fraction(ways)
            for (a, b), c in zip(atoms, counts, strict=True):
                p, q = p * a**c, q * b**c
            result.append((p, q))
        together = Finite(tuple(result))
        return together.merge() if together.is_exact else together

    def sup_of(self, other: Finite) -> Finite:
        """The law whose curve is the pointwise maximum."""
        xs = set(self.kinks) | set(other.kinks)
        xs |= set(_crossings(self, other, sorted(xs)))
        return _from_curve(sorted(xs), lambda x: max(self.hockey_stick(x), other.hockey_stick(x)))

    def inf_of(self, other: Finite) -> Finite:
        """The law whose curve is the lower convex envelope of both."""
        xs = sorted(set(self.kinks) | set(other.kinks))
        points = [(x, min(self.hockey_stick(x), other.hockey_stick(x))) for x in xs]
        hull: list[Pair] = []
        for point in [(Fraction(0), Fraction(1)), *points]:
            while len(hull) > 1 and not _turns_up(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        while len(hull) > 1 and hull[-1][1] >= hull[-2][1]:
            hull.pop()
        if len(hull) == 1:
            return INFINITE
        return Finite.from_hockey_stick(*zip(*hull[1:], strict=True))

    def __le__(self, other: Finite) -> bool:
        """Domination: the difference of two curves is linear between all their kinks."""
        xs = set(self.kinks) | set(other.kinks)
        at_kinks = all(self.hockey_stick(x) <= other.hockey_stick(x) for x in xs)
        return at_kinks and self.mass_at_infinity <= other.mass_at_infinity

    def moment(self, alpha: Number) -> mpf:
        """`E_P[(p/q)^(alpha-1)]`."""
        if alpha > 1 and self.mass_at_infinity:
            return mp.inf
        power = real(alpha)
        pairs = self.real().pairs
        return mp.fsum(p**power * q ** (1 - power) for p, q in pairs if p and q)

    def kullback_leibler(self) -> mpf:
        if self.mass_at_infinity:
            return mp.inf
        return mp.fsum(p * mp.log(p / q) for p, q in self.real().pairs if p)

    def largest_loss(self) -> mpf:
        if self.mass_at_infinity:
            return mp.inf
        return mp.log(max(real(p) / real(q) for p, q in self.pairs if q))


IDENTITY = Finite(((Fraction(1), Fraction(1)),))
INFINITE = Finite(((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))))


def interpolate(points: Sequence[Pair], x: Number) -> Number:
    """The piecewise-linear function through `points`, constant outside them."""
    if any(isinstance(number, mpf) for point in points for number in point):
        x, points = real(x), [(real(a), real(b)) for a, b in points]
    if x <= points[0][0]:
        return points[0][1]
    for (a, b), (c, d) in itertools.pairwise(points):
        if x <= c:
            return b + (d - b) * (x - a) / (c - a) if c > a else d
    return points[-1][1]


def _compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as an ordered sum of `parts` non-negative integers."""
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in _compositions(n - first, parts - 1):
            yield (first, *rest)


def _crossings(a: Finite, b: Finite, xs: list[Number]) -> Iterator[Number]:
    """Where two curves cross between consecutive points (each linear there)."""
    ends = [Fraction(0), *xs]
    for left, right in itertools.pairwise(ends):
        first = a.hockey_stick(left) - b.hockey_stick(left)
        last = a.hockey_stick(right) - b.hockey_stick(right)
        if first * last < 0:
            yield left + (right - left) * first / (first - last)


def _from_curve(xs: list[Number], h: Callable[[Number], Number]) -> Finite:
    if not xs:
        return INFINITE
    return Finite.from_hockey_stick(xs, [h(x) for x in xs])


def _turns_up(a: Pair, b: Pair, c: Pair) -> bool:
    """Whether the slope grows at `b`."""
    return (b[1] - a[1]) * (c[0] - b[0]) < (c[1] - b[1]) * (b[0] - a[0])


def from_atoms(losses: Sequence[float], masses: Sequence[float], at_infinity: float) -> Finite:
    """Masses normalised to `1 - at_infinity`, `q = p e^-z`, `q` normalised within 1e-12 of 1.

    The library rounds `q` to a float; this one does not. `ulps` below pays for it.
    """
    top = real(at_infinity)
    total = mp.fsum(real(m) for m in masses)
    ps = [real(m) / total * (1 - top) for m in masses]
    qs = [p * mp.exp(-real(z)) for p, z in zip(ps, losses, strict=True)]
    whole = mp.fsum(qs)
    if abs(whole - 1) <= mpf("1e-12"):
        qs, rest = [q / whole for q in qs], mpf(0)
    else:
        rest = 1 - whole
    pairs = [*zip(ps, qs, strict=True), (top, mpf(0)), (mpf(0), rest)]
    return Finite(tuple((p, q) for p, q in pairs if p or q))


def ulps(h: Callable[[mpf], mpf], x: object, n: int = 1, each: float = 16.0) -> Bracket:
    """The bracket of `h(x)` when p and q of each of n factors are off by `each` units of 2^-53.

    `h(x) = sum (p - x q)_+`: moving every `q` by a factor moves `x` by it, and moving every
    `p` and `q` together moves `h` by it.
    """
    slack = mp.expm1(n * mp.log1p(mpf(each) * mpf(2) ** -53))
    low, high = h(real(x) * (1 + slack)), h(real(x) / (1 + slack))
    return Bracket(low / (1 + slack), high * (1 + slack))


def approximate_dp(eps: object, delta: object = 0) -> Finite:
    """`R_{eps,delta}`; exact for `eps = 0`."""
    if eps == 0:
        d, zero = exact(delta), Fraction(0)
        pairs: list[Pair] = [(d, zero), (zero, d), (1 - d, 1 - d)]
    else:
        e, d = mp.exp(real(eps)), real(delta)
        pairs = [(d, mpf(0)), (mpf(0), d)]
        pairs += [((1 - d) * e / (1 + e), (1 - d) / (1 + e))]
        pairs += [((1 - d) / (1 + e), (1 - d) * e / (1 + e))]
    return Finite(tuple((p, q) for p, q in pairs if p or q))


def response_power(eps: object, delta: object, n: int, x: object) -> mpf:
    """`h` of the n-fold `R_{eps,delta}`: a binomial sum from the top term downward.

    Each term is computed from its neighbour; the sum stops where what is left is
    below 1e-45 of it, the ratio of neighbouring terms being monotone.
    """
    e, t = real(eps), mp.log(real(x))
    keep = (1 - real(delta)) ** n
    if e == 0:
        return 1 - keep + keep * max(1 - real(x), mpf(0))
    odds = mp.exp(e)
    # Terms k of C(n,k) a^k b^(n-k) with loss (2k-n) eps > t.
    first = int(mp.floor((n + t / e) / 2)) + 1
    first = min(max(first, 0), n + 1)
    start = max(first, int(n * odds / (1 + odds)) - int(40 * mp.sqrt(n)) - 40, 0)
    if start > n:
        return 1 - keep
    log_term = mp.loggamma(n + 1) - mp.loggamma(start + 1) - mp.loggamma(n - start + 1)
    term = mp.exp(log_term + start * e - n * mp.log1p(odds))
    total = mpf(0)
    k = start
    loss = (2 * start - n) * e - t
    shrink, step = mp.exp(-loss), mp.exp(-2 * e)
    while k <= n:
        total += term * (1 - shrink)
        ratio = odds * (n - k) / (k + 1)
        if ratio < mpf("0.99") and term < mpf("1e-47") * total:
            break
        term, shrink, k = term * ratio, shrink * step, k + 1
    return 1 - keep + keep * total
