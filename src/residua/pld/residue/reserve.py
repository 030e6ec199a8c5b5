"""The cost of a query with heavy tails: a Gaussian residue, and reserves for what it leaves over.

A potential filter for `(eps, delta)` may add to the curve of its Gaussian exponentials and a
constant: with `t = eps - z`, `z` the loss so far, and orders `κ_i + 1` fixed in advance,

    φ(t) = h_{G_√v}(e^t) + Σ r_i e^{κ_i(κ_i+1)v/2 - κ_i t} + s.

`φ(eps) <= delta` at the start, and `(1 - e^t)_+ <= φ(t)` always. A query `L` may take the state
`(v, r, s)` to `(v - c, r', s - η)` if `E_L[φ'(t - Z)] <= φ(t)` for all `t`, in both directions.
Gaussian noise takes `v` alone: the factors `e^{κ_i(κ_i+1)v/2}` are what it makes of the
exponentials. If a share `τ` of every reserve is drawn, and with `M_i = E_L[e^{κ_i Z}]`,
`r_i' = (1-τ) r_i e^{κ_i(κ_i+1)c/2} / M_i`, the condition becomes

    h_{L ⊕ G_√(v-c)}(e^t) <= h_{G_√v}(e^t) + τ Σ r_i e^{κ_i(κ_i+1)v/2 - κ_i t} + η.           (*)

What is proven is slightly more, with `(1-η) h_{G_√v}` on the right, as verifiers ask for.

Where (*) is needed. Either for all `t`; then composing both sides with a Gaussian shows that
`(c, τ, η)` for some `v` will do for every larger `v` (with the same amounts drawn), so costs can be
worked out at the next lower of a few values of `v` (`rung`). Or only from a positive `start` on,
below which `t` is never read or one of the exponentials is at least 1, which is as much as can be
lost.

**Why this helps.** The tail of a subsampled Gaussian lies above every Gaussian of its size, by
little and far out. A constant `η` alone would pay for a rare large loss what it costs at the worst
`t`; an exponential pays what it costs at likely ones. High orders bound the loss so far, low ones
pay for large losses.

**Proof of (*) for a given `(c, τ, η)`.** On the whole line it is enough for `t >= 0`: for `t < 0`
the difference of the curves is `e^t` times that of the reversed ones at `-t`, which is at most
`e^t` times the reserves at `-t`, and these are larger at `t`. From the first `t` on at which the
left side is at most `η`, it stays so. Up to there it is proven over cells. In `x = e^t` the left
side is convex and so below its chord, and each term on the right is convex and so above its tangent
in the middle of the cell. Both are lines: two comparisons settle a cell, and cells that are not
settled are divided.

The left side is a sum over a finite list of outcomes above `L`: chords through its curve
(`slack.py`).
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats, float_down
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    SQRT_HALF,
    SQRT_TWO_PI,
    TINY,
    U,
    mills_ratio,
    normal_density,
    normal_tail,
)
from residua.pld.families import gaussian
from residua.pld.pld import Pld
from residua.pld.residue.slack import tents_above
from residua.work_limit import remembered, work

_SPACING = 48
"""Values of `v` in a decade at which costs are worked out."""
_FINE, _TRUNCATED, _MOST_OUTCOMES = 0.04, 0.02, 256
"""The distance of outcomes beside the size of the loss, and the share of the slack that what lies
beyond the last one may take. Longer lists of outcomes are replaced by such a list."""
_PARTS, _FARTHEST_T = 24, 1e4
"""The right end is found by dividing an interval into so many parts, twice; and the largest `t`
that is looked at."""
_COARSE, _FINER = 96, 256
"""Points at which a search looks at both sides, and when a proof has failed."""
_TOP = 0.05
"""How much more than at a point, relative to that, a parabola may add between the points."""
_NARROW, _LEAST_PARTS, _MOST_PARTS = 2.0, 0.25, 16.0
"""How many cells a proof starts with: beside the number that should do, at least and at most for
each step between the points of a search."""
_SPLIT, _ROUNDS, _MOST_CELLS = 4, 6, 1 << 14
"""Cells that are not settled are divided into so many, so often, while there are not too many."""
_STEPS, _BACK, _CLOSE, _LEAST = 40, -0.2, 2e-3, 18.0
"""Of a search for the cost: how many steps, the longest one back, its accuracy, both beside the
cost, and the logarithm of the least cost beside `v`."""
_STEEP = 50.0
"""Shares that are larger fall like exponentials."""
_GUESS = 0.8
"""Where it begins, beside the cost as Gaussian noise."""
_ALL = Fraction(99, 100)
"""The most that is taken of `v`."""
_RAISES = (1e-3, 1e-3, 1e-2, 0.1)
"""By how much of itself the cost is raised, in turn, until it is proven."""
_SPARE = 1e-2
"""How much more of the reserve is taken than the search found."""
_LARGEST_POWER, _TINY = 50.0, 1e-300
"""Of an exponential: a larger one is more than anything it is compared with, a smaller one less."""
_LARGEST_T, _LEAST_LEFT = 700.0, 1e-200
"""Of a height: to take no more of `t`, and no less that is left, only raises it."""
_ROUNDING = 1e-10
"""Relative allowance for the arithmetic of a comparison: some ten operations on floats."""


class Reserves(NamedTuple):
    """The exponentials of a potential: their `κ` and what is left of each, in the same order."""

    kappas: tuple[float, ...]
    left: tuple[float, ...]


class ReserveCost(NamedTuple):
    """What a query takes of `v`, and of every reserve that the cost was worked out for."""

    cost: Fraction
    share: Fraction
    """The `τ` of the inequality."""


def rung(amount: Fraction) -> Fraction:
    """The largest of a few decimals that is at most a positive amount: about 5 % apart."""
    place = math.floor(_SPACING * math.log10(float_down(amount))) + 1
    while (found := _decimal(place)) > amount:
        place -= 1
    return found


@lru_cache(maxsize=4096)
def _decimal(place: int) -> Fraction:
    decade, step = divmod(place, _SPACING)
    return Fraction(Decimal(round(1000.0 * 10.0 ** (step / _SPACING))).scaleb(decade - 3))


def reserve_cost(
    v: Fraction, reserves: Reserves, slack: float, loss: Pld, start: float = 0.0
) -> ReserveCost | None:
    """A cost `(c, τ)` for which (*) is proven, with the slack `η` that is given.

    Of the pairs that are proven, one that takes about the same share of `v` and of the reserves.

    Args:
        v: `mu²` of the budget, positive; best one of the values of `rung` on the whole line.
        reserves: what may be drawn on, from below.
        slack: `η`, positive.
        loss: the query, without mass at infinity that splits off.
        start: the `t` from which on (*) is needed; 0 for the whole line.

    Returns:
        None if no pair within the budget is proven.
    """
    return _cost(*v.as_integer_ratio(), reserves, slack, loss, start)


def _level(slack: float) -> float:
    """The height at which a list of outcomes may end, one for a range of slacks."""
    return _TRUNCATED * 2.0 ** math.floor(math.log2(slack))


def _mean(sides: tuple[Outcomes, ...]) -> float:
    """Twice the mean loss: about the cost as Gaussian noise."""
    return max(2.0 * abs(float(side.losses @ side.masses)) for side in sides)


# By the integers: to hash a rational takes a division modulo a prime.
@remembered(maxsize=4096)
def _cost(
    v_n: int, v_d: int, reserves: Reserves, slack: float, loss: Pld, start: float
) -> ReserveCost | None:
    v = Fraction(v_n, v_d)
    sides = outcomes_above(loss, _level(slack))
    if sides is None or any(side.at_infinity >= slack for side in sides):
        return None
    budget = _Budget(float_down(v), reserves, slack, sides, start)
    c = _balanced(budget)
    if c is None:
        return None
    for raised in _RAISES:
        cost = min(Fraction(f"{c * (1.0 + raised):.6e}"), _ALL * v)
        left = float(v - cost)
        heights = budget.heights(left)
        drawn = max(budget.drawn(heights)[0], 0.0) * (1.0 + _SPARE) + 1e-4 * float(cost / v)
        share = Fraction(f"{drawn:.6e}")
        if share <= 1 and budget.proves(left, float(share) * (1.0 - 4.0 * U), heights):
            return ReserveCost(cost, share)
        budget.look_at(_FINER)
    return None


def _balanced(budget: _Budget) -> float | None:
    """About the cost whose share of `v` is that of the reserves that is drawn with it.

    By Newton's method. The share is a maximum of functions that are nearly linear in the cost, but
    fall like exponentials where the cost is far too low.
    """
    v = budget.v
    low, high = v * math.exp(-_LEAST), v
    c = budget.guess()
    for _ in range(_STEPS):
        share, slope = budget.drawn_with_slope(v - c)
        gap = share - c / v
        step = gap / (slope + 1.0 / v)
        if gap > 0.0:
            low = c
            if share > _STEEP:
                rise = c * slope
                ahead = min(share * math.log(share) / rise, 1.0) if rise > 0.0 else 1.0
                step = max(step, c * ahead)
        else:
            high, step = c, max(step, _BACK * c)
        if abs(step) <= _CLOSE * c or high <= low * (1.0 + _CLOSE):
            return min(c + step, v)
        c += step
        if not low < c < high:
            if high == v and budget.drawn(budget.heights(0.0))[0] > 1.0:
                return None
            c = math.sqrt(low * high)
    return high


class Outcomes(NamedTuple):
    """A list of losses and masses above a query; the masses from above, the losses to `error`."""

    losses: Floats
    masses: Floats
    reversed_masses: Floats
    """`e^-z` times the masses, not from above."""
    at_infinity: float
    error: float

    def heights(self, left: float, t: Floats) -> Floats:
        """`h(e^t)` of the list and the Gaussian that is left, from above.

        `Σ p (Φ(-y) - e^{t-z} Φ(-y-m))`, `y = (t-z)/m - m/2`. As `y` is where each term is largest,
        its own rounding hardly matters; that of `y + m` and of the tails is charged.
        """
        count = self.losses.size
        work(24.0 * t.size * count, 80.0 * t.size * count)
        t = t - self.error * (1.0 + U)
        near, m = self._thresholds(left, t)
        far = near + m * SQRT_HALF
        tails = normal_tail(near)
        size = np.maximum(far, 0.0) + (m + 1.0)
        ulps = 8.0 * size * size + (64.0 + 2.0 * count)
        kept = np.exp(np.minimum(t, _LARGEST_T)) * (normal_tail(far) @ self.reversed_masses)
        error = (ulps * tails) @ self.masses
        return np.asarray(
            tails @ self.masses - kept + (2.0 * U) * error + (self.at_infinity + TINY)
        )

    def _thresholds(self, left: float, t: Floats) -> tuple[Floats, float]:
        """`y / √2` for every `t` and outcome, and `m`."""
        m = math.sqrt(max(left, _LEAST_LEFT))
        return (t[:, None] - self.losses) * (SQRT_HALF / m) - (0.5 * SQRT_HALF) * m, m

    def slope(self, left: float, t: float) -> float:
        """About how fast a height grows with what is left."""
        near, m = self._thresholds(left, np.array([t]))
        return float(np.exp(-near[0] * near[0]) @ self.masses) / (2.0 * SQRT_TWO_PI * m)


@remembered(maxsize=64)
def outcomes_above(loss: Pld, level: float) -> tuple[Outcomes, ...] | None:
    """Lists above a query and above its reversal (one if it is symmetric), down to `level`.

    The curve is enclosed separately on both sides of `x = 1`. The lower side is raised so that they
    meet there; the mass that is then missing has loss 0. None if the query has no such list.
    """
    tents = tents_above(loss, level, _FINE, _MOST_OUTCOMES)
    if tents is None:
        return None
    excess = tents.excess
    z, w = excess.losses, excess.weights * (1.0 + excess.weight_error)
    right, left = z > 0.0, z < 0.0
    at_one = [float(np.sum(2.0 * np.sinh(0.5 * np.abs(z[s])) * w[s])) for s in (right, left)]
    at_one = [at_one[0] + tents.p_inf, at_one[1] + tents.q_inf]
    if min(at_one) <= 0.0:
        return None
    raised = np.where(right, max(at_one) / at_one[0], max(at_one) / at_one[1])
    keep = right | left
    z, w = z[keep], (w * raised)[keep]
    rounding = 1.0 + (EXP_ULPS + 64.0 + 4.0 * np.abs(z)) * U
    made = []
    sides = ((1.0, tents.p_inf, at_one[0]), (-1.0, tents.q_inf, at_one[1]))
    for sign, mass, height in sides[:1] if loss.is_symmetric else sides:
        p = w * np.exp(0.5 * sign * z) * rounding
        at_infinity = mass * (max(at_one) / height)
        nothing = max(1.0 - at_infinity - float(np.sum(p)), 0.0) + 1e-13
        losses, masses = np.append(sign * z, 0.0), np.append(p, nothing)
        back = np.append(w * np.exp(-0.5 * sign * z), nothing)
        made.append(Outcomes(losses, masses, back, at_infinity, excess.loss_error))
    return tuple(made)


_ALONE = Outcomes(np.zeros(1), np.ones(1), np.ones(1), 0.0, 0.0)
"""No loss: its heights are those of the Gaussian."""


class _Budget:
    """Both sides of (*) for one query, as functions of what is left of `v`."""

    def __init__(
        self,
        v: float,
        reserves: Reserves,
        slack: float,
        sides: tuple[Outcomes, ...],
        start: float,
    ):
        self.v, self.slack, self.sides, self.start = v, slack, sides, start
        some = [(k, r) for k, r in zip(*reserves, strict=True) if r > 0.0]
        self.kappa = np.array([k for k, _ in some])
        # Logarithms of the factors before `e^{-κt}`, and how far they may be off.
        logs, lifts = np.log([r for _, r in some]), 0.5 * self.kappa * (self.kappa + 1.0) * v
        self.factors = logs + lifts
        self.error = 8.0 * U * (4.0 + np.abs(logs) + lifts)
        self.end = self._right_end(v)
        self.look_at(_COARSE)

    def look_at(self, points: int) -> None:
        """Set the points at which both sides are looked at."""
        self.coarse = np.linspace(self.start, self.end, points)
        self.reserves = np.maximum(self._exponentials(self.coarse).sum(axis=0), _TINY)
        self.budget = _ALONE.heights(self.v, self.coarse) * (1.0 - self.slack) + self.slack

    def _exponentials(self, t: Floats) -> Floats:
        """About what each reserve adds to the potential, a row for each."""
        work(5.0 * self.kappa.size * t.size)
        powers = self.factors[:, None] - self.kappa[:, None] * t.ravel()
        return np.exp(np.minimum(powers, _LARGEST_POWER)).reshape(-1, *t.shape)

    def guess(self) -> float:
        """A cost to begin with: that of Gaussian noise with the same mean loss, about."""
        return min(max(_GUESS * _mean(self.sides), 1e-7 * self.v), 0.4 * self.v)

    def heights(self, left: float) -> list[Floats]:
        """The left side of (*) in either direction, at a few points."""
        return [side.heights(left, self.coarse) for side in self.sides]

    def drawn(self, sides: list[Floats]) -> tuple[float, int, int]:
        """About the share `τ` that (*) needs, negative if none; the direction and the point."""
        if not self.kappa.size:
            return math.inf, 0, 0
        shares = [(heights - self.budget) / self.reserves for heights in sides]
        tops = [int(np.argmax(share)) for share in shares]
        which = max(range(len(tops)), key=lambda i: shares[i][tops[i]])
        share, at = shares[which], tops[which]
        most = float(share[at])
        if 0 < at < share.size - 1:
            # The top of the parabola through three points.
            before, after = float(share[at - 1]), float(share[at + 1])
            bend, tilt = 2.0 * most - before - after, before - after
            if 0.0 < bend < math.inf:
                most += min(0.125 * tilt * (tilt / bend), _TOP * abs(most))
        return most, which, at

    def drawn_with_slope(self, left: float) -> tuple[float, float]:
        """About the share `τ` that (*) needs, and how fast it falls as the cost grows."""
        share, which, at = self.drawn(self.heights(left))
        slope = self.sides[which].slope(left, float(self.coarse[at]))
        return share, slope / float(self.reserves[at])

    def _right_end(self, left: float) -> float:
        """About the `t` from which on the left side is at most the slack."""
        low, step = self.start, math.sqrt(-2.0 * left * math.log(self.slack)) + _mean(self.sides)
        t = np.linspace(low, low + step, _PARTS + 1)
        exceeds = self._exceeds(left, t[1:])
        while exceeds.all() and step < _FARTHEST_T:
            low, step = low + step, 2.0 * step
            t = np.linspace(low, low + step, _PARTS + 1)
            exceeds = self._exceeds(left, t[1:])
        low, step = float(t[np.count_nonzero(exceeds[:-1])]), step / _PARTS
        t = np.linspace(low, low + step, _PARTS + 1)
        return float(t[np.count_nonzero(self._exceeds(left, t[1:-1])) + 1])

    def _exceeds(self, left: float, t: Floats) -> NDArray[np.bool_]:
        """Whether the left side is above the slack; it falls in `t`."""
        heights = [side.heights(left, t) for side in self.sides]
        return np.asarray(np.max(heights, axis=0) > self.slack)

    def proves(self, left: float, share: float, sides: list[Floats]) -> bool:
        """Whether (*) holds for this `τ`, proven; `left` is rounded in the caller's favour.

        The heights of both sides at a few points only say where cells should be narrow.
        """
        if not share > 0.0:
            return False
        # More is left than is claimed: the left side is only larger.
        left = left * (1.0 + 4.0 * U)
        t = self._edges(np.max(sides, axis=0), share)
        return all(self._settled(side, left, share, t) for side in self.sides)

    def _edges(self, heights: Floats, share: float) -> Floats:
        """Ends of the cells that a proof starts with: narrow where both sides are close."""
        t, right = self.coarse, self.budget + share * self.reserves
        room, bent = np.maximum(right - heights, 0.0), right + heights
        bend = np.abs(bent[2:] - 2.0 * bent[1:-1] + bent[:-2])
        bend = np.concatenate([bend[:1], bend, bend[-1:]])
        # A cell of `n` parts of a step is settled where `room >= bend / 8n²`.
        parts = np.clip(
            np.sqrt(bend / (8.0 * np.maximum(room, _TINY))) * _NARROW, _LEAST_PARTS, _MOST_PARTS
        )
        whole = np.concatenate([[0.0], np.cumsum(0.5 * (parts[1:] + parts[:-1]))])
        edges = np.interp(np.linspace(0.0, whole[-1], math.ceil(whole[-1]) + 1), whole, t)
        edges[0], edges[-1] = t[0], t[-1]
        return np.asarray(edges)

    def _settled(self, side: Outcomes, left: float, share: float, t: Floats) -> bool:
        low, high = t[:-1], t[1:]
        heights = side.heights(left, t)
        if heights[-1] > self.slack:
            return False
        at_low, at_high = heights[:-1], heights[1:]
        for _ in range(_ROUNDS):
            kept = ~self._below_tangents(share, (low, at_low), (high, at_high))
            if not kept.any():
                return True
            low, high = low[kept], high[kept]
            if low.size * _SPLIT > _MOST_CELLS:
                return False
            edges = np.linspace(low, high, _SPLIT + 1, axis=1)
            edges[:, -1] = high
            found = side.heights(left, edges.ravel()).reshape(edges.shape)
            if np.any(found > self._right_side(share, edges)):
                return False
            low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
            at_low, at_high = found[:, :-1].ravel(), found[:, 1:].ravel()
        return False

    def _right_side(self, share: float, t: Floats) -> Floats:
        """About the right side of (*)."""
        curve = gaussian.curve(t.ravel(), 0.0, self.v, 0.0)[1].reshape(t.shape)
        return np.asarray(
            (1.0 - self.slack) * curve + share * self._exponentials(t).sum(axis=0) + self.slack
        )

    def _below_tangents(
        self, share: float, low: tuple[Floats, Floats], high: tuple[Floats, Floats]
    ) -> NDArray[np.bool_]:
        """In which cells both ends of the chord lie below the tangents of the right side."""
        middle = 0.5 * (low[0] + high[0])
        curve = (1.0 - self.slack) * gaussian.curve(middle, 0.0, self.v, 2.0 * U)[0]
        slope = (1.0 - self.slack) * _slope(middle, self.v)
        kappa = self.kappa[:, None]
        relative = self.error[:, None] + 8.0 * U * kappa * middle
        tails = share * self._exponentials(middle) * (1.0 - np.minimum(relative, 1.0))
        out = np.ones(middle.shape, dtype=bool)
        for t, height in (low, high):
            away = np.expm1(t - middle)
            line = curve - slope * away + (tails * (1.0 - kappa * away)).sum(axis=0) + self.slack
            size = curve + np.abs(slope * away) + (tails * (1.0 + kappa * np.abs(away))).sum(axis=0)
            out &= height <= line - _ROUNDING * (size + self.slack)
        return out


def _slope(t: Floats, v: float) -> Floats:
    """`-dh/d ln x` of the Gaussian's curve, `e^t Φ(-mu/2 - t/mu)`, to within the rounding."""
    mu = math.sqrt(v)
    return np.asarray(normal_density(t / mu - 0.5 * mu) * mills_ratio(t / mu + 0.5 * mu))
