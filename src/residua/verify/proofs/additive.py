"""Filters that subtract: what a loss takes of each amount, derived again and compared.

    pure     the largest |loss|              basic   that, and the mass at infinity
    renyi    D_α, in the worse direction     zcdp    `concentrated.py`

Amounts are rationals. What a filter charges as written (`eps`, `mu²`, `delta`, stated bounds) is
compared exactly, everything else as balls. A state that keeps more than the rule leaves is
refuted: the costs here are not bounds but the costs themselves.
What a Rényi or zCDP bound implies at `(eps, delta)`, for first states, is at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from flint import arb

from residua.verify.arithmetic import BITS, LADDER, Ball, ball, bits, near, nine_digits, upper
from residua.verify.losses.factors import (
    DiscreteGaussian,
    Factor,
    Infinite,
    Loss,
    Response,
    Unknown,
)
from residua.verify.losses.laws import Finite
from residua.verify.proofs.verdict import Proof, prove_at_most, proven, refuted, undecided


@dataclass(frozen=True)
class Cost:
    """What is charged as written, and the rest as a ball, which may be made again at more bits."""

    exact: Fraction
    rest: Callable[[], Ball] = arb
    tight: bool = True
    """Whether it is the cost itself and not a bound."""

    @property
    def upper(self) -> Fraction:
        """A rational that is at least the cost."""
        with bits(LADDER[0]):
            return self.exact + upper(self.rest())

    @property
    def is_exact(self) -> bool:
        """Whether nothing is charged beside what is written."""
        return self.rest is arb


def enough_taken(what: str, spent: Fraction, cost: Cost) -> Proof:
    """Whether an amount fell by at least its cost."""
    left = spent - cost.exact
    enough, less = f"{what} falls by at least its cost", f"{what} falls by less than its cost"
    rests: list[Ball] = []

    def sides() -> tuple[Ball, Ball]:
        rests.append(cost.rest())
        return rests[-1], ball(left)

    found = prove_at_most(sides, enough, less)
    if found.verdict != "refuted":
        return found
    if not cost.tight:
        return undecided(f"{what} falls by less than is known to suffice")
    whole = near(rests[-1]) + float(cost.exact)
    return refuted(f"{what} falls by {nine_digits(spent)}, the cost is {whole:.9g}")


# -- sizes ------------------------------------------------------------------------------------


def largest_loss(loss: Loss) -> Cost:
    """The largest finite |loss| of a composition."""
    if loss.variance or loss.stated:
        raise Infinite("finite losses are unbounded")
    if all(f.written_top is not None for f, _ in loss.factors):
        zero = Fraction(0)
        return Cost(sum((n * (f.written_top or zero) for f, n in loss.factors), zero))

    def either() -> Ball:
        sides = []
        for back in (False, True):
            total = arb(0)
            for factor, n in loss.factors:
                written = factor.written_top
                total += n * (_top(factor, back) if written is None else ball(written))
            sides.append(total)
        return sides[0].max(sides[1]).max(arb(0))

    return Cost(Fraction(0), either)


def _top(factor: Factor, back: bool) -> Ball:
    """The largest finite loss, below 0 where every one is."""
    law = factor.law()
    if isinstance(law, Finite) and law.z:
        top, *others = law.reversed().z if back else law.z
        for loss in others:
            top = top.max(loss)
        return top
    found = factor.top(back)
    if found is None:
        if factor.unbounded:
            raise Infinite("finite losses are unbounded")
        raise Unknown("no formula for its largest loss")
    return found


def missing_mass(loss: Loss) -> Cost:
    """The mass at infinity, summed over the factors."""
    known = Fraction(0)
    others: list[tuple[Factor, int]] = []
    for factor, n in loss.factors:
        if factor.written_missing is None:
            others.append((factor, n))
        else:
            known += n * factor.written_missing
    if not others:
        return Cost(known)

    def rest() -> Ball:
        total = arb(0)
        for factor, n in others:
            total += n * factor.missing()
        return total

    return Cost(known, rest)


def pure(spent: Fraction, loss: Loss) -> Proof:
    """Whether what was taken is at least the largest loss, and nothing is at infinity."""
    finite = enough_taken("what is finite", Fraction(0), missing_mass(loss))
    if finite.verdict != "proven":
        return Proof(finite.verdict, "mass at infinity, which no eps covers")
    return enough_taken("eps", spent, largest_loss(loss))


# -- Rényi ------------------------------------------------------------------------------------


def log_moment(loss: Loss, s: Ball, back: bool) -> Ball:
    """`ln E e^{sZ}` of the factors."""
    total = arb(0)
    for factor, n in loss.factors:
        moment = factor.moment(s, back)
        if moment is None:
            if factor.law() is not None:
                raise Infinite("Rényi divergences are infinite: there is mass at infinity")
            raise Unknown("no formula for its Rényi divergence")
        total += n * moment.log()
    return total


def divergence(loss: Loss, order: Fraction) -> Cost:
    """`D_α` of a composition, in the worse direction."""
    known = loss.variance * order / 2
    for box, n in loss.stated:
        bound = box.at(order)
        if bound is None:
            raise Unknown(f"nothing is stated of the order {float(order):g}")
        known += n * bound
    factors, tight = [], True
    for factor, n in loss.factors:
        if isinstance(factor, DiscreteGaussian):
            # Not the divergence itself, which is less between integers.
            known, tight = known + n * factor.rho * order, False
        elif isinstance(factor, Response) and _reaches_as_written(factor, order):
            known, tight = known + n * (factor.written_top or factor.eps), False
        else:
            factors.append((factor, n))
    if not factors:
        return Cost(known, tight=tight)
    loss = Loss(factors=tuple(factors))

    def rest() -> Ball:
        s = ball(order - 1)
        return reduce(arb.max, [log_moment(loss, s, back) / s for back in loss.directions])

    return Cost(known, rest, tight)


def _reaches_as_written(factor: Response, order: Fraction) -> bool:
    """Whether `D_α` of pure DP, at the float `eps`, is not told from the decimal that is written.

    Divergences of `eps`-DP are at most `eps`: a black box that states it is charged that decimal.
    """
    with bits(LADDER[0]):
        s = ball(order - 1)
        whole = s * ball(factor.written_top or factor.eps)
        return not log_moment(Loss(factors=((factor, 1),)), s, False) < whole


def renyi(order: Fraction, spent: Fraction, loss: Loss) -> Proof:
    """Whether what was taken is at least the divergence at an order."""
    return enough_taken(f"rho at order {float(order):g}", spent, divergence(loss, order))


# -- conversions -----------------------------------------------------------------------------


def log_conversion(alpha: Ball, rho: Ball, eps: Ball) -> Ball:
    """`ln` of the `delta` that `D_α <= ρ` gives at `eps` (Canonne, Kamath and Steinke 2020)."""
    s = alpha - 1
    return s * (rho - eps) + s * (1 - 1 / alpha).log() - alpha.log()


def renyi_within(alpha: Fraction, rho: Fraction, eps: Fraction, delta: Fraction) -> Proof:
    """Whether divergence `rho` at order `alpha` implies `(eps, delta)`-DP."""
    if rho == 0:
        return proven("nothing can be spent")
    return prove_at_most(
        lambda: (log_conversion(ball(alpha), ball(rho), ball(eps)), ball(delta).log()),
        f"rho at order {float(alpha):g} keeps (eps, delta)",
        f"rho at order {float(alpha):g} is more than (eps, delta) gives",
    )


def zcdp_within(rho: Fraction, eps: Fraction, delta: Fraction) -> Proof:
    """Whether `rho`-zCDP implies `(eps, delta)`-DP, at the best order.

    With `s = α - 1` the exponent of the conversion has the derivative `ρ(1+2s) - eps +
    ln(s/(1+s))`, which rises: its zero is found by Newton's method. Any order is valid.
    """
    if rho == 0:
        return proven("nothing can be spent")
    if not eps > 0:
        return undecided("no conversion for such amounts")
    with bits(BITS):
        r, e = ball(rho), ball(eps)
        s = _start(r, e)
        for _ in range(40):
            slope = r * (1 + 2 * s) - e + (s / (1 + s)).log()
            new = s - slope / (2 * r + 1 / (s * (1 + s)))
            s = arb((new if new > 0 else s / 2).mid())
        alpha = 1 + s
        if log_conversion(alpha, r * alpha, e) <= ball(delta).log():
            return proven("rho-zCDP keeps (eps, delta)")
    return undecided("no order was found that keeps (eps, delta)")


def _start(r: Ball, e: Ball) -> Ball:
    """Where the derivative is still negative: Newton's steps from there do not overshoot far."""
    s = arb(1)
    while r * (1 + 2 * s) - e + (s / (1 + s)).log() > 0:
        s = s / 2
    return s


def advanced_within(rho: Fraction, eps: Fraction, delta: Fraction) -> Proof:
    """Whether `rho + 2 sqrt(rho ln(1/delta)) <= eps` (Whitehouse et al. 2023)."""
    return prove_at_most(
        lambda: (ball(rho) + 2 * (ball(rho) * -ball(delta).log()).sqrt(), ball(eps)),
        "rho keeps (eps, delta) by advanced composition",
        "rho is more than advanced composition allows",
    )
