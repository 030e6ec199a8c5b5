"""Factors of a loss: independent, each known by its parameters.

A `Loss` is a Gaussian part, kept by its variance `mu²`, factors with multiplicities, and black
boxes of which only Rényi bounds are stated. Each factor gives, at the precision in force,

    law       the tight law (`laws.py`), or None where there are too many outcomes
    moment    E e^{sZ}, `s > 0`, in the direction named
    top       the largest finite loss, and `missing`, the mass at infinity, either way

and, where a filter charges parameters as they are written, those decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import acb, arb, ctx

from residua.verify.arithmetic import Ball, ball, near, normal, reserve_memory, work
from residua.verify.losses.laws import Central, Finite, Law, mirrored

_MOST_TERMS = 1 << 15
"""The most terms of a sum over integer noise; more are beyond the limit of work."""


class Unknown(Exception):
    """A cost that cannot be worked out, and why."""


class Infinite(Exception):
    """A cost that no amount covers, and why."""


class Factor:
    """One independent part of a loss."""

    symmetric: bool = True
    written_top: Fraction | None = None
    written_missing: Fraction | None = Fraction(0)
    unbounded: bool = False
    """Whether finite losses have no largest one."""
    above: Fraction | None = None
    """The variance of a Gaussian known to lie above."""
    tail: Fraction | None = None
    """The variance of the Gaussian whose tail its large losses have: no smaller one lies above."""

    def law(self) -> Law | None:
        return None

    def moment(self, s: Ball, back: bool = False) -> Ball | None:
        """`E e^{sZ}`, of the reversal if `back`; None if infinite or not known."""
        law = self.law()
        if law is None:
            return None
        law = law.reversed() if back else law
        return law.moment(s) if law.p_inf.is_zero() else None

    def top(self, back: bool = False) -> Ball | None:
        """The largest finite loss (of the reversal if `back`); None if there is none."""
        law = self.law()
        if law is None:
            return None
        return law.reversed().top if back else law.top

    def missing(self) -> Ball:
        """The larger mass at infinity."""
        law = self.law()
        return arb(0) if law is None else law.missing


def sure_law(factor: Factor) -> Law:
    """The law of a factor that is known to have one."""
    law = factor.law()
    assert law is not None
    return law


def integral(integrand: Callable[[acb, bool], acb], low: Ball, high: Ball, cost: int) -> Ball:
    """A proven quadrature, each evaluation of which costs so many operations."""
    calls = 0

    def counted(y: acb, analytic: bool) -> acb:
        nonlocal calls
        calls += 1
        return integrand(y, analytic)

    # An integral that needs more evaluations is not known.
    found = acb.integral(counted, acb(low), acb(high), eval_limit=1 << 18).real
    work(cost * calls)
    return found


@dataclass(frozen=True)
class Response(Factor):
    """`R_eps`."""

    eps: Fraction
    written_top: Fraction | None = None

    def law(self) -> Finite:
        e = ball(self.eps)
        return mirrored((1 / (1 + e.exp()), 1 / (1 + (-e).exp())), (-e, e))


class Revealing(Factor):
    """`R_{0,δ}`: everything is revealed with probability `δ`, and nothing otherwise."""

    written_top = Fraction(0)

    def law(self) -> Finite:
        lost = self.missing()
        return Finite((1 - lost,), (1 - lost,), (arb(0),), lost, lost, True)


@dataclass(frozen=True)
class Revealed(Revealing):
    """`R_{0,δ}` with a known `δ`."""

    delta: Fraction
    written_missing: Fraction | None = None

    def missing(self) -> Ball:
        return ball(self.delta)


@dataclass(frozen=True)
class CutOff(Revealing):
    """`R_{0,δ}` with the `δ` of Laplace noise within `±A`, lengths in units of its scale."""

    bound: Fraction
    shift: Fraction

    written_missing = None

    def missing(self) -> Ball:
        a, d = ball(self.bound), ball(self.shift)
        whole = -2 * (-a).expm1()
        if self.shift <= self.bound:
            return (d - a).exp() * -(-d).expm1() / whole
        return 1 - (a - d).exp() * -(d - 2 * a).expm1() / whole


@dataclass(frozen=True)
class Noise(Factor):
    """Laplace noise (`cut` None), or `w R_e + (1-w) B_e` with `w` from the length that was cut.

    `cut = 0` is the largest law of range `eps`; `cut = (A - Δ)/b` Laplace noise within `±A`.
    """

    eps: Fraction
    written_top: Fraction | None
    cut: Fraction | None = None

    def law(self) -> Central:
        e = ball(self.eps)
        response = 1 + (-e).exp()
        if self.cut is None:
            return Central(e, response / 2)
        if self.cut == 0:
            return Central(e, arb(0))
        atoms = response * -(-ball(self.cut)).expm1()
        return Central(e, atoms / (atoms - (-e).expm1()))


@dataclass(frozen=True)
class Pairs(Factor):
    """Outcomes with rational masses; what is missing from a sum of 1 is at infinity."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    @cached_property
    def written_missing(self) -> Fraction:  # type: ignore[override]
        """What is at infinity, exactly."""
        both = [(p, q) for p, q in zip(self.p, self.q, strict=True) if p and q]
        return 1 - min(sum((each[side] for each in both), Fraction(0)) for side in (0, 1))

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        both = sorted(zip(self.p, self.q, strict=True))
        return both == sorted(zip(self.q, self.p, strict=True))

    def law(self) -> Finite:
        work(16 * len(self.p))
        reserve_memory(3 * len(self.p))
        merged: dict[Fraction, list[Fraction]] = {}
        for p, q in zip(self.p, self.q, strict=True):
            if p and q:
                sums = merged.setdefault(p / q, [Fraction(0), Fraction(0)])
                sums[0], sums[1] = sums[0] + p, sums[1] + q
        order = sorted(merged)
        over = tuple(ball(merged[r][0]) for r in order)
        under = tuple(ball(merged[r][1]) for r in order)
        z = tuple(ball(r).log() for r in order)
        lost = 1 - sum((merged[r][0] for r in order), Fraction(0))
        back = 1 - sum((merged[r][1] for r in order), Fraction(0))
        return Finite(over, under, z, ball(lost), ball(back), self.symmetric)


@dataclass(frozen=True)
class Geometric(Factor):
    """Discrete Laplace noise, `P(x) ∝ r^|x|`, `r = e^{-1/b}`, shifted by an integer `k`."""

    scale: Fraction
    shift: int
    written_top: Fraction | None

    def top(self, _back: bool = False) -> Ball:
        return ball(self.shift / self.scale)

    def law(self) -> Finite | None:
        k = self.shift
        if k > _MOST_TERMS:
            return None
        work(4 * k)
        reserve_memory(3 * k)
        step = ball(1 / self.scale)
        r = (-step).exp()
        inner = -(-step).expm1() / (1 + r)
        p = [1 / (1 + r)]
        p += [inner * (-j * step).exp() for j in range(1, k)]
        p += [(-k * step).exp() / (1 + r)]
        return mirrored(p[::-1], [(2 * j - k) * step for j in range(k + 1)])


@dataclass(frozen=True)
class DiscreteGaussian(Factor):
    """Integer noise `P(x) ∝ e^{-x²/2σ²}`, shifted by an integer `k`: loss `(k² - 2kx)/2σ²`."""

    sigma: Fraction
    shift: int
    rho: Fraction
    """Its zCDP parameter (Canonne, Kamath and Steinke 2020, proposition 5), as written."""

    unbounded = True

    def moment(self, s: Ball, _back: bool = False) -> Ball | None:
        """`Σ e^{-(x+sk)²/2σ²} e^{s(s+1)k²/2σ²} / Σ e^{-x²/2σ²}`: both sums by their first terms."""
        k, two = self.shift, ball(2 * self.sigma**2)
        lifted = (s * (s + 1) * k * k / two).exp()
        below = self._sum(arb(0))
        over = self._sum(s * k)
        return None if below is None or over is None else lifted * over / below

    def _sum(self, offset: Ball) -> Ball | None:
        """`Σ_x e^{-(x+offset)²/2σ²}`, the tails by an integral."""
        centre = round(-float(offset.mid()))
        reach = int(12 * self.sigma) + 8
        if reach > _MOST_TERMS:
            return None
        work(6 * reach)
        sigma = ball(self.sigma)
        total = arb(0)
        for x in range(centre - reach, centre + reach + 1):
            gap = (x + offset) / sigma
            total += (-gap * gap / 2).exp()
        # Terms fall beyond: each is below the integral over the cell before it.
        beyond = 2 * sigma * (2 * arb.pi()).sqrt() * normal(-(reach - 1) / sigma)
        return total + arb(0).union(beyond)


@dataclass(frozen=True)
class Mixture(Factor):
    """`Σ w N(a, 1)` against `Σ v N(b, 1)`; shifts in units of the noise."""

    p: tuple[tuple[Fraction, Fraction], ...]
    q: tuple[tuple[Fraction, Fraction], ...]

    symmetric = False
    unbounded = True

    @cached_property
    def above(self) -> Fraction:  # type: ignore[override]
        """All shifts lie within this distance: the loss is a mixture of smaller Gaussians'."""
        shifts = [a for a, _ in (*self.p, *self.q)]
        return (max(shifts) - min(shifts)) ** 2

    @cached_property
    def tail(self) -> Fraction:  # type: ignore[override]
        """Far out the outermost terms decide: the loss is linear there, and the noise Gaussian."""
        tops, bottoms = ([a for a, _ in side] for side in (self.p, self.q))
        ends = max(tops) - max(bottoms), min(bottoms) - min(tops)
        return max(Fraction(0), *ends) ** 2

    def top(self, _back: bool = False) -> None:
        return None

    def moment(self, s: Ball, back: bool = False) -> Ball | None:
        """`∫ p^{1+s} q^-s`: a proven quadrature, and the tails by joint convexity."""
        over, under = (self.q, self.p) if back else (self.p, self.q)
        tops = [(ball(a), ball(w)) for a, w in over]
        bottoms = [(ball(b), ball(v)) for b, v in under]
        centres = [(1 + s) * a - s * b for a, _ in tops for b, _ in bottoms]
        low, high = min(float(c.mid()) for c in centres), max(float(c.mid()) for c in centres)
        # So far out that the tails are lost beside the rest, whatever the moment makes of them.
        largest = 0.5 * near(s * (1 + s)) * float(self.above)
        reach = max(16.0, (2.0 * (largest + 0.7 * min(ctx.prec, 256))) ** 0.5)
        left, right = arb(low - reach), arb(high + reach)

        def sums(terms: list[tuple[Ball, Ball]], y: acb) -> acb:
            total = acb(0)
            for a, w in terms:
                total += w * (a * y - a * a / 2).exp()
            return total

        def integrand(y: acb, analytic: bool) -> acb:
            one = sums(tops, y).log(analytic=analytic)
            two = sums(bottoms, y).log(analytic=analytic)
            return (-y * y / 2 + (1 + s) * one - s * two).exp()

        found = integral(integrand, left, right, 6 * (len(tops) + len(bottoms)))
        inside = found / (2 * arb.pi()).sqrt()
        tail = arb(0)
        for a, w in tops:
            for b, v in bottoms:
                c = (1 + s) * a - s * b
                size = (s * (1 + s) * (a - b) ** 2 / 2).exp()
                tail += w * v * size * (normal(left - c) + normal(c - right))
        return inside + arb(0).union(tail)


@dataclass(frozen=True)
class Stated:
    """A black box of which Rényi bounds are stated: `xi + rho α`, or a list of orders."""

    rho: Fraction | None
    xi: Fraction
    curve: tuple[tuple[Fraction, Fraction], ...] = ()

    def at(self, order: Fraction) -> Fraction | None:
        """The bound at an order."""
        if self.rho is not None:
            return self.xi + self.rho * order
        return min((eps for alpha, eps in self.curve if alpha >= order), default=None)


@dataclass(frozen=True)
class Point:
    """`(eps, delta)`, and both as they are written."""

    eps: Fraction
    delta: Fraction
    written_eps: Fraction
    written_delta: Fraction


@dataclass(frozen=True)
class Loss:
    """A composition: Gaussian variance, factors and stated black boxes, each so many times."""

    variance: Fraction = Fraction(0)
    factors: tuple[tuple[Factor, int], ...] = ()
    stated: tuple[tuple[Stated, int], ...] = ()

    def __add__(self, other: Loss) -> Loss:
        return together((self, other))

    def times(self, n: int) -> Loss:
        if n == 0:
            return Loss()
        return Loss(
            n * self.variance,
            tuple((f, n * k) for f, k in self.factors),
            tuple((b, n * k) for b, k in self.stated),
        )

    @property
    def rest(self) -> Loss:
        """Without the Gaussian part."""
        return Loss(Fraction(0), self.factors, self.stated)

    @property
    def core(self) -> Loss | None:
        """What is left when all mass at infinity splits off; None where some does not."""
        rest = tuple((f, n) for f, n in self.factors if not isinstance(f, Revealing))
        whole = all(factor.missing().is_zero() for factor, _ in rest)
        return Loss(self.variance, rest, self.stated) if whole else None

    @property
    def point(self) -> Point | None:
        """`(eps, delta)` of what is `R_{eps,delta}`, as a state or a budget names it."""
        found = {type(factor): factor for factor, n in self.factors if n == 1}
        if not found or len(found) < len(self.factors) or self.variance or self.stated:
            return None
        coin, lost = found.pop(Response, None), found.pop(Revealed, None)
        zero = Fraction(0)
        if found or (coin and coin.written_top is None) or (lost and lost.written_missing is None):
            return None
        return Point(
            coin.eps if isinstance(coin, Response) else zero,
            lost.delta if isinstance(lost, Revealed) else zero,
            (coin and coin.written_top) or zero,
            (lost and lost.written_missing) or zero,
        )

    @property
    def is_identity(self) -> bool:
        return self == Loss()

    @property
    def symmetric(self) -> bool:
        return all(f.symmetric for f, _ in self.factors)

    @property
    def directions(self) -> tuple[bool, ...]:
        """The directions that differ, as values of `back`."""
        return (False,) if self.symmetric else (False, True)


def together(losses: Iterable[Loss]) -> Loss:
    """The composition of many."""
    variance = Fraction(0)
    factors: dict[Factor, int] = {}
    stated: dict[Stated, int] = {}
    for loss in losses:
        variance += loss.variance
        for factor, n in loss.factors:
            factors[factor] = factors.get(factor, 0) + n
        for box, n in loss.stated:
            stated[box] = stated.get(box, 0) + n
    return Loss(variance, tuple(factors.items()), tuple(stated.items()))


def without_common(one: Loss, two: Loss) -> tuple[Loss, Loss]:
    """Two compositions without the variance and the factors that are in both of them."""

    def beyond(loss: Loss, other: Loss) -> Loss:
        there = dict(other.factors)
        counts = ((factor, n - there.get(factor, 0)) for factor, n in loss.factors)
        more = max(Fraction(0), loss.variance - other.variance)
        return Loss(more, tuple((factor, n) for factor, n in counts if n > 0), loss.stated)

    return beyond(one, two), beyond(two, one)
