"""Losses as the verifier knows them: finite lists of pairs, and the law of Laplace-like noise.

A *finite* law has outcomes of mass `p` under `P` and `q` under `Q`, loss `ln(p/q)`, and masses at
`±∞` (`p_inf` of `P`, `q_inf` of `Q`). A *central* law is `w R_e + (1-w) B_e`: atoms at `±e` and
the density `κ e^{z/2}` between them, symmetric; `w = (1 + e^-e)/2` is Laplace noise, `w = 0` the
largest law of range `e` (exponential mechanism). Both give the *rise*:

    a(t) = Σ p (h_m(t-z) - Φ(u)) + q x Φ(w),     u = m/2 - t/m,  w = u - m,  x = e^t,

what composing with `G_m` adds to the curve of `G_m`, masses at infinity left out, with its slope:
from `h_m' = -x Φ(w)` and `φ(u) = x φ(w)`, without differences of nearly equal numbers but those
that the loss itself has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from flint import arb

from residua.verify.arithmetic import Ball, density, near, normal, reserve_memory, work

Jet = tuple[Ball, Ball]
"""A value and its slope."""


def tail_at(place: Ball) -> Callable[[Ball], Ball]:
    """`Φ`, or right of 0 `Φ - 1`: up to a constant, without losing the tail at this place."""
    return (lambda u: -normal(-u)) if place > 0 else normal


@dataclass(frozen=True)
class Finite:
    """A finite law, at the precision at which it was made."""

    p: tuple[Ball, ...]
    q: tuple[Ball, ...]
    z: tuple[Ball, ...]
    p_inf: Ball
    q_inf: Ball
    symmetric: bool = False

    def reversed(self) -> Finite:
        """The law of `(Q, P)`."""
        if self.symmetric:
            return self
        order = range(len(self.z) - 1, -1, -1)
        return Finite(
            tuple(self.q[i] for i in order),
            tuple(self.p[i] for i in order),
            tuple(-self.z[i] for i in order),
            self.q_inf,
            self.p_inf,
        )

    @cached_property
    def top(self) -> Ball:
        """At least the largest finite loss, and at least 0."""
        largest = arb(0)
        for z in self.z:
            largest = largest.max(z)
        return largest

    @property
    def missing(self) -> Ball:
        """The larger mass at infinity."""
        return self.p_inf.max(self.q_inf)

    @cached_property
    def _kept(self) -> tuple[Ball, Ball]:
        """All of `P`, and of `Q`, that is not at infinity."""
        if self.missing.is_zero():
            return arb(1), arb(1)
        return sum(self.p, arb(0)), sum(self.q, arb(0))

    def rise(self, t: Ball, m: Ball) -> Jet:
        work(16 * len(self.z) + 16)
        u0 = m / 2 - t / m
        w0 = u0 - m
        left, right = tail_at(u0), tail_at(w0)
        at_u, at_w = left(u0), right(w0)
        first, second = arb(0), arb(0)
        for p, q, z in zip(self.p, self.q, self.z, strict=True):
            step = z / m
            first += p * (left(u0 + step) - at_u)
            second += q * (right(w0 + step) - at_w)
        fall, (over, under) = t.exp() * second, self._kept
        return first - fall, (over - under) * density(u0) / m - fall

    def moment(self, s: Ball) -> Ball:
        """`E e^{sZ}` over what is not at infinity."""
        work(2 * len(self.p))
        return sum((p * (s * z).exp() for p, z in zip(self.p, self.z, strict=True)), arb(0))

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self)

    def curve(self, t: Ball) -> Ball:
        """`h(e^t) = Σ (p - e^t q)_+`: surely positive terms from sums, doubtful ones one by one."""
        steps, x = self._steps, t.exp()
        doubtful, over, under = steps.beyond(t)
        total = self.p_inf + over - x * under
        for p, q in doubtful:
            total += (p - x * q).max(arb(0))
        return total

    def slope(self, t: Ball) -> Ball:
        """The slope of the curve in `ln x`; where that jumps, all in between."""
        doubtful, _, under = self._steps.beyond(t)
        return -t.exp() * sum((arb(0).union(q) for _, q in doubtful), under)


class Steps:
    """The outcomes of a finite law in order, and the masses beyond each: made once."""

    def __init__(self, law: Finite) -> None:
        work(4 * len(law.z))
        reserve_memory(8 * len(law.z))
        outcomes = sorted(zip(law.p, law.q, law.z, strict=True), key=lambda each: near(each[2]))
        self.masses = [(p, q) for p, q, _ in outcomes]
        z = [loss for _, _, loss in outcomes]
        self.at = [near(loss) for loss in z]
        self.above = [(arb(0), arb(0))]
        for p, q in reversed(self.masses):
            over, under = self.above[-1]
            self.above.append((over + p, under + q))
        self.above.reverse()
        # All from a place on lie above the first of these, all before it below the second.
        self.least = list(accumulate(reversed(z), arb.min))[::-1]
        self.most = list(accumulate(z, arb.max))

    def beyond(self, t: Ball) -> tuple[list[tuple[Ball, Ball]], Ball, Ball]:
        """The outcomes that may lie on either side of `t`, and the masses that lie beyond it."""
        first = last = bisect_right(self.at, near(t))
        while last < len(self.at) and not self.least[last] > t:
            last += 1
        while first > 0 and not self.most[first - 1] < t:
            first -= 1
        work(4 + last - first)
        return self.masses[first:last], *self.above[last]


@dataclass(frozen=True)
class Central:
    """`w R_e + (1-w) B_e`, at the precision at which it was made."""

    e: Ball
    w: Ball

    symmetric = True
    p_inf = q_inf = missing = arb(0)

    def reversed(self) -> Central:
        return self

    @property
    def top(self) -> Ball:
        return self.e

    @cached_property
    def atoms(self) -> Finite:
        """The atoms alone."""
        high = self.w / (1 + (-self.e).exp())
        low = self.w / (1 + self.e.exp())
        zero = arb(0)
        # Not the whole law: the rest is the density.
        return Finite((low, high), (high, low), (-self.e, self.e), zero, zero, True)

    @cached_property
    def height(self) -> Ball:
        """`κ`."""
        return (1 - self.w) / (4 * (self.e / 2).sinh())

    def rise(self, t: Ball, m: Ball) -> Jet:
        work(80)
        x, u0 = t.exp(), m / 2 - t / m
        w0 = u0 - m
        left, right, middle = tail_at(u0), tail_at(w0), tail_at(-t)
        at_u, at_w = left(u0), right(w0)
        scale = (t / 2 - m * m / 8).exp()
        first, second = arb(0), arb(0)
        for sign, p, q in zip((-1, 1), self.atoms.p, self.atoms.q, strict=True):
            z = sign * self.e
            lift, spread = (z / 2).exp(), scale * middle((z - t) / m)
            over_u, over_w = left(u0 + z / m) - at_u, right(w0 + z / m) - at_w
            weight = sign * self.height * 2
            first += p * over_u + weight * (lift * over_u - spread)
            second += q * over_w - weight * (over_w / lift - spread / x)
        fall = x * second
        return first - fall, -fall

    def moment(self, s: Ball) -> Ball:
        """`E e^{sZ}`."""
        work(10)
        far = s + arb(1) / 2
        up, down = (far * self.e).exp(), (-far * self.e).exp()
        share = (up - down) / (4 * far * (self.e / 2).sinh())
        return self.w * (up + down) / (2 * (self.e / 2).cosh()) + (1 - self.w) * share

    def curve(self, t: Ball) -> Ball:
        """`h(e^t)`."""
        work(8)
        g = (-((t - self.e) / 2).expm1()).max(arb(0))
        response = self.w / (1 + (-self.e).exp())
        return response * g * (2 - g) + (1 - self.w) * g * g / -(-self.e).expm1()

    def slope(self, t: Ball) -> Ball:
        """The slope of the curve in `ln x`, for `t >= 0`; where that jumps, all in between."""
        work(8)
        g = (-((t - self.e) / 2).expm1()).max(arb(0))
        response = self.w / (1 + (-self.e).exp())
        found = (response * (1 - g) + (1 - self.w) * g / -(-self.e).expm1()) * (g - 1)
        return found if t < self.e else arb(0) if t > self.e else found.union(arb(0))


Law = Finite | Central


def mirrored(p: Sequence[Ball], z: Sequence[Ball]) -> Finite:
    """A symmetric law without mass at infinity, from masses of `P` at losses in rising order."""
    return Finite(tuple(p), tuple(p[::-1]), tuple(z), arb(0), arb(0), True)


def gaussian_rise(t: Ball, m: Ball, mu: Ball) -> Jet:
    """`h_mu - h_m` and its slope."""
    work(32)
    u, v = m / 2 - t / m, mu / 2 - t / mu
    left, right = tail_at(u), tail_at(u - m)
    fall = t.exp() * (right(v - mu) - right(u - m))
    return left(v) - left(u) - fall, -fall


def slack_rise(t: Ball, m: Ball, plus: Ball, minus: Ball) -> Jet:
    """`plus (1 - Φ(u)) + minus x Φ(w)` and its slope: what slack leaves to `h_m`."""
    if plus.is_zero() and minus.is_zero():
        return arb(0), arb(0)
    u = m / 2 - t / m
    beyond, under, at = normal(-u), t.exp() * normal(u - m), density(u) / m
    return plus * beyond + minus * under, plus * at + minus * (under - at)


def gaussian_curve(t: Ball, mu: Ball) -> Ball:
    """`h_{G_mu}(e^t)`."""
    work(16)
    a = mu / 2 - t / mu
    return normal(a) - t.exp() * normal(a - mu)


def composition(laws: Sequence[Finite]) -> Finite:
    """All pairs of outcomes; what is equal for sure is not merged."""
    whole = Finite((arb(1),), (arb(1),), (arb(0),), arb(0), arb(0), True)
    for law in laws:
        work(len(whole.p) * len(law.p))
        reserve_memory(3 * len(whole.p) * len(law.p))
        p = tuple(a * b for a in whole.p for b in law.p)
        q = tuple(a * b for a in whole.q for b in law.q)
        z = tuple(a + b for a in whole.z for b in law.z)
        p_inf = whole.p_inf + (1 - whole.p_inf) * law.p_inf
        q_inf = whole.q_inf + (1 - whole.q_inf) * law.q_inf
        whole = Finite(p, q, z, p_inf, q_inf, whole.symmetric and law.symmetric)
    return whole
