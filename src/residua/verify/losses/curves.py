"""Hockey-stick curves `h(e^t)` of single factors, `t >= 0`, in either direction."""

from __future__ import annotations

import math

from flint import arb, ctx

from residua.verify.arithmetic.balls import Ball, ball, near, normal
from residua.verify.arithmetic.work_limit import work
from residua.verify.losses.factors import DiscreteGaussian, Factor, Mixture
from residua.verify.losses.pairs import Sampled


def curve(factor: Factor, t: Ball, back: bool = False) -> Ball | None:
    """`h(e^t)` of a factor, of its reversal if `back`; None where there is no formula."""
    if isinstance(factor, Mixture):
        return _mixture(factor, t, back)
    if isinstance(factor, DiscreteGaussian):
        return _discrete_gaussian(factor, t)
    law = factor.law()
    if law is not None:
        return (law.reversed() if back else law).curve(t)
    if isinstance(factor, Sampled):
        return _sampled(factor, t, back)
    return None


def _sampled(factor: Sampled, t: Ball, back: bool) -> Ball | None:
    """`r h(1 + (x-1)/r)`; back, `r x y h_rev(1/y)` with `y = 1 - (1 - 1/x)/r` where that is > 0."""
    r = ball(factor.rate)
    if not back:
        inner = curve(factor.inner, (1 + t.expm1() / r).log())
        return None if inner is None else r * inner
    y = 1 + (-t).expm1() / r
    if y <= 0:
        return arb(0)
    if not y > 0:
        return None
    inner = curve(factor.inner, -y.log(), True)
    return None if inner is None else r * t.exp() * y * inner


def _mixture(factor: Mixture, t: Ball, back: bool) -> Ball | None:
    """The ratio of densities rises in `y`, so the best test is a half-line up to its crossing."""
    if min(a for a, _ in factor.p) < max(b for b, _ in factor.q):
        return None
    work(40 * (len(factor.p) + len(factor.q)))
    tops = [(ball(a), ball(w)) for a, w in factor.p]
    bottoms = [(ball(b), ball(v)) for b, v in factor.q]
    level = -t if back else t

    # Where the ratio tends to on the left: the weight that both have at the same least shift.
    least = min(b for b, _ in factor.q)
    if least == min(a for a, _ in factor.p):
        share = dict(factor.p)[least] / dict(factor.q)[least]
        if level <= ball(share).log():
            return arb(0) if back else _everything(t)
    at = _sampled_crossing(factor, level) or _crossing(tops, bottoms, level)
    if at is None:
        return None
    x = t.exp()
    over, under = arb(0), arb(0)
    for a, w in tops:
        over += w * (normal(at - a) if back else normal(a - at))
    for b, v in bottoms:
        under += v * (normal(at - b) if back else normal(b - at))
    return (under - x * over) if back else (over - x * under)


def _everything(t: Ball) -> Ball:
    return 1 - t.exp()


def _sampled_crossing(factor: Mixture, level: Ball) -> Ball | None:
    """In closed form for one shift against none: `1 - r + r e^{ay - a²/2} = e^level`."""
    if len(factor.p) != 2 or factor.p[0][0] != 0 or len(factor.q) != 1 or factor.q[0][0] != 0:
        return None
    a, rate = (ball(v) for v in factor.p[1])
    inside = 1 + level.expm1() / rate
    return (inside.log() + a * a / 2) / a if inside > 0 else None


Terms = list[tuple[Ball, Ball]]


def _crossing(tops: Terms, bottoms: Terms, level: Ball) -> Ball | None:
    """A ball that is proven to hold the `y` where the log ratio of densities is `level`."""

    def height(y: Ball) -> tuple[Ball, Ball]:
        (over, rise), (under, fall) = _sums(tops, y), _sums(bottoms, y)
        return (over / under).log() - level, rise / over - fall / under

    at = arb(_about(tops, bottoms, near(level)))
    for _ in range(5):
        value, slope = height(at)
        step = arb((value / slope).mid())
        at = arb((at - step).mid())
        if abs(near(step)) <= 1e-30 * (1.0 + abs(near(at))):
            break
    width = abs(step) + (1 + abs(at)) * arb(2) ** (16 - ctx.prec)
    for _ in range(40):
        if height(at - width)[0] < 0 and height(at + width)[0] > 0:
            return arb((at - width).union(at + width))
        width = 4 * width
    return None


def _sums(terms: Terms, y: Ball) -> tuple[Ball, Ball]:
    total, rise = arb(0), arb(0)
    for a, w in terms:
        term = w * (a * y - a * a / 2).exp()
        total, rise = total + term, rise + a * term
    return total, rise


def _about(tops: Terms, bottoms: Terms, level: float) -> float:
    """The crossing in floats, by bisection."""
    sides = [[(near(a), near(w)) for a, w in terms if near(w) > 0.0] for terms in (tops, bottoms)]

    def height(y: float) -> float:
        logs = []
        for terms in sides:
            parts = [math.log(w) + a * y - a * a / 2.0 for a, w in terms]
            most = max(parts)
            logs.append(most + math.log(sum(math.exp(p - most) for p in parts)))
        return logs[0] - logs[1] - level

    low, high = -1.0, 1.0
    while height(low) > 0.0 and low > -1e12:
        low *= 2.0
    while height(high) < 0.0 and high < 1e12:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if height(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def _discrete_gaussian(factor: DiscreteGaussian, t: Ball) -> Ball | None:
    """`Σ (p(x) - e^t q(x))_+`, which is a sum over `x` below a crossing; symmetric."""
    k = factor.shift
    sigma = ball(factor.sigma)
    whole = factor._sum(arb(0))
    if whole is None:
        return None
    # (k² - 2kx)/2σ² > t
    edge = int(near((ball(k * k) - 2 * sigma * sigma * t) / (2 * k)) // 1) + 2
    start = min(edge, 0) - int(12 * factor.sigma) - 8
    work(6 * (edge - start))
    total = arb(0)
    for x in range(start, edge + 1):
        gap = (-(x * x) / (2 * sigma * sigma)).exp() - (
            t - (x - k) * (x - k) / (2 * sigma * sigma)
        ).exp()
        total += gap.max(arb(0))
    rest = sigma * (2 * arb.pi()).sqrt() * normal(start / sigma)
    return (total + arb(0).union(rest)) / whole
