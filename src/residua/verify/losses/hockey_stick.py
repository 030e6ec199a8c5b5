"""Heights `h(e^t)` of compositions, enclosed: a sum over the outcomes of all but one part.

Mass at infinity is split off first, `h = lost + (1 - lost) h_core`. Of the rest at most
one part may have a density (a Gaussian, one factor with a known curve, or Laplace noise beside
a Gaussian, whose rise is known): with outcomes
`(p_i, z_i)` of the others and its curve `f`, `h(e^t) = p_inf + Σ p_i f(t - z_i)`. Where all parts
are finite the outcomes are dealt into two lists, and the curve of the second is read off sums over
its largest losses.
Curves of single factors are for `t >= 0`, in either direction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

from flint import arb, ctx

from residua.provable import MOST_ATOMS
from residua.verify.arithmetic import Ball, ball, bits, near, normal, reserve_memory, work
from residua.verify.losses.factors import (
    DiscreteGaussian,
    Factor,
    Loss,
    Mixture,
    Response,
    Revealing,
    Unknown,
    sure_law,
)
from residua.verify.losses.laws import Central, Finite, Law, composition, gaussian_curve, mirrored
from residua.verify.losses.pairs import Sampled

Curve = Callable[[Ball], Ball]


def larger_height(loss: Loss, t: Ball) -> Ball | None:
    """The larger `h(e^t)` of a composition and its reversal; None where there is no formula."""
    curves = [curve_of(loss, back) for back in loss.directions]
    heights = [each(t) for each in curves if each is not None]
    return reduce(arb.max, heights) if len(heights) == len(curves) else None


def split(loss: Loss) -> tuple[Ball, Loss]:
    """The mass at infinity that splits off, and what is left."""
    log_kept, parts = arb(0), []
    for factor, n in loss.factors:
        if isinstance(factor, Revealing):
            log_kept += n * (-factor.missing()).log1p()
        else:
            parts.append((factor, n))
    return -log_kept.expm1(), Loss(loss.variance, tuple(parts), loss.stated)


def curve_of(loss: Loss, back: bool = False) -> Curve | None:
    """The curve `h(e^t)` of a composition, of its reversal if `back`; None without a formula."""
    lost, core = split(loss)
    if loss.stated:
        return None
    finite: list[Finite] = []
    smooth: list[Curve] = []
    mu = ball(loss.variance).sqrt()
    noisy = bool(loss.variance)
    for factor, n in core.factors:
        law = factor.law()
        if noisy and isinstance(law, Central) and n == 1:
            # Laplace noise and the like beside a Gaussian: what it adds to that one's curve.
            noisy, rise = False, law.rise
            smooth.append(lambda at, rise=rise: gaussian_curve(at, mu) + rise(at, mu)[0])  # type: ignore[misc]
        elif isinstance(law, Finite):
            if _outcomes(factor, law, n) > MOST_ATOMS:
                return None
            power = _power(factor, law, n)
            finite.append(power.reversed() if back else power)
        elif n == 1:
            smooth.append(_anywhere(factor, back))
        else:
            return None
    if noisy:
        smooth.append(lambda at: gaussian_curve(at, mu))
    if len(smooth) > 1:
        return None
    lists = _in_short_lists(finite, 1 if smooth else 2)
    if lists is None:
        return None
    inner = smooth[0] if smooth else lists.pop().curve if len(lists) > 1 else None
    outer = lists[0] if lists else None

    def height(t: Ball) -> Ball:
        if outer is None:
            return inner(t) if inner else (-t.expm1()).max(arb(0))
        if inner is None:
            return outer.curve(t)
        work(len(outer.z))
        beside = (p * inner(t - z) for p, z in zip(outer.p, outer.z, strict=True))
        return sum(beside, outer.p_inf)

    return lambda t: lost + (1 - lost) * height(t)


def law_of(loss: Loss, most: int = MOST_ATOMS) -> Callable[[], Law] | None:
    """How to make the law of a composition of factors, if it has no more outcomes than that."""
    if len(loss.factors) == 1 and loss.factors[0][1] == 1:
        factor = loss.factors[0][0]
        with bits(64):
            known = factor.law()
        return None if known is None else partial(sure_law, factor)
    count = 1
    with bits(64):
        for factor, n in loss.factors:
            law = factor.law()
            if not isinstance(law, Finite):
                return None
            count *= _outcomes(factor, law, n)
    if count > most:
        return None
    return lambda: composition([_power(f, sure_law(f), n) for f, n in loss.factors])


def _outcomes(factor: Factor, law: Finite, n: int) -> int:
    """How many outcomes so many copies have; for large ones at least a large number."""
    return n + 1 if isinstance(factor, Response) else len(law.z) ** min(n, 64)


def _power(factor: Factor, law: Law, n: int) -> Finite:
    """The law of so many copies."""
    assert isinstance(law, Finite)
    return coins(law, n) if isinstance(factor, Response) else composition([law] * n)


def coins(law: Finite, n: int) -> Finite:
    """Copies of one randomized response: binomial."""
    work(4 * n)
    reserve_memory(3 * n)
    low, high = law.p
    p = [arb(n).bin(k) * high**k * low ** (n - k) for k in range(n + 1)]
    return mirrored(p, [(2 * k - n) * law.z[1] for k in range(n + 1)])


def _in_short_lists(laws: list[Finite], most: int) -> list[Finite] | None:
    """Composed into so many lists of outcomes, none too long."""
    lists: list[list[Finite]] = [[] for _ in range(most)]
    sizes = [1] * most
    for law in sorted(laws, key=lambda each: -len(each.z)):
        at = sizes.index(min(sizes))
        lists[at].append(law)
        sizes[at] *= len(law.z)
        if sizes[at] > 8 * MOST_ATOMS:
            return None
    return [composition(each) for each in lists if each]


def _anywhere(factor: Factor, back: bool) -> Curve:
    """The curve of a factor at any `t`; vague where it has none."""

    def height(t: Ball) -> Ball:
        if t >= 0:
            found = curve(factor, t, back)
        elif t <= 0:
            found = curve(factor, -t, not back)
            found = None if found is None else -t.expm1() + t.exp() * found
        else:
            # Around 0, between its ends: curves fall.
            found = height(arb(t.lower())).union(height(arb(t.upper())))
        return arb(0).union(arb(1)) if found is None else found

    return height


# -- curves of single factors --------------------------------------------------------------------


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


def known_curve(factor: Factor, t: Ball, back: bool = False) -> Ball:
    """`h(e^t)` of a factor that is known to have a formula for it."""
    found = curve(factor, t, back)
    if found is None:
        raise Unknown("no formula for its curve")
    return found


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
            return arb(0) if back else 1 - t.exp()
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

    low, high = arb(-1), arb(1)
    while not height(low)[0] < 0 and low > -1e12:
        low *= 2
    while not height(high)[0] > 0 and high < 1e12:
        high *= 2
    at, step = (low + high) / 2, high - low
    for _ in range(60):
        # Newton's method, or half of the bracket where that leaves it.
        value, slope = height(at)
        low, high = (at, high) if value < 0 else (low, at)
        before, at = at, arb((at - value / slope).mid())
        if not low <= at <= high:
            at = arb(((low + high) / 2).mid())
        step = at - before
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
