"""First states: prove that the first state of a filter keeps its promise."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from residua.verify.arithmetic.balls import Ball, ball, bits
from residua.verify.proofs.verdict import Proof, proven, refuted, undecided

_BITS = 200
_NEWTON = 40


def log_conversion(alpha: Ball, rho: Ball, eps: Ball) -> Ball:
    """`ln` of the `delta` that `D_α <= ρ` gives at `eps` (Canonne, Kamath and Steinke 2020)."""
    s = alpha - 1
    return s * (rho - eps) + s * (1 - 1 / alpha).log() - alpha.log()


def renyi_within(alpha: Fraction, rho: Fraction, eps: Fraction, delta: Fraction) -> Proof:
    """Whether divergence `rho` at order `alpha` implies `(eps, delta)`-DP."""
    if rho == 0:
        return proven("nothing can be spent")
    with bits(_BITS):
        found = log_conversion(ball(alpha), ball(rho), ball(eps))
        if found <= ball(delta).log():
            return proven(f"rho at order {float(alpha):g} keeps (eps, delta)")
        if found > ball(delta).log():
            return refuted(f"rho at order {float(alpha):g} is more than (eps, delta) gives")
    return undecided("the conversion is not known well enough")


def zcdp_within(rho: Fraction, eps: Fraction, delta: Fraction) -> Proof:
    """Whether `rho`-zCDP implies `(eps, delta)`-DP, at the best order.

    With `s = α - 1` the exponent of the conversion has the derivative `ρ(1+2s) - eps +
    ln(s/(1+s))`, which rises: its zero is found by Newton's method. Any order is valid.
    """
    if rho == 0:
        return proven("nothing can be spent")
    if not eps > 0:
        return undecided("no conversion for such amounts")
    with bits(_BITS):
        r, e = ball(rho), ball(eps)
        s = _start(r, e)
        for _ in range(_NEWTON):
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
    with bits(_BITS):
        r = ball(rho)
        needed = r + 2 * (r * -ball(delta).log()).sqrt()
        if needed <= ball(eps):
            return proven("rho keeps (eps, delta) by advanced composition")
        if needed > ball(eps):
            return refuted("rho is more than advanced composition allows")
    return undecided("the conversion is not known well enough")
