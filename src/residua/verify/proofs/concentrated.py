"""The zCDP parameter: the least `ρ` with `D_α <= ρα` at all orders, in both directions.

With `K(s) = ln E e^{sZ}` that is `K(s) <= ρ s (s+1)` for all `s > 0`. `K` is convex, `K(0) = 0`.
From 0 on it is enough that `K'(0) <= ρ` and `K'' <= 2ρ`, and `K''` grows by a factor of at most
`e^{rw}` over a cell of width `w` if losses lie within a range `r`, as `|E(Z-EZ)³| <= r Var Z`.
Beyond, chords of `K` are compared with the parabola; from where `ρ (s+1)` exceeds the largest loss
`z` on, `K(s) <= s z` does.

Randomized response has `K'(s) = e tanh((s+½)e)`, and `tanh(λx) <= λ tanh x` for `λ >= 1`: its
parameter is `K'(0) = e tanh(e/2)`, the mean loss, and sums of such have the sum. What has unbounded
losses counts as the Gaussian that is known to lie above.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from flint import arb, arb_series

from residua.verify.arithmetic import Ball, ball, near, work
from residua.verify.losses.factors import (
    DiscreteGaussian,
    Factor,
    Infinite,
    Loss,
    Response,
    Revealing,
    Unknown,
)
from residua.verify.losses.laws import Finite
from residua.verify.proofs.additive import Cost, enough_taken, log_moment
from residua.verify.proofs.verdict import (
    Proof,
    all_of,
    at_growing_precision,
    prove_below,
    proven,
    refuted,
    undecided,
)


def zcdp(spent: Fraction, loss: Loss) -> Proof:
    """Whether `spent` is at least the zCDP parameter of a loss."""
    if any(isinstance(factor, Revealing) for factor, _ in loss.factors):
        raise Infinite("may reveal everything, which no rho covers")
    known = loss.variance / 2
    for box, n in loss.stated:
        if box.rho is None or box.xi:
            return undecided("a Rényi bound that is stated is no zCDP bound")
        known += n * box.rho
    bounded: list[tuple[Factor, int]] = []
    lifted: list[Factor] = []
    for factor, n in loss.factors:
        above = _gaussian_above(factor)
        if above is None:
            bounded.append((factor, n))
        else:
            known += n * above / 2
            lifted.append(factor)
    if spent < known:
        # They come to that together, at order 1 or at large ones, if each does.
        reached = all(isinstance(f, DiscreteGaussian) or f.tail == f.above for f in lifted)
        why = "rho falls by less than what is stated or Gaussian takes"
        return refuted(why) if reached else undecided(why)
    if all(isinstance(factor, Response) for factor, _ in bounded):
        # All at order 1, where discrete Gaussians have their parameter but mixtures do not.
        tight = all(isinstance(factor, DiscreteGaussian) for factor in lifted)
        return enough_taken("rho", spent, Cost(known, _means(bounded) if bounded else arb, tight))
    rest = Loss(factors=tuple(bounded))
    proof = at_growing_precision(
        lambda: all_of([_below_parabola(rest, spent - known, back) for back in rest.directions])
    )
    if proof.verdict == "refuted" and lifted:
        return undecided(f"not shown through a loss above it: {proof.reason}")
    return proof


def _gaussian_above(factor: Factor) -> Fraction | None:
    """The variance of a Gaussian whose parameter is known to be no less."""
    if isinstance(factor, DiscreteGaussian):
        return 2 * factor.rho
    return factor.above


def _means(factors: list[tuple[Factor, int]]) -> Callable[[], Ball]:
    def total() -> Ball:
        parts = ((n, ball(factor.eps)) for factor, n in factors if isinstance(factor, Response))
        return sum((n * e * (e / 2).tanh() for n, e in parts), arb(0))

    return total


def _below_parabola(loss: Loss, most: Fraction, back: bool) -> Proof:
    rho, top = ball(most), arb(0)
    for factor, n in loss.factors:
        largest = factor.top(back)
        if largest is None:
            raise Unknown("no formula for its zCDP parameter")
        top += n * largest
    end = near(top / rho) + 1.0
    start = _near_zero(loss, rho, back, end)
    if isinstance(start, Proof):
        return start
    if start >= end:
        return proven("rho falls by at least its cost")

    def tangent(s: Ball) -> Callable[[Ball], Ball]:
        return lambda other: rho * (s * (s + 1) + (2 * s + 1) * (other - s))

    marks = [start]
    while marks[-1] < end:
        marks.append(min(2.0 * marks[-1], end))
    moment = partial(log_moment, loss, back=back)
    return all_of([prove_below(moment, tangent, *cell, "order - 1") for cell in pairwise(marks)])


def _near_zero(loss: Loss, rho: Ball, back: bool, end: float) -> float | Proof:
    """Up to which `s` the start settles it."""
    first = _cumulants(loss, 0.0, back)[0]
    if first > rho:
        return refuted("rho falls by less than the mean loss")
    if not (first <= rho and rho > 0):
        return undecided("the mean loss is not known well enough")
    reached = _bends_less(loss, rho, back, end)
    if reached > 0.0:
        return reached
    radius: float = 1.0 / near(rho) ** 0.5
    # K lies below its chord from 0, perhaps a billionth as long.
    for _ in range(30):
        if log_moment(loss, arb(radius), back) <= rho * arb(radius):
            return radius
        radius *= 0.5
    return undecided("the zCDP parameter is not settled near order 1")


def _bends_less(loss: Loss, rho: Ball, back: bool, end: float) -> float:
    """Up to which `s` all of `K'' <= 2ρ`: cell by cell, as `K''' <= r K''`."""
    tops = [(factor.top(), factor.top(True)) for factor, _ in loss.factors]
    most = reduce(arb.max, [one + two for one, two in tops if one is not None and two is not None])
    at, width = 0.0, 0.125
    while at < end:
        if _cumulants(loss, at, back)[1] * (most * width).exp() <= 2 * rho:
            at += width
            width = max(width, 0.125 * at)
        else:
            width *= 0.5
            if width < 1e-3 * (at + 1.0):
                break
    return at


def _cumulants(loss: Loss, s: float, back: bool) -> tuple[Ball, Ball]:
    """Mean and variance of the loss tilted by `e^{sZ}`: `K'(s)` and `K''(s)`."""
    laws = [factor.law() for factor, _ in loss.factors]
    if None in laws:
        raise Unknown("no formula for its zCDP parameter")
    work(sum(20 * len(law.z) if isinstance(law, Finite) else 100 for law in laws))
    at: Any = arb_series([arb(s), arb(1)], 3)
    moments: Any = log_moment(loss, at, back)
    _, mean, half = moments.coeffs()
    return mean, 2 * half
