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
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U, mills_ratio, normal_density
from residua.pld.families import gaussian
from residua.pld.pld import Pld
from residua.pld.residue.slack import tents_above
from residua.work_limit import remembered, work

_SPACING = 48
"""Values of `v` in a decade at which costs are worked out."""
_FINE, _TRUNCATED, _MOST_OUTCOMES = 0.04, 0.02, 256
"""The distance of outcomes beside the size of the loss, and the share of the slack that what lies
beyond the last one may take. Longer lists of outcomes are replaced by such a list."""
_PARTS, _DIVISIONS, _FARTHEST_T = 16, 6, 1e4
"""The right end is found by dividing an interval into so many parts, so often; and the largest `t`
that is looked at."""
_COARSE = 96
"""Points at which a search looks at both sides."""
_CELLS = 256
"""Cells that a proof starts with."""
_SPLIT, _ROUNDS, _MOST_CELLS = 4, 6, 1 << 14
"""Cells that are not settled are divided into so many, so often, while there are not too many."""
_STRIDE, _CLOSE, _LEAST = 0.3, 2e-3, 18.0
"""In the logarithm of the cost: the steps of a search, its accuracy, and how far it looks."""
_FARTHEST = 0.05
"""Shares further apart than this factor count as so far apart."""
_ALL = Fraction(99, 100)
"""The most that is taken of `v`."""
_RAISES = (1e-3, 1e-2, 0.1)
"""By how much of itself the cost is raised, in turn, until it is proven."""
_SPARE = 1e-2
"""How much more of the reserve is taken than the search found."""
_LARGEST_POWER, _TINY = 50.0, 1e-300
"""Of an exponential: a larger one is more than anything it is compared with, a smaller one less."""
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
        drawn = budget.drawn(left) * (1.0 + _SPARE) + 1e-4 * float(cost / v)
        share = Fraction(f"{drawn:.6e}")
        if share <= 1 and budget.proves(left, float(share) * (1.0 - 4.0 * U)):
            return ReserveCost(cost, share)
    return None


def _balanced(budget: _Budget) -> float | None:
    """About the cost whose share of `v` is that of the reserves that is drawn with it."""

    def gap(log_cost: float) -> float:
        cost = math.exp(log_cost)
        share = budget.drawn(max(budget.v - cost, 0.0)) * budget.v / cost
        return math.log(min(max(share, _FARTHEST), 1.0 / _FARTHEST))

    top = math.log(budget.v)
    if gap(top) > 0.0:
        return None
    start = math.log(budget.guess())
    low, at_low = start, gap(start)
    while at_low <= 0.0:
        high, at_high, low = low, at_low, low - _STRIDE
        if low < top - _LEAST:
            return math.exp(high)
        at_low = gap(low)
    if low == start:
        high, at_high = low, at_low
        while at_high > 0.0:
            low, at_low = high, at_high
            high = min(high + _STRIDE, top)
            at_high = gap(high)
    while high - low > _CLOSE:
        # False position, but never close to an end: the share may fall off a cliff.
        middle = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        found = gap(middle)
        if found > 0.0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
    return math.exp(high)


class Outcomes(NamedTuple):
    """A list of losses and masses above a query; the masses from above, the losses to `error`."""

    losses: Floats
    masses: Floats
    at_infinity: float
    error: float

    def heights(self, left: float, t: Floats) -> Floats:
        """`h(e^t)` of the list and the Gaussian that is left, from above."""
        work(4.0 * t.size * self.losses.size, 80.0 * t.size * self.losses.size)
        at = t[:, None] - self.losses
        error = self.error + 4.0 * U * (np.abs(t).max() + np.abs(self.losses).max())
        if left > 0.0:
            each = gaussian.curve(at.ravel(), error, left, 4.0 * U)[1].reshape(at.shape)
        else:
            each = np.maximum(-np.expm1(np.minimum(at - error, 0.0)), 0.0)
        return np.asarray(each @ self.masses * (1.0 + 2.0 * U * at.shape[1]) + self.at_infinity)


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
        made.append(Outcomes(losses, masses, at_infinity, excess.loss_error))
    return tuple(made)


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
        self.coarse = np.linspace(start, self._right_end(v), _COARSE)
        self.budget = (1.0 - slack) * gaussian.curve(self.coarse, 0.0, v, 0.0)[0]
        self.reserves = np.maximum(self._exponentials(self.coarse).sum(axis=0), _TINY)

    def _exponentials(self, t: Floats) -> Floats:
        """About what each reserve adds to the potential, a row for each."""
        work(5.0 * self.kappa.size * t.size)
        powers = self.factors[:, None] - self.kappa[:, None] * t.ravel()
        return np.exp(np.minimum(powers, _LARGEST_POWER)).reshape(-1, *t.shape)

    def guess(self) -> float:
        """A cost to begin with: that of Gaussian noise with the same mean loss, about."""
        return min(max(_mean(self.sides), 1e-7 * self.v), 0.5 * self.v)

    def drawn(self, left: float) -> float:
        """About the share `τ` that (*) needs, from a few points."""
        if not self.kappa.size:
            return math.inf
        over = np.max([side.heights(left, self.coarse) for side in self.sides], axis=0)
        over -= self.budget + self.slack
        return float(np.max(over / self.reserves, initial=0.0))

    def _right_end(self, left: float) -> float:
        """About the `t` from which on the left side is at most the slack."""
        low, step = self.start, 1.0
        while step < _FARTHEST_T and self._exceeds(left, np.array([low + step])).all():
            low, step = low + step, 2.0 * step
        for _ in range(_DIVISIONS):
            t = np.linspace(low, low + step, _PARTS + 1)
            low = float(t[np.count_nonzero(self._exceeds(left, t[1:-1]))])
            step /= _PARTS
        return low + step

    def _exceeds(self, left: float, t: Floats) -> NDArray[np.bool_]:
        """Whether the left side is above the slack; it falls in `t`."""
        heights = [side.heights(left, t) for side in self.sides]
        return np.asarray(np.max(heights, axis=0) > self.slack)

    def proves(self, left: float, share: float) -> bool:
        """Whether (*) holds for this `τ`, proven; `left` is rounded in the caller's favour."""
        if not share > 0.0:
            return False
        # More is left than is claimed: the left side is only larger.
        left = left * (1.0 + 4.0 * U)
        end = self._right_end(left)
        if self._exceeds(left, np.array([end])).any():
            return False
        t = np.linspace(self.start, end, _CELLS + 1)
        return all(self._settled(side, left, share, t) for side in self.sides)

    def _settled(self, side: Outcomes, left: float, share: float, t: Floats) -> bool:
        low, high = t[:-1], t[1:]
        heights = side.heights(left, t)
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
