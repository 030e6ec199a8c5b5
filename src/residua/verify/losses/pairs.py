"""Finite factors made of others: categories, samples, tradeoff curves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import fsum

from flint import acb, arb

from residua.verify.arithmetic import BITS, Ball, ball, bits, exact, rational, work
from residua.verify.losses.factors import Factor, Pairs, integral
from residua.verify.losses.laws import Central, Finite, mirrored

Corner = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Categories(Factor):
    """Randomized response among `k > 2` categories."""

    eps: Fraction
    count: int

    def law(self) -> Finite:
        e = ball(self.eps)
        total = e.exp() + (self.count - 1)
        return mirrored((1 / total, (self.count - 2) / total, e.exp() / total), (-e, arb(0), e))


@dataclass(frozen=True)
class Sampled(Factor):
    """`(1-r) Q + r P` against `Q`, for a finite pair `(P, Q)`."""

    inner: Factor
    rate: Fraction

    symmetric = False
    written_missing = None

    def top(self, back: bool = False) -> Ball | None:
        inner = self.inner.top(back)
        if inner is None:
            return None
        r = ball(self.rate)
        mixed = (1 + r * (-inner if back else inner).expm1()).log()
        return -mixed if back else mixed

    def moment(self, s: Ball, back: bool = False) -> Ball | None:
        """`E_Q` of a power of `1 - r + r e^Z`; over a density by a proven quadrature."""
        law = self.inner.law()
        if not isinstance(law, Central):
            return super().moment(s, back)
        r = ball(self.rate)
        power = -s if back else 1 + s
        total = arb(0)
        for q, z in zip(law.atoms.q, law.atoms.z, strict=True):
            total += q * (power * (1 + r * z.expm1()).log()).exp()

        def integrand(z: acb, analytic: bool) -> acb:
            return (power * (1 - r + r * z.exp()).log(analytic=analytic) - z / 2).exp()

        return total + law.height * integral(integrand, -law.e, law.e, 12)

    def law(self) -> Finite | None:
        law = self.inner.law()
        if not isinstance(law, Finite):
            return None
        work(6 * len(law.p))
        r = ball(self.rate)
        p = [(1 - r) * b + r * a for a, b in zip(law.p, law.q, strict=True)]
        q = list(law.q)
        z = [(a / b).log() for a, b in zip(p, q, strict=True)]
        if not law.q_inf.is_zero():
            # Where only Q was, P now has its share.
            p, q = [(1 - r) * law.q_inf, *p], [law.q_inf, *q]
            z = [(1 - r).log(), *z]
        return Finite(tuple(p), tuple(q), tuple(z), r * law.p_inf, arb(0))


@dataclass(frozen=True)
class Drawn(Factor):
    """A sample of fixed size: for `x >= 1` the curve of `(1-r) Q + r P` against `Q`, mirrored."""

    inner: Factor
    rate: Fraction

    written_missing = None

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.inner.symmetric

    def law(self) -> Finite | None:
        law = self.inner.law()
        if not isinstance(law, Finite):
            return None
        r = ball(self.rate)
        work(8 * len(law.p))
        below: list[tuple[Ball, Ball, Ball]] = []
        above: list[tuple[Ball, Ball, Ball]] = []
        for a, b, loss in zip(law.p, law.q, law.z, strict=True):
            if loss > 0:
                mixed = (1 - r) * b + r * a
                above.append((mixed, b, (mixed / b).log()))
            elif loss < 0:
                mixed = (1 - r) * a + r * b
                below.append((a, mixed, (a / mixed).log()))
            elif not loss.is_zero():
                return None
        p_inf, q_inf = r * law.p_inf, r * law.q_inf
        # The rest of both is one outcome of no loss.
        rest = 1 - p_inf - sum((a for a, _, _ in (*below, *above)), arb(0))
        p, q, z = zip(*below, (rest, rest, arb(0)), *above, strict=True)
        return Finite(p, q, z, p_inf, q_inf, self.symmetric)


def from_tradeoff(alphas: list[Fraction], betas: list[Fraction]) -> Pairs:
    """The pair of a piecewise-linear tradeoff curve; its lower hull where it bends wrongly."""
    points = sorted((1 - a, b) for a, b in zip(alphas, betas, strict=True))
    points = [(b, a) for a, b in points]
    return from_region([*points, (max(b for b, _ in points), Fraction(1))])


def from_atoms(losses: list[float], masses: list[float], at_infinity: float) -> Pairs | None:
    """The pair that given atoms denote; None where a mass under `Q` is not known.

    `q = p e^-z` to the nearest float. Masses under `P` are normalised to what is not at infinity,
    those under `Q` to 1 if their sum is within 1e-12 of it.
    """
    merged: dict[float, float] = {}
    for z, p in zip(losses, masses, strict=True):
        if p:
            merged[z] = merged.get(z, 0.0) + p
    work(64 * len(merged))
    tilted: list[float] = []
    with bits(BITS):
        for z, p in merged.items():
            q = ball(exact(p)) * (-ball(exact(z))).exp()
            ends = {float(rational(end)) for end in (q.lower(), q.upper())}
            if len(ends) > 1:
                return None
            tilted += ends
    kept = (1 - exact(at_infinity)) / sum((exact(p) for p in merged.values()), Fraction(0))
    whole = abs(fsum(tilted) - 1.0) <= 1e-12
    scale = 1 / sum((exact(q) for q in tilted), Fraction(0)) if whole else Fraction(1)
    over = tuple(kept * exact(p) for p in merged.values())
    return Pairs(over, tuple(scale * exact(q) for q in tilted))


def from_region(points: list[Corner]) -> Pairs:
    """The pair whose testing region has these corners `(Q's tail, P's tail)`."""
    steps = [(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(upper_hull(points))]
    return Pairs(tuple(p for p, _ in steps if p), tuple(q for p, q in steps if p))


def upper_hull(points: list[Corner]) -> list[Corner]:
    """The upper hull of corners from `Q`'s tail 0 on, as far as it rises."""
    first = max((p for q, p in points if q == 0), default=Fraction(0))
    hull = [(Fraction(0), first)]
    for q, p in sorted({(q, p) for q, p in points if q > 0}):
        while len(hull) >= 2 and _turns_up(hull[-2], hull[-1], (q, p)):
            hull.pop()
        if p >= hull[-1][1]:
            if hull[-1][0] == q:
                hull.pop()
            hull.append((q, p))
    return hull


def _turns_up(a: Corner, b: Corner, c: Corner) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) <= (c[1] - b[1]) * (b[0] - a[0])


def symmetric_hull(pair: Pairs) -> Pairs:
    """The supremum of a pair and its reversal: the hull of both regions."""
    return from_region(_corners(pair.p, pair.q) + _corners(pair.q, pair.p))


def _corners(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> list[Corner]:
    order = sorted(range(len(p)), key=lambda i: p[i] / q[i], reverse=True)
    at_q, at_p = Fraction(0), 1 - sum(p, Fraction(0))
    corners = [(at_q, at_p)]
    for i in order:
        at_q, at_p = at_q + q[i], at_p + p[i]
        corners.append((at_q, at_p))
    return corners
