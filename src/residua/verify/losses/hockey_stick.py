"""Heights `h(e^t)` of compositions, enclosed: a sum over the outcomes of all but one part.

Mass at infinity is split off first, `h = lost + (1 - lost) h_core`. Of the rest at most
one part may have a density (a Gaussian, one factor with a known curve, or Laplace noise beside
a Gaussian, whose rise is known): with outcomes
`(p_i, z_i)` of the others and its curve `f`, `h(e^t) = p_inf + Σ p_i f(t - z_i)`. Where all parts
are finite the outcomes are dealt into two lists, and the curve of the second is read off sums over
its largest losses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from flint import arb

from residua.verify.arithmetic.balls import Ball, ball, near
from residua.verify.arithmetic.work_limit import room, work
from residua.verify.losses.curves import curve
from residua.verify.losses.factors import Factor, Loss, Response
from residua.verify.losses.laws import Central, Finite, composed, gaussian_curve

_MOST_ATOMS = 1 << 14
_MOST_DEALT = 1 << 17

Parts = list[tuple[Factor, int]]
Curve = Callable[[Ball], Ball]


def heights(loss: Loss, t: Ball) -> tuple[Ball, Ball] | None:
    """`h(e^t)` of a composition and of its reversal; None where there is no formula."""
    if loss.stated:
        return None
    lost, parts = split(loss)
    there = _height(parts, loss, t, False)
    if there is None:
        return None
    back = there if loss.symmetric else _height(parts, loss, t, True)
    if back is None:
        return None
    return lost + (1 - lost) * there, lost + (1 - lost) * back


def split(loss: Loss) -> tuple[Ball, Parts]:
    """The mass at infinity that splits off, and what is left."""
    kept, parts = arb(1), []
    for factor, n in loss.factors:
        core = factor.core()
        if core is None or core is factor:
            parts.append((factor, n))
            continue
        kept *= (1 - factor.missing()) ** n
        if not (isinstance(core, Response) and core.eps == 0):
            parts.append((core, n))
    return 1 - kept, parts


def _height(parts: Parts, loss: Loss, t: Ball, back: bool) -> Ball | None:
    finite: list[Finite] = []
    smooth: list[Curve] = []
    mu = ball(loss.variance).sqrt()
    noisy = bool(loss.variance)
    for factor, n in parts:
        law = factor.law()
        if noisy and isinstance(law, Central) and n == 1:
            # Laplace noise and the like beside a Gaussian: what it adds to that one's curve.
            noisy, rise = False, law.rise
            smooth.append(lambda at, rise=rise: gaussian_curve(at, mu) + rise(at, mu)[0])  # type: ignore[misc]
            continue
        if isinstance(law, Finite):
            power = powered(factor, law, n)
            if power is None:
                return None
            finite.append(power.reversed() if back else power)
        elif n == 1:
            smooth.append(_anywhere(factor, back))
        else:
            return None
    if noisy:
        smooth.append(lambda at: gaussian_curve(at, mu))
    if len(smooth) > 1:
        return None
    if not finite:
        return smooth[0](t) if smooth else (-t.expm1()).max(arb(0))
    lists = _dealt(finite, 1 if smooth else 2)
    if lists is None:
        return None
    outer = lists[0]
    inner = smooth[0] if smooth else Steps(lists[1]) if len(lists) > 1 else None
    if inner is None:
        return outer.curve(t)
    work(len(outer.z))
    total = outer.p_inf
    for p, z in zip(outer.p, outer.z, strict=True):
        total += p * inner(t - z)
    return total


def powered(factor: Factor, law: Finite, n: int) -> Finite | None:
    """The law of so many copies; None if that has too many outcomes."""
    if isinstance(factor, Response) and factor.delta == 0 and factor.eps:
        if n + 1 > _MOST_ATOMS:
            return None
        return coins(law, n)
    if n > 64 or len(law.z) ** n > _MOST_ATOMS:
        return None
    return composed([law] * n)


def coins(law: Finite, n: int) -> Finite:
    """Copies of one randomized response: binomial."""
    work(4 * n)
    room(3 * n)
    low, high = law.p
    p = [arb(n).bin(k) * high**k * low ** (n - k) for k in range(n + 1)]
    z = [(2 * k - n) * law.z[1] for k in range(n + 1)]
    zero = arb(0)
    return Finite(tuple(p), tuple(p[::-1]), tuple(z), zero, zero, True)


def _dealt(laws: list[Finite], most: int) -> list[Finite] | None:
    """Composed into so many lists of outcomes, none too long."""
    lists: list[list[Finite]] = [[] for _ in range(most)]
    sizes = [1] * most
    for law in sorted(laws, key=lambda each: -len(each.z)):
        at = sizes.index(min(sizes))
        lists[at].append(law)
        sizes[at] *= len(law.z)
        if sizes[at] > _MOST_DEALT:
            return None
    return [composed(each) for each in lists if each]


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


@dataclass
class Steps:
    """The curve of a finite law at many points: sums over its largest losses are made once."""

    law: Finite

    def __post_init__(self) -> None:
        law = self.law
        work(4 * len(law.z))
        room(8 * len(law.z))
        order = sorted(range(len(law.z)), key=lambda i: near(law.z[i]))
        self.p, self.q, self.z = ([side[i] for i in order] for side in (law.p, law.q, law.z))
        self.at = [near(z) for z in self.z]
        self.above = [(arb(0), arb(0))]
        for p, q in zip(reversed(self.p), reversed(self.q), strict=True):
            over, under = self.above[-1]
            self.above.append((over + p, under + q))
        self.above.reverse()
        # All from a place on lie above the first of these, all before it below the second.
        self.least = list(accumulate(reversed(self.z), arb.min))[::-1]
        self.most = list(accumulate(self.z, arb.max))

    def __call__(self, t: Ball) -> Ball:
        """`Σ (p - e^t q)_+`: surely positive terms from the sums, doubtful ones one by one."""
        work(4)
        x, middle = t.exp(), near(t)
        first = last = bisect_right(self.at, middle)
        while last < len(self.z) and not self.least[last] > t:
            last += 1
        while first > 0 and not self.most[first - 1] < t:
            first -= 1
        over, under = self.above[last]
        total = self.law.p_inf + over - x * under
        for i in range(first, last):
            total += (self.p[i] - x * self.q[i]).max(arb(0))
        return total
