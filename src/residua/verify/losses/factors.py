"""Factors of a loss: independent, each known by its parameters.

A `Loss` is a Gaussian part, kept by its variance `mu²`, factors with multiplicities, and black
boxes of which only Rényi bounds are stated. Each factor gives, at the precision in force,

    law       the tight law (`laws.py`), or None where there are too many outcomes
    moment    E e^{sZ}, `s > 0`, in the direction named
    top       the largest finite loss, and `missing`, the mass at infinity, either way

and, where a filter charges parameters as they are written, those decimals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import acb, arb, ctx

from residua.verify.arithmetic.balls import Ball, ball, near, normal, written
from residua.verify.arithmetic.work_limit import room, work
from residua.verify.losses.laws import Central, Finite, Law

_MOST_TERMS = 1 << 15
"""Of integer noise that is written out; more are beyond the limit of work."""
MOST_CALLS = 1 << 18
"""Of an integrand, before its integral is not known."""


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

    def rational_losses(self) -> tuple[Fraction, ...] | None:
        """The losses of a finite law in the order of its outcomes, where they are rational."""
        return None

    def moment(self, s: Ball, back: bool = False) -> Ball | None:
        """`E e^{sZ}`, of the reversal if `back`; None if infinite or not known."""
        law = self.law()
        if isinstance(law, Central):
            return central_moment(law, s)
        if not isinstance(law, Finite):
            return None
        if back:
            law = law.reversed()
        if not law.p_inf.is_zero():
            return None
        work(2 * len(law.p))
        total = arb(0)
        for p, z in zip(law.p, law.z, strict=True):
            total += p * (s * z).exp()
        return total

    def top(self, back: bool = False) -> Ball | None:
        """The largest finite loss (of the reversal if `back`); None if there is none."""
        law = self.law()
        if law is None:
            return None
        return law.reversed().top if back else law.top

    def missing(self) -> Ball:
        """The larger mass at infinity."""
        law = self.law()
        return arb(0) if law is None else law.p_inf.max(law.q_inf)

    def core(self) -> Factor | None:
        """What is left when mass at infinity splits off; None where it does not."""
        law = self.law()
        whole = law is None or (law.p_inf.is_zero() and law.q_inf.is_zero())
        return self if whole else None


def sure_law(factor: Factor) -> Law:
    """The law of a factor that is known to have one."""
    law = factor.law()
    assert law is not None
    return law


def central_moment(law: Central, s: Ball) -> Ball:
    """`E e^{sZ}` of a law with a density."""
    work(10)
    far = s + arb(1) / 2
    share = (far * law.e).sinh() / (2 * far * (law.e / 2).sinh())
    return law.w * (far * law.e).cosh() / (law.e / 2).cosh() + (1 - law.w) * share


@dataclass(frozen=True)
class Response(Factor):
    """`R_{eps,delta}`."""

    eps: Fraction
    delta: Fraction
    written_eps: Fraction
    written_delta: Fraction

    @property
    def written_top(self) -> Fraction:  # type: ignore[override]
        return self.written_eps

    @property
    def written_missing(self) -> Fraction:  # type: ignore[override]
        return self.written_delta

    def law(self) -> Finite:
        e, kept, lost = ball(self.eps), ball(1 - self.delta), ball(self.delta)
        if self.eps == 0:
            return Finite((kept,), (kept,), (arb(0),), lost, lost, True)
        low, high = kept / (1 + e.exp()), kept / (1 + (-e).exp())
        return Finite((low, high), (high, low), (-e, e), lost, lost, True)

    def rational_losses(self) -> tuple[Fraction, ...]:
        return (-self.eps, self.eps) if self.eps else (self.eps,)

    def core(self) -> Factor:
        zero = Fraction(0)
        return Response(self.eps, zero, self.written_eps, zero)


def is_coin(factor: Factor) -> bool:
    """Whether it is a randomized response, `R_eps`."""
    return isinstance(factor, Response) and factor.eps > 0 and factor.delta == 0


def is_nothing(core: Factor) -> bool:
    """Whether nothing is left beside mass at infinity that split off."""
    return isinstance(core, Response) and core.eps == 0


@dataclass(frozen=True)
class Noise(Factor):
    """Laplace noise (`cut` None), or `w R_e + (1-w) B_e` with `w` from the length that was cut.

    `cut = 0` is the largest law of range `eps`; `cut = (A - Δ)/b` Laplace noise within `±A`.
    """

    eps: Fraction
    written_eps: Fraction | None
    cut: Fraction | None = None

    @property
    def written_top(self) -> Fraction | None:  # type: ignore[override]
        return self.written_eps

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
class CutOff(Factor):
    """`R_{0,δ}` with the `δ` of Laplace noise within `±A`, lengths in units of its scale."""

    bound: Fraction
    shift: Fraction

    written_missing = None

    def law(self) -> Finite:
        a, d = ball(self.bound), ball(self.shift)
        whole = -2 * (-a).expm1()
        if self.shift <= self.bound:
            lost = (d - a).exp() * -(-d).expm1() / whole
        else:
            lost = 1 - (a - d).exp() * -(d - 2 * a).expm1() / whole
        kept = 1 - lost
        return Finite((kept,), (kept,), (arb(0),), lost, lost, True)

    def core(self) -> Factor:
        return Response(Fraction(0), Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Pairs(Factor):
    """Outcomes with rational masses; what is missing from a sum of 1 is at infinity."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    @cached_property
    def written_missing(self) -> Fraction:  # type: ignore[override]
        """What is at infinity, exactly; where that is all and a float, as it is written."""
        both = [(p, q) for p, q in zip(self.p, self.q, strict=True) if p and q]
        lost = 1 - min(sum((each[side] for each in both), Fraction(0)) for side in (0, 1))
        return written(float(lost)) if self._only_delta and Fraction(float(lost)) == lost else lost

    @cached_property
    def _only_delta(self) -> bool:
        """Whether it is `R_{0,δ}`."""
        return all(p == q for p, q in zip(self.p, self.q, strict=True) if p and q) and (
            sum(self.p, Fraction(0)) == sum(self.q, Fraction(0))
        )

    def core(self) -> Factor | None:
        return Response(*(Fraction(0),) * 4) if self._only_delta else super().core()

    @cached_property
    def symmetric(self) -> bool:  # type: ignore[override]
        both = sorted(zip(self.p, self.q, strict=True))
        return both == sorted(zip(self.q, self.p, strict=True))

    def law(self) -> Finite:
        work(16 * len(self.p))
        room(3 * len(self.p))
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
    written_scale: Fraction

    @property
    def written_top(self) -> Fraction:  # type: ignore[override]
        return self.shift / self.written_scale

    def top(self, _back: bool = False) -> Ball:
        return ball(self.shift / self.scale)

    def law(self) -> Finite | None:
        k = self.shift
        if k > _MOST_TERMS:
            return None
        work(4 * k)
        room(3 * k)
        step = ball(1 / self.scale)
        r = (-step).exp()
        inner = -(-step).expm1() / (1 + r)
        p = [1 / (1 + r)]
        p += [inner * (-j * step).exp() for j in range(1, k)]
        p += [(-k * step).exp() / (1 + r)]
        z = [(k - 2 * j) * step for j in range(k + 1)]
        p, z = p[::-1], z[::-1]
        zero = arb(0)
        return Finite(tuple(p), tuple(p[::-1]), tuple(z), zero, zero, True)

    def rational_losses(self) -> tuple[Fraction, ...]:
        k = self.shift
        return tuple((2 * j - k) / self.scale for j in range(k + 1))


@dataclass(frozen=True)
class DiscreteGaussian(Factor):
    """Integer noise `P(x) ∝ e^{-x²/2σ²}`, shifted by an integer `k`: loss `(k² - 2kx)/2σ²`."""

    sigma: Fraction
    shift: int
    written_sigma: Fraction

    unbounded = True

    @property
    def rho(self) -> Fraction:
        """Its zCDP parameter (Canonne, Kamath and Steinke 2020, proposition 5), as written."""
        return (self.shift / self.written_sigma) ** 2 / 2

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

        calls = 0

        def integrand(y: acb, analytic: bool) -> acb:
            nonlocal calls
            calls += 1
            one = sums(tops, y).log(analytic=analytic)
            two = sums(bottoms, y).log(analytic=analytic)
            return (-y * y / 2 + (1 + s) * one - s * two).exp()

        found = acb.integral(integrand, acb(left), acb(right), eval_limit=MOST_CALLS).real
        work(6 * calls * (len(tops) + len(bottoms)))
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
        parts = [Loss(self.variance, stated=self.stated)]
        for factor, n in self.factors:
            core = factor.core()
            if core is None:
                return None
            if not is_nothing(core):
                parts.append(Loss(factors=((core, n),)))
        return together(parts)

    @property
    def is_identity(self) -> bool:
        return self == Loss()

    @property
    def symmetric(self) -> bool:
        return all(f.symmetric for f, _ in self.factors)


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
