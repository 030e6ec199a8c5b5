"""Proofs of `G_m ⊕ L ⪯ G_mu ⊕ R_{0,η}` on all of `x ∈ (0, ∞)`.

With `t = ln x`, `c = mu² - m²` and the rises of `laws.py` the claim is `a(t) <= b(t)` for all `t`,

    b = (1-η) (h_mu - h_m) + (η - p_inf) (1 - Φ(u)) + (η - q_inf) x Φ(w).

Put `κ(t) = exp(t²/2m² - t/2)`. Then `κ a` and `κ b` are, as functions of `l = t/m²`, two-sided
Laplace transforms of the non-negative functions `e_L(y) e^{-y²/2m²}` and `e_B(y) e^{-y²/2m²}`,
where `e(y) = e^{-y/2} (h(e^y) - (1-e^y)_+)`: so `ln κa` and `ln κb` are convex, and so are
`κa` and `κb` themselves. Cells are halved until one of these settles them:

* **chord and tangents**: between two points `ln κa` lies below its chord and `ln κb` above its
  tangents;
* **in x**: where `m` is small beside the cell, `κ` bends too much for that. The curves themselves,
  `a + o` and `b + o` with `o = (1-p_inf) Φ(u) - (1-q_inf) x Φ(w)`, are convex in `x`: the first is
  `Σ p h_m(t-z)`, the second `(1-η) h_mu + η - p_inf`; again a chord and tangents;
* **tail**: `e_L` vanishes beyond the largest loss `z`, so `ln κa` rises in `l` by at most `z`. From
  where `ln κb` rises by that much and `a <= b`, nothing changes any more.

The left half is the right half of the reversed law. A point with `a > b` refutes.

**Reserves.** To `b` may be added a sum of `E(t) = e^{g - kt}` with `k > 0`, for `t >= 0`, both
directions. `κE` is the Laplace transform of a Gaussian, and `E` is convex in `x`: all of the above
stays true. The claim may also be made from some `t > 0` on only; then cells begin there.

**Query by query.** If `G_m ⊕ L ⪯ G_√(m²+c)` then adding `G_s` on both sides shows the same with
`m² + s²`: what a query costs at the least budget of several it costs at most at all of them. So for
`L = ⊕ n_i L_i` it is enough to walk up from `m²`, proving each `L_i` once (or once a block of equal
ones) at the level reached, and to find that all costs together are no more than what was taken.
That is not tight, and a failure shows nothing; it is close where each query is small beside the
budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from flint import arb

from residua.verify.arithmetic import (
    BITS,
    Ball,
    ball,
    bits,
    density,
    is_accurate,
    near,
    normal,
    rational,
    work,
)
from residua.verify.losses.factors import Factor, Loss, sure_law
from residua.verify.losses.laws import Jet, Law, gaussian_rise, slack_rise, tail_at
from residua.verify.proofs.verdict import (
    MOST_CELLS,
    Proof,
    chord_below_tangents,
    proven,
    refuted,
    undecided,
)

_PRECISIONS = (96, 160, 288, 544, 1056, 2080)
"""Bits to work with, in turn: tiny costs are differences of nearly equal numbers."""


@dataclass(frozen=True)
class _Point:
    """The rises `a` and `b`, each with its slope, and `ln a/b`."""

    t: Ball
    a: Jet
    b: Jet
    log_ratio: Ball


class _TooImprecise(Exception):
    """The precision does not suffice."""


class _TooManyPoints(Exception):
    """The limit of points is reached."""


class _Exceeds(Exception):
    """`a > b` at a point."""


@dataclass
class _Half:
    """The right half of one law."""

    law: Law
    m: Ball
    mu: Ball
    eta: Ball
    reserves: tuple[tuple[Ball, Ball], ...] = ()
    """`g` and `k` of each."""
    start: Fraction = Fraction(0)
    points: int = 0

    def spare(self, t: Ball) -> Jet:
        """The contribution of the reserves at a point, and its slope."""
        each = [((g - k * t).exp(), k) for g, k in self.reserves]
        return sum((e for e, _ in each), arb(0)), sum((-k * e for e, k in each), arb(0))

    def at(self, t: Ball) -> _Point:
        work(24)
        self.points += 1
        if self.points > MOST_CELLS:
            raise _TooManyPoints
        a, b = self.law.rise(t, self.m), self.spare(t)
        slack = self.eta - self.law.p_inf, self.eta - self.law.q_inf
        more = gaussian_rise(t, self.m, self.mu), slack_rise(t, self.m, *slack)
        b = tuple(e + (1 - self.eta) * g + s for e, g, s in zip(b, *more, strict=True))  # type: ignore[assignment]
        if a[0] > b[0]:
            raise _Exceeds(near(t), near(a[0]), near(b[0]))
        if not (is_accurate(a[0], 24) and is_accurate(b[0], 24) and a[0] > 0 and b[0] > 0):
            raise _TooImprecise
        ratio = (a[0] / b[0]).log()
        if not is_accurate(ratio, 16):
            raise _TooImprecise
        return _Point(t, a, b, ratio)

    def slope(self, point: _Point) -> Ball:
        """The slope of `ln κb`."""
        return point.b[1] / point.b[0] + point.t / (self.m * self.m) - _HALF

    def end(self) -> _Point:
        """A point from which on the tail takes care."""
        m2 = self.m * self.m
        c = self.mu * self.mu - m2
        t = self.law.top * (1 + m2 / c)
        if self.eta > self.law.p_inf:
            # Slack rises by `t - m²/2`, and from somewhere on there is little else.
            t = t.min(self.law.top + m2)
        t = t.max(ball(self.start))
        for _ in range(120):
            t = arb(near(t * ball(Fraction(9, 8))))
            point = self.at(t)
            if self.slope(point) * m2 > self.law.top and point.log_ratio <= 0:
                return point
        raise _TooImprecise

    def closes(self, one: _Point, two: _Point) -> bool:
        """Chord of `ln κa` below tangents of `ln κb`, in units of `ln κb` at the ends."""
        width = two.t - one.t
        # ln κ = q is quadratic: relative to its own chord it sags by q'' s (width - s) / 2.
        m2 = self.m * self.m
        step = (two.b[0] / one.b[0]).log() + ((two.t + one.t) / (2 * m2) - _HALF) * width
        # ln κb at the start is the zero of heights.
        zero = arb(0)
        return chord_below_tangents(
            (one.log_ratio, step + two.log_ratio),
            (zero, step),
            (self.slope(one) * width, self.slope(two) * width),
        )

    def closes_in_x(self, one: _Point, two: _Point) -> bool:
        """Chord of one curve below tangents of the other, both in `x`."""
        work(48)
        # Up to a constant; where both curves are near 1, what they lack keeps its digits.
        tail = tail_at(self.mu / 2 - two.t / self.mu)
        ends = []
        for point in (one, two):
            v = self.mu / 2 - point.t / self.mu
            fall = (1 - self.eta) * point.t.exp() * normal(v - self.mu)
            spare, slope = self.spare(point.t)
            over = (1 - self.eta) * tail(v) - fall + spare
            ends.append((over, over + point.a[0] - point.b[0], slope - fall))
        (b_one, a_one, fall_one), (b_two, a_two, fall_two) = ends
        width = two.t - one.t
        first, second = fall_one * width.expm1(), fall_two * -(-width).expm1()
        return chord_below_tangents((a_one, a_two), (b_one, b_two), (first, second))

    def prove(self) -> None:
        """Cover the half by cells, halved until each closes; raises where that fails."""
        cells = [(self.at(ball(self.start)), self.end())]
        while cells:
            one, two = cells.pop()
            below = one.log_ratio <= 0 and two.log_ratio <= 0
            if below and (self.closes(one, two) or self.closes_in_x(one, two)):
                continue
            low, high = near(one.t), near(two.t)
            at = 0.5 * (low + high)
            if not low < at < high:
                raise _TooImprecise
            middle = self.at(arb(at))
            cells += [(one, middle), (middle, two)]


_HALF = arb(1) / 2
Reserves = Callable[[], tuple[tuple[Ball, Ball], ...]]


def prove_residue(
    law_at: Callable[[], Law],
    m2: Fraction,
    mu2: Fraction,
    eta: Fraction = Fraction(0),
    reserves: Reserves = tuple,
    start: Fraction = Fraction(0),
) -> Proof:
    """`G_m ⊕ L ⪯ G_mu ⊕ R_{0,η}` for `0 < m < mu`, up to reserves.

    The law, and `g` and `k` of each reserve, are made at the precision in force. With a positive
    `start` the curves are compared from `t = start` on only, in both directions.
    """
    for precision in _PRECISIONS:
        with bits(precision):
            law = law_at()
            m, mu = ball(m2).sqrt(), ball(mu2).sqrt()
            slack = ball(eta)
            if law.missing > slack:
                return refuted("mass at infinity exceeds the slack")
            if not law.missing <= slack:
                continue
            halves = [law] if law.symmetric else [law, law.reversed()]
            points, sign = 0, -1
            try:
                for half in halves:
                    sign = -sign
                    made = _Half(half, m, mu, slack, reserves(), start)
                    made.prove()
                    points += made.points
                where = f"from ln x = {float(start):.6g} on" if start else "on all x > 0"
                return proven(f"residue condition {where}, {points} points, {precision} bits")
            except _TooImprecise:
                continue
            except _TooManyPoints:
                return undecided(f"residue condition not settled with {MOST_CELLS} points")
            except _Exceeds as found:
                t, high, low = found.args
                return refuted(
                    f"at ln x = {sign * t:.6g} the curve lies {high - low:.3g} above the budget's"
                )
    return undecided(f"residue condition not settled with {_PRECISIONS[-1]} bits")


# -- query by query ----------------------------------------------------------------------------


_NO = undecided("not shown query by query")


def query_by_query(loss: Loss, m2: Fraction, v: Fraction) -> Proof:
    """`G_m ⊕ L ⪯ G_√v` for bounded symmetric factors, or undecided."""
    fits = m2 > 0 and not loss.variance and not loss.stated
    if not fits or not all(f.symmetric and not f.unbounded for f, _ in loss.factors):
        return _NO
    found = _walk(loss, m2, v, 1)
    if found is None and any(n > 1 for _, n in loss.factors):
        # Closer together, at a proof for each block.
        found = _walk(loss, m2, v, 32)
    return _NO if found is None else _prove_costs(found, m2, v)


Costs = list[tuple[Factor, int, Fraction]]


def _walk(loss: Loss, m2: Fraction, v: Fraction, blocks: int) -> Costs | None:
    """The approximate cost of each, going up from `m²`; None if that is too much."""
    level, found = m2, []
    # Large ones first: they lose most where little is left, so they go last, at the top.
    order = sorted(loss.factors, key=lambda each: _size(each[0]))
    for factor, n in order:
        block = -(-n // blocks)
        for first in range(0, n, block):
            count = min(block, n - first)
            cost = _cost(factor, level)
            if cost is None or level + count * cost > v:
                return None
            found.append((factor, count, cost))
            level += count * cost
    return found


def _size(factor: Factor) -> float:
    with bits(64):
        law = factor.law()
        return 0.0 if law is None else near(law.top)


def _cost(factor: Factor, level: Fraction) -> Fraction | None:
    """Where the curves meet at `x = 1`, slightly above: a guess, to be proven."""
    with bits(BITS):
        law = factor.law()
        if law is None or not law.missing.is_zero():
            return None
        m2 = ball(level)
        m = m2.sqrt()
        needed = law.rise(arb(0), m)[0]
        cost = needed * 2 * m / density(m / 2)
        for _ in range(12):
            work(64)
            mu = (m2 + cost).sqrt()
            step = (gaussian_rise(arb(0), m, mu)[0] - needed) * 2 * mu / density(mu / 2)
            cost = arb((cost - step).mid())
            if not (cost > 0 and step.is_finite()):
                return None
            if abs(near(step)) < 1e-20 * near(cost):
                break
        return rational(cost * (1 + arb(2) ** -48))


def _prove_costs(costs: Costs, m2: Fraction, v: Fraction) -> Proof:
    """All of what was taken is given out: each gets a little more than it needs."""
    needed = sum((n * cost for _, n, cost in costs), Fraction(0))
    # A float below, for short fractions.
    share = Fraction(float((v - m2) / needed)) * (1 - Fraction(1, 1 << 50))
    share = max(share, Fraction(1))
    level = m2
    for factor, count, cost in costs:
        part = cost * share
        found = prove_residue(partial(sure_law, factor), level, level + part)
        if found.verdict != "proven":
            return _NO
        level += count * part
    if level > v:
        return _NO
    return proven(f"residue condition on all x > 0, query by query, {len(costs)} of them")
