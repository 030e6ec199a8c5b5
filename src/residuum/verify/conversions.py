"""First states: that what a filter starts with keeps what it promises."""

from __future__ import annotations

from fractions import Fraction
from math import log

from flint import arb

from residuum.verify.balls import Ball, ball, bits
from residuum.verify.verdict import Proof, proven, refuted, undecided

_BITS = 200


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
            return refuted(f"rho at order {float(alpha):g} does not keep (eps, delta)")
    return undecided("the conversion is not known well enough")


def zcdp_within(rho: Fraction, eps: Fraction, delta: Fraction) -> Proof:
    """Whether `rho`-zCDP implies `(eps, delta)`-DP, at the best order found."""
    if rho == 0:
        return proven("nothing can be spent")
    if not rho > 0 or not eps > 0:
        return undecided("no conversion for such amounts")
    best: tuple[float, float] | None = None
    r, e = float(rho), float(eps)
    start = max((e - r) / (2 * r), 1e-9)
    for k in range(-400, 401):
        s = start * 1.02**k
        value = s * (r * (1 + s) - e) + s * log(s / (1 + s)) - log(1 + s)
        if best is None or value < best[1]:
            best = s, value
    assert best is not None
    low, high = best[0] / 1.02, best[0] * 1.02
    for _ in range(80):
        a, b = low + (high - low) * 0.382, low + (high - low) * 0.618
        if _exponent(a, r, e) <= _exponent(b, r, e):
            high = b
        else:
            low = a
    with bits(_BITS):
        alpha = 1 + arb(0.5 * (low + high))
        if log_conversion(alpha, ball(rho) * alpha, ball(eps)) <= ball(delta).log():
            return proven("rho-zCDP keeps (eps, delta)")
    return undecided("no order was found that keeps (eps, delta)")


def _exponent(s: float, r: float, e: float) -> float:
    return s * (r * (1 + s) - e) + s * log(s / (1 + s)) - log(1 + s)


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
