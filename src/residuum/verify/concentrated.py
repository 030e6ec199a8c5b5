"""The zCDP parameter: the least `ρ` with `D_α <= ρα` at all orders, in both directions.

With `K(s) = ln E e^{sZ}` that is `K(s) <= ρ s (s+1)` for all `s > 0`. `K` is convex, `K(0) = 0`.
Near 0 it is enough that `K'(0) <= ρ` and `K'' <= 2ρ`; beyond, chords of `K` are compared with the
parabola; from where `ρ (s+1)` exceeds the largest loss `z` on, `K(s) <= s z` does.

Randomized response has `K'(s) = e tanh((s+½)e)`, and `tanh(λx) <= λ tanh x` for `λ >= 1`: its
parameter is `K'(0) = e tanh(e/2)`, the mean loss, and sums of such have the sum. What has unbounded
losses counts as the Gaussian that is known to lie above.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from residuum.verify.additive import Cost, Infinite, Unknown, enough_taken, log_moment
from residuum.verify.balls import Ball, ball, bits, near
from residuum.verify.factors import DiscreteGaussian, Factor, Loss, Response
from residuum.verify.laws import Central
from residuum.verify.verdict import Proof, all_of, proven, refuted, undecided

_BITS = (128, 256, 512)
_DEPTH = 30
_MOST = 20_000


def zcdp(spent: Fraction, loss: Loss) -> Proof:
    """Whether `spent` is at least the zCDP parameter of a loss."""
    known = loss.variance / 2
    for box, n in loss.stated:
        if box.rho is None or box.xi:
            return undecided("a Rényi bound that is stated is no zCDP bound")
        known += n * box.rho
    bounded: list[tuple[Factor, int]] = []
    for factor, n in loss.factors:
        above = _gaussian_above(factor)
        if above is None:
            bounded.append((factor, n))
        else:
            known += n * above / 2
    if all(isinstance(factor, Response) for factor, _ in bounded):
        return enough_taken("rho", spent, Cost(known, _means(bounded) if bounded else None))
    if spent < known:
        return refuted("rho falls by less than what is stated or Gaussian takes")
    rest = Loss(factors=tuple(bounded))
    proof = undecided("rho")
    for precision in _BITS:
        with bits(precision):
            backs = (False,) if rest.symmetric else (False, True)
            proof = all_of([_below_parabola(rest, ball(spent - known), back) for back in backs])
        if proof.verdict != "undecided":
            break
    return proof


def _gaussian_above(factor: Factor) -> Fraction | None:
    """The variance of a Gaussian whose parameter is known to be no less."""
    if isinstance(factor, DiscreteGaussian):
        # Canonne, Kamath and Steinke 2020, proposition 5.
        return (factor.shift / factor.sigma) ** 2
    return factor.above


def _means(factors: list[tuple[Factor, int]]) -> Callable[[], Ball]:
    def total() -> Ball:
        whole = arb(0)
        for factor, n in factors:
            assert isinstance(factor, Response)
            if factor.delta:
                raise Infinite("may lose everything, no rho covers it")
            e = ball(factor.eps)
            whole += n * e * (e / 2).tanh()
        return whole

    return total


def _below_parabola(loss: Loss, rho: Ball, back: bool) -> Proof:
    top = arb(0)
    for factor, n in loss.factors:
        largest = factor.top(back)
        if largest is None:
            raise Unknown("no formula for its zCDP parameter")
        top += n * largest
    start = _near_zero(loss, rho, back)
    if isinstance(start, Proof):
        return start
    end = near(top / rho) + 1.0
    if start >= end:
        return proven("rho falls by at least its cost")
    marks = [start]
    while marks[-1] * 2.0 < end:
        marks.append(marks[-1] * 2.0)
    marks.append(end)
    heights = [log_moment(loss, arb(s), back) for s in marks]
    cells = list(zip(marks[:-1], marks[1:], heights[:-1], heights[1:], strict=True))
    tried = 0
    while cells:
        low, high, at_low, at_high = cells.pop()
        if _chord_below(rho, low, high, at_low, at_high):
            continue
        tried += 1
        middle = 0.5 * (low + high)
        if tried > _MOST or not low < middle < high:
            return undecided("the zCDP parameter is not known well enough")
        s = arb(middle)
        at = log_moment(loss, s, back)
        if at > rho * s * (s + 1):
            return refuted(f"rho falls by less than the divergence at order {1 + middle:.6g} asks")
        cells += [(low, middle, at_low, at), (middle, high, at, at_high)]
    return proven("rho falls by at least its cost")


def _chord_below(rho: Ball, low: float, high: float, at_low: Ball, at_high: Ball) -> bool:
    """Whether a chord lies below the parabola: at its ends, and where the gap is least."""
    a, b = arb(low), arb(high)
    slope = (at_high - at_low) / (b - a)
    least = (slope / rho - 1) / 2
    if not (least > a and least < b):
        return bool(rho * a * (a + 1) >= at_low and rho * b * (b + 1) >= at_high)
    return bool(rho * least * (least + 1) - at_low - slope * (least - a) >= 0)


def _near_zero(loss: Loss, rho: Ball, back: bool) -> float | Proof:
    """Up to which `s` the start settles it."""
    first, _ = _cumulants(loss, arb(0), back)
    if first > rho:
        return refuted("rho falls by less than the mean loss")
    if not (first <= rho and rho > 0):
        return undecided("the mean loss is not known well enough")
    radius: float = 1.0 / near(rho) ** 0.5
    for _ in range(_DEPTH):
        # K lies below its chord from 0, or its second derivative below that of the parabola.
        if log_moment(loss, arb(radius), back) <= rho * arb(radius):
            return radius
        _, second = _cumulants(loss, arb(0).union(arb(radius)), back)
        if second <= 2 * rho:
            return radius
        radius *= 0.5
    return undecided("the zCDP parameter is not settled near order 1")


def _cumulants(loss: Loss, s: Ball, back: bool) -> tuple[Ball, Ball]:
    """Mean and variance of the loss tilted by `e^{sZ}`."""
    mean, variance = arb(0), arb(0)
    for factor, n in loss.factors:
        one, two = _tilted(factor, s, back)
        mean += n * one
        variance += n * two
    return mean, variance


def _tilted(factor: Factor, s: Ball, back: bool) -> tuple[Ball, Ball]:
    law = factor.law()
    if law is None:
        raise Unknown("no formula for its zCDP parameter")
    if back:
        law = law.reversed()
    if not law.p_inf.is_zero():
        raise Infinite("may lose everything, no rho covers it")
    zero, one, two = arb(0), arb(0), arb(0)
    if isinstance(law, Central):
        b, e = s + arb(1) / 2, law.e
        odd, even = (b * e).sinh(), (b * e).cosh()
        zero = law.height * 2 * odd / b
        one = law.height * 2 * (e * even / b - odd / b**2)
        two = law.height * 2 * (e * e * odd / b - 2 * e * even / b**2 + 2 * odd / b**3)
        law = law.atoms
    for p, z in zip(law.p, law.z, strict=True):
        weight = p * (s * z).exp()
        zero, one, two = zero + weight, one + weight * z, two + weight * z * z
    mean = one / zero
    return mean, two / zero - mean * mean
