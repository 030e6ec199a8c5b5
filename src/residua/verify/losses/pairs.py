"""Finite factors made of others: categories, samples, tradeoff curves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import fsum

from flint import acb, arb

from residua.verify.arithmetic.balls import BITS, Ball, ball, bits, exact
from residua.verify.arithmetic.work_limit import work
from residua.verify.losses.factors import MOST_CALLS, Factor, Pairs
from residua.verify.losses.laws import Central, Finite


@dataclass(frozen=True)
class Categories(Factor):
    """Randomized response among `k > 2` categories."""

    eps: Fraction
    count: int

    def law(self) -> Finite:
        e = ball(self.eps)
        total = e.exp() + (self.count - 1)
        high, low, other = e.exp() / total, 1 / total, (self.count - 2) / total
        zero = arb(0)
        return Finite((low, other, high), (high, other, low), (-e, zero, e), zero, zero, True)


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

        calls = 0

        def integrand(z: acb, analytic: bool) -> acb:
            nonlocal calls
            calls += 1
            return (power * (1 - r + r * z.exp()).log(analytic=analytic) - z / 2).exp()

        flat = acb.integral(integrand, acb(-law.e), acb(law.e), eval_limit=MOST_CALLS).real
        work(12 * calls)
        return total + law.height * flat

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
        p: list[Ball] = []
        q: list[Ball] = []
        z: list[Ball] = []
        for a, b, loss in zip(law.p, law.q, law.z, strict=True):
            if loss > 0:
                mixed = (1 - r) * b + r * a
                p, q, z = [*p, mixed], [*q, b], [*z, (mixed / b).log()]
            elif loss < 0:
                mixed = (1 - r) * a + r * b
                p, q, z = [*p, a], [*q, mixed], [*z, (a / mixed).log()]
            elif not loss.is_zero():
                return None
        p_inf, q_inf = r * law.p_inf, r * law.q_inf
        # The rest of both is one outcome of no loss.
        rest = 1 - p_inf - sum(p, arb(0))
        at = next((i for i, loss in enumerate(z) if loss > 0), len(z))
        p, q, z = [*p[:at], rest, *p[at:]], [*q[:at], rest, *q[at:]], [*z[:at], arb(0), *z[at:]]
        return Finite(tuple(p), tuple(q), tuple(z), p_inf, q_inf, self.symmetric)


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
            ends = {float(Fraction(*_ratio(end))) for end in (q.lower(), q.upper())}
            if len(ends) > 1:
                return None
            tilted += ends
    kept = (1 - exact(at_infinity)) / sum((exact(p) for p in merged.values()), Fraction(0))
    whole = abs(fsum(tilted) - 1.0) <= 1e-12
    scale = 1 / sum((exact(q) for q in tilted), Fraction(0)) if whole else Fraction(1)
    over = tuple(kept * exact(p) for p in merged.values())
    return Pairs(over, tuple(scale * exact(q) for q in tilted))


def _ratio(end: Ball) -> tuple[int, int]:
    mantissa, exponent = (int(each) for each in end.man_exp())
    return (mantissa << exponent, 1) if exponent >= 0 else (mantissa, 1 << -exponent)


def from_region(points: list[tuple[Fraction, Fraction]]) -> Pairs:
    """The pair whose testing region has these corners `(Q's tail, P's tail)`."""
    first = max((p for q, p in points if q == 0), default=Fraction(0))
    kept = sorted({(q, p) for q, p in points if q > 0})
    hull: list[tuple[Fraction, Fraction]] = [(Fraction(0), first)]
    for q, p in kept:
        while len(hull) >= 2 and _turns_up(hull[-2], hull[-1], (q, p)):
            hull.pop()
        if p >= hull[-1][1]:
            if hull[-1][0] == q:
                hull.pop()
            hull.append((q, p))
    steps = [(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(hull)]
    return Pairs(tuple(p for p, _ in steps if p), tuple(q for p, q in steps if p))


def _turns_up(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction],
              c: tuple[Fraction, Fraction]) -> bool:  # fmt: skip
    return (b[1] - a[1]) * (c[0] - b[0]) <= (c[1] - b[1]) * (b[0] - a[0])


def symmetrised(pair: Pairs) -> Pairs:
    """The supremum of a pair and its reversal: the hull of both regions."""
    return from_region(_corners(pair.p, pair.q) + _corners(pair.q, pair.p))


def _corners(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> list[tuple[Fraction, Fraction]]:
    order = sorted(range(len(p)), key=lambda i: p[i] / q[i], reverse=True)
    at_q, at_p = Fraction(0), 1 - sum(p, Fraction(0))
    corners = [(at_q, at_p)]
    for i in order:
        at_q, at_p = at_q + q[i], at_p + p[i]
        corners.append((at_q, at_p))
    return corners
