"""Losses as the verifier knows them: finite lists of pairs, and the law of Laplace-like noise.

A *finite* law has outcomes of mass `p` under `P` and `q` under `Q`, loss `ln(p/q)`, and masses at
`±∞` (`p_inf` of `P`, `q_inf` of `Q`). A *central* law is `w R_e + (1-w) B_e`: atoms at `±e` and
the density `κ e^{z/2}` between them, symmetric; `w = (1 + e^-e)/2` is Laplace noise, `w = 0` the
largest law of range `e` (exponential mechanism). Both give the *rise*:

    a(t) = Σ p (h_m(t-z) - Φ(u)) + q x Φ(w),     u = m/2 - t/m,  w = u - m,  x = e^t,

what composing with `G_m` adds to the curve of `G_m`, masses at infinity left out, with three
derivatives: from `h_m' = -x Φ(w)` and `φ(u) = x φ(w)`, without differences of nearly equal numbers
but those that the loss itself has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from flint import arb

from residua.verify.arithmetic.balls import Ball, density, near, normal
from residua.verify.arithmetic.clusters import Cluster, clusters_of
from residua.verify.arithmetic.work_limit import reserve_memory, work

Jet = tuple[Ball, Ball, Ball, Ball]
"""A value and three derivatives."""


def tail_at(place: Ball) -> Callable[[Ball], Ball]:
    """`Φ`, or right of 0 `Φ - 1`: up to a constant, without losing the tail at this place."""
    return (lambda u: -normal(-u)) if place > 0 else normal


def _jet(x: Ball, m: Ball, u0: Ball, sums: Jet, kept_p: Ball, kept_q: Ball) -> Jet:
    """A rise and its derivatives.

    From the sums of `p` times what `Φ(u)` gains, of `q` times what `Φ(w)` gains, of `p φ(u)` and
    of `p u φ(u)`, and the masses that are not at infinity.
    """
    first, second, third, fourth = sums
    at_0 = density(u0)
    fall = x * second
    beside = (kept_p - kept_q) * at_0 / m
    bent = (third - kept_q * at_0) / m
    more = (fourth - kept_q * u0 * at_0) / (m * m)
    two = -fall + bent + beside * u0 / m
    three = -fall + bent + more + beside * (u0 * u0 - 1) / (m * m)
    return first - fall, -fall + beside, two, three


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

    @cached_property
    def _clusters(self) -> dict[float, tuple[list[Cluster], list[int]]]:
        return {}

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
        scale = near(m)
        if scale not in self._clusters:
            self._clusters[scale] = clusters_of(self.p, self.q, self.z, m)
        clusters, apart = self._clusters[scale]
        alone = list(apart)
        x, u0 = t.exp(), m / 2 - t / m
        w0 = u0 - m
        left, right = tail_at(u0), tail_at(w0)
        at_u, at_w = left(u0), right(w0)
        first, second, third, fourth = arb(0), arb(0), arb(0), arb(0)
        for cluster in clusters:
            u = u0 + cluster.centre / m
            sums = cluster.sums(u, u - m, m)
            if sums is None:
                alone += cluster.places
                continue
            first, second = first + sums[0], second + sums[1]
            third, fourth = third + sums[2], fourth + sums[3]
            if not cluster.centre.is_zero():
                first += cluster.p.upto(1)[0] * (left(u) - at_u)
                second += cluster.q.upto(1)[0] * (right(u - m) - at_w)
        work(16 * len(alone) + 16)
        for i in alone:
            u = u0 + self.z[i] / m
            mass = self.p[i] * density(u)
            first += self.p[i] * (left(u) - at_u)
            second += self.q[i] * (right(u - m) - at_w)
            third += mass
            fourth += mass * u
        return _jet(x, m, u0, (first, second, third, fourth), *self._kept)

    def moment(self, s: Ball) -> Ball:
        """`E e^{sZ}` over what is not at infinity."""
        work(2 * len(self.p))
        return sum((p * (s * z).exp() for p, z in zip(self.p, self.z, strict=True)), arb(0))

    def curve(self, t: Ball) -> Ball:
        """`h(e^t)`."""
        work(1 + len(self.p))
        x = t.exp()
        total = self.p_inf
        for p, q in zip(self.p, self.q, strict=True):
            total += (p - x * q).max(arb(0))
        return total

    def slope(self, t: Ball) -> Ball:
        """The slope of the curve in `ln x`; where that jumps, all in between."""
        work(1 + len(self.p))
        beyond = arb(0)
        for q, z in zip(self.q, self.z, strict=True):
            if not z < t:
                beyond += q if z > t else arb(0).union(q)
        return -t.exp() * beyond


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
        first, second, third, fourth = arb(0), arb(0), arb(0), arb(0)
        for sign, p, q in zip((-1, 1), self.atoms.p, self.atoms.q, strict=True):
            z = sign * self.e
            u, lift = u0 + z / m, (z / 2).exp()
            mass, over_u, over_w = p * density(u), left(u) - at_u, right(u - m) - at_w
            spread, slope = scale * middle((z - t) / m), scale * density((z - t) / m) / m
            weight = sign * self.height
            first += p * over_u + weight * 2 * (lift * over_u - spread)
            second += q * over_w - weight * 2 * (over_w / lift - spread / x)
            third += mass + weight * m * spread
            fourth += mass * u + weight * m * m * (spread / 2 - slope)
        return _jet(x, m, u0, (first, second, third, fourth), arb(1), arb(1))

    def moment(self, s: Ball) -> Ball:
        """`E e^{sZ}`."""
        work(10)
        far = s + arb(1) / 2
        share = (far * self.e).sinh() / (2 * far * (self.e / 2).sinh())
        return self.w * (far * self.e).cosh() / (self.e / 2).cosh() + (1 - self.w) * share

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
    """`h_mu - h_m` with three derivatives."""
    work(32)
    x = t.exp()
    u, v = m / 2 - t / m, mu / 2 - t / mu
    left, right = tail_at(u), tail_at(u - m)
    fall = x * (right(v - mu) - right(u - m))
    at_u, at_v = density(u), density(v)
    bent = at_v / mu - at_u / m
    more = v * at_v / (mu * mu) - u * at_u / (m * m)
    return left(v) - left(u) - fall, -fall, -fall + bent, -fall + bent + more


def slack_rise(t: Ball, m: Ball, plus: Ball, minus: Ball) -> Jet:
    """`plus (1 - Φ(u)) + minus x Φ(w)` with three derivatives: what slack leaves to `h_m`."""
    u = m / 2 - t / m
    at = density(u)
    beyond, under = normal(-u), t.exp() * normal(u - m)
    one, two, three = at / m, u * at / (m * m), (u * u - 1) * at / (m * m * m)
    down = under - one
    bent = down - two
    return (
        plus * beyond + minus * under,
        plus * one + minus * down,
        plus * two + minus * bent,
        plus * three + minus * (bent - three),
    )


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
        p_inf = 1 - (1 - whole.p_inf) * (1 - law.p_inf)
        q_inf = 1 - (1 - whole.q_inf) * (1 - law.q_inf)
        whole = Finite(p, q, z, p_inf, q_inf, whole.symmetric and law.symmetric)
    return whole
