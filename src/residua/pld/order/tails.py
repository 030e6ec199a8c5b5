"""Right tails: where one curve lies below another from some point on, and where it cannot.

Let `P` of a mixture have weight `w` on its largest shift `a`, and `Q` weight `v` on its largest
`b`, `s = a - b` apart. On upper half-lines `A`

    P(A) <= N(a)(A),   Q(A) >= v N(b)(A)    so the mixture is below `G_s` shifted by `ln 1/v`,
    P(A) >= w N(a)(A), Q(A) <= N(b)(A)      so its curve is above that of `w` times `G_s`
                                            shifted by `ln w`.

Both survive composition: a curve of a composition is a mean of curves of any of its factors. So
the finite part of a composition is below `G_m` shifted by `z` and above `W` times `G_m` shifted by
`z' + ln W`, where `m²` sums the `s²` and the Gaussian part, `z` the largest losses of everything
bounded and the `ln 1/v`, `W` the product of the `w`, and `z'` is 0, since every PLD is above `Id`
(the least losses of atoms with mass at infinity, whose finite part alone may not be one). For the
upper bound `D` and no shift serve as well, and for the lower bound any of the mixtures.

With `y_m = (t-z)/m - m/2` and `y_mu = (t-z'-ln W)/mu - mu/2` the curve of `G_m` at `t` is

    g(y_m, m) = ∫ phi(y_m + u) (1 - e^{-mu}) du  over u > 0,

which rises in `m` and satisfies `g(y, m) <= e^{-(y²-y'²)/2} g(y', m)` for `y >= y' >= 0`. Hence for
`m < mu` the first curve is below `W` times the second as soon as `y_m >= y_mu >= 0` and
`y_m² - y_mu² >= 2 ln 1/W`, and stays there: `y_m - y_mu` and `y_m + y_mu` increase with `t`.

A sharper upper bound: where the observation is past `x0`, `P` has at most the density of
`κ N(a)`, with `κ = w + η` and `η` what the other components have there, and elsewhere the loss is
at most `t0`, its bound at `x0`. So the mixture is below `κ` times `G_s` shifted by `ln κ/v`, plus
a unit mass at `t0`; a composition of `n` is below `2^n` terms, each of them a weighted Gaussian.
A share of the second curve is set against each of them. Terms of the same `m = mu` are fine if
their shift is less: `y_m - y_mu` is then a positive constant.

In the end the larger `m` wins, and of two equal ones the larger shift `z* = Σ ln w/v + z`, because
`η` may be any positive number and the other terms have a smaller `m`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from residua.pld.arithmetic import FEW
from residua.pld.curve.support_ends import (
    largest_loss_bounds,
    largest_loss_exceeds,
    mass_at_infinity_within,
)
from residua.pld.families.atoms import Atoms
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.order.factor_lemmas import laws, variance_above
from residua.pld.pld import ACCURACY, Pld

_GRAIN = 1e-12
"""Relative allowance for the rounding of `y`, far more than it takes."""
_SAFE = 1e-9
"""The same for logarithms of weights and for sums of many terms."""
_FAR = 1e6
"""Tails that do not lie in order from there on are not told apart."""
_EXCESSES = (0.02, 0.2, 1.0, 5.0)
"""`η/w`: a small one for tails that are close, a large one to start early."""
_LEVELS = (0.5, 0.75, 0.9, 0.97)
"""Where near its largest loss the bounded part is taken to be, relative to that."""
_SHARES = 0.5 ** np.arange(6.0)
"""How much of the mixtures a lower bound may keep: fewer are heavier nearby."""


@dataclass(frozen=True)
class Tail:
    """`weight` times `G_m` shifted by `shift`; floats on the safe side of a bound."""

    variance: Fraction
    shift: float
    log_weight: float = 0.0


@dataclass(frozen=True)
class End:
    """The far end of a mixture: `s²`, and the weights there of `P` and of `Q`."""

    variance: Fraction
    log_p: float
    log_q: float


@lru_cache(maxsize=256)
def end(mixture: GaussianMixture) -> End:
    """Its slope and weights as the observation grows."""
    p, q = laws(mixture)
    a, b = max(p), max(q)
    return End((a - b) ** 2, _log(p[a]), _log(q[b]))


def _near_and_far(mixture: GaussianMixture, excess: float) -> tuple[float, Tail]:
    """`t0`, and `κ` times a Gaussian, with `κ = w (1 + excess)`."""
    p, q = laws(mixture)
    a, b = max(p), max(q)
    others = [(float(a - i), float(a + i) / 2, _log(w)) for i, w in p.items() if i != a]
    one = end(mixture)
    share = one.log_p + math.log(excess / max(len(others), 1))
    place = max((half + (log_w - share) / gap for gap, half, log_w in others), default=float(b))
    place += _SAFE * (1.0 + abs(place))
    shift = one.log_p + math.log1p(excess) - one.log_q
    size = float(a - b) * (abs(place) + float(abs(a + b))) + abs(shift)
    limit = float(a - b) * (place - float(a + b) / 2) + shift
    far = Tail(one.variance, shift + _SAFE * size, one.log_p + math.log1p(excess) + _SAFE)
    return limit + _SAFE * (1.0 + size), far


def _log(weight: Fraction) -> float:
    """`ln weight` of a weight in `(0, 1]`, to `_GRAIN`."""
    return math.log1p(float(weight - 1)) if weight > Fraction(1, 2) else math.log(weight)


def _split(pld: Pld) -> tuple[Pld, list[tuple[GaussianMixture, int]]]:
    """The bounded factors, and the mixtures whose right tail is not."""
    mixtures = [
        (f, n)
        for f, n in pld.terms.items()
        if isinstance(f, GaussianMixture) and f.top_bounds[1] == math.inf
    ]
    far = {f for f, _ in mixtures}
    return Pld(None, {f: n for f, n in pld.terms.items() if f not in far}), mixtures


def tails_above(pld: Pld) -> Iterator[list[Tail]]:
    """Upper bounds on the finite part, each a sum."""
    bounded, mixtures = _split(pld)
    top = bounded._evaluator._top
    shift = top + sum(-n * end(f).log_q for f, n in mixtures)
    near = sum((n * end(f).variance for f, n in mixtures), pld._exact_variance)
    most = sum((n * variance_above(f) for f, n in mixtures), pld._exact_variance)
    yield [Tail(near, shift + _GRAIN * abs(shift))]
    if most > near:
        yield [Tail(most, top)]
    if mixtures and math.prod(n + 1 for _, n in mixtures) <= FEW:
        for excess in _EXCESSES:
            terms = [Tail(pld._exact_variance, top)]
            for f, n in mixtures:
                limit, far = _near_and_far(f, excess)
                terms = [
                    Tail(
                        one.variance + k * far.variance,
                        one.shift + k * far.shift + (n - k) * limit,
                        one.log_weight + k * far.log_weight + math.log(math.comb(n, k)) + _SAFE,
                    )
                    for one, k in product(terms, range(n + 1))
                ]
            yield terms


def tails_below(pld: Pld) -> list[Tail]:
    """Lower bounds on the finite part, from all of the mixtures or from some."""
    bounded, mixtures = _split(pld)
    least = 0.0
    for f, n in bounded.terms.items():
        if isinstance(f, Atoms) and f.mass_at_infinity > 0:
            least -= n * max(f.reverse().top, 0.0) * (1.0 + _GRAIN)
    ends = [(end(f), n) for f, n in mixtures]
    ends.sort(key=lambda pair: -pair[0].log_p / float(pair[0].variance))
    total = sum(n for _, n in ends)
    made = []
    for kept in sorted({0, *(math.ceil(total * share) for share in _SHARES)}):
        variance, log_weight, left = pld._exact_variance, 0.0, kept
        for one, n in ends:
            used = min(n, left)
            left -= used
            variance += used * one.variance
            log_weight += used * one.log_p * (1.0 + _GRAIN)
        if variance > 0:
            made.append(Tail(variance, least + log_weight, log_weight))
    return made


def raised_below(pld: Pld) -> list[Tail]:
    """The same with the losses of bounded factors close to their largest, at their probability.

    `P(Z >= z)` is at least what the curve is at `e^z` above the mass at infinity.
    """
    bounded, mixtures = _split(pld)
    top = bounded._evaluator._top
    if not top > 0.0:
        return []
    places = top * np.array(_LEVELS)
    lo, _ = bounded._evaluator.right(places, 0.0, ACCURACY)
    lo = (lo - float(bounded.mass_at_infinity_bounds.hi)) * (1.0 - _SAFE)
    bare = tails_below(Pld(pld.gaussian, dict(mixtures)))
    return [
        Tail(one.variance, one.shift + float(z), one.log_weight + math.log(w) - _SAFE)
        for one, (z, w) in product(bare, zip(places, lo, strict=True))
        if w > 0.0
    ]


def tail_start(a: Pld, b: Pld) -> float | None:
    """A `t >= 0` from which `h_a <= h_b` for certain; None if that is not known."""
    if b.is_infinite:
        return 1e-12
    if not mass_at_infinity_within(a, b):
        return None
    if a._evaluator._top < math.inf:
        return max(a._evaluator._top, 1e-12)
    above = list(tails_above(a))
    for below in (tails_below, raised_below):
        pairs = product(above, below(b))
        best = min((max(_start(t, one, len(s)) for t in s) for s, one in pairs), default=math.inf)
        if best < math.inf:
            return best
    return _covered(a, float(b.mass_at_infinity_bounds.lo))


def _covered(a: Pld, floor: float) -> float | None:
    """A `t` from which the curve of `a` is below `floor`."""
    if not float(a.mass_at_infinity_bounds.hi) < floor:
        return None
    t = np.arange(1.0, 27.0) ** 2
    _, hi = a._evaluator.right(t, 0.0, ACCURACY)
    covered = np.flatnonzero(hi <= floor)
    return float(t[covered[0]]) if covered.size else None


def _start(above: Tail, below: Tail, count: int) -> float:
    """From where `count` times the first is below the second (see the docstring above), or inf."""
    if above.variance == 0:
        return max(above.shift + _GRAIN * abs(above.shift), 1e-12)
    if above.variance > below.variance:
        return math.inf
    m, mu = math.sqrt(above.variance), math.sqrt(below.variance)
    z, low = above.shift, below.shift
    needed = math.log(count) + above.log_weight - below.log_weight
    needed += _SAFE * (1.0 + abs(needed))

    def past(t: float) -> bool:
        y_m, y_mu = (t - z) / m - 0.5 * m, (t - low) / mu - 0.5 * mu
        slack = _GRAIN * ((t + abs(z)) / m + m + (t + abs(low)) / mu + mu)
        lead = y_m - y_mu
        if above.variance == below.variance:
            lead = (low - z) / m
        lead -= slack
        if not (lead >= 0.0 and y_mu >= slack):
            return False
        return 0.5 * lead * (y_m + y_mu - slack) >= needed

    near, far = 0.0, 1.0 / 1024.0
    while not past(far):
        near, far = far, 2.0 * far
        if far > _FAR:
            return math.inf
    while far - near > 1e-3 * far:
        middle = 0.5 * (near + far)
        near, far = (near, middle) if past(middle) else (middle, far)
    return far


def tail_escapes(a: Pld, b: Pld) -> bool:
    """Whether the right tail of `a` provably rises above that of `b` in the end.

    Mass at infinity at least that of `b`, and beyond it a heavier tail: a larger `m`, or a
    larger shift with the same `m`, or a larger greatest loss where both are bounded.
    """
    if a.is_infinite or b.is_infinite:
        return a.is_infinite and not b.is_infinite
    if a.mass_at_infinity_bounds.lo > b.mass_at_infinity_bounds.hi:
        return True
    if not mass_at_infinity_within(b, a):
        return False
    (bounded_a, mine), (bounded_b, theirs) = _split(a), _split(b)
    m_a = sum((n * end(f).variance for f, n in mine), a._exact_variance)
    m_b = sum((n * end(f).variance for f, n in theirs), b._exact_variance)
    if m_a != m_b:
        return m_a > m_b
    if m_a == 0:
        return largest_loss_exceeds(a, b)
    if dict(mine) == dict(theirs):
        return largest_loss_exceeds(bounded_a, bounded_b)
    shift = largest_loss_bounds(bounded_a)[0] - largest_loss_bounds(bounded_b)[1]
    size = abs(bounded_a._evaluator._top) + abs(bounded_b._evaluator._top)
    for sign, mixtures in ((1.0, mine), (-1.0, theirs)):
        for f, n in mixtures:
            one = end(f)
            shift += sign * n * (one.log_p - one.log_q)
            size += n * (abs(one.log_p) + abs(one.log_q))
    return shift > _GRAIN * size
