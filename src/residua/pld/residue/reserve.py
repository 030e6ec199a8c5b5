"""The cost of a query with heavy tails: a Gaussian residue, and a reserve for what it leaves over.

A potential filter for `(eps, delta)` may add to the curve of its Gaussian an exponential and a
constant: with `t = eps - z`, `z` the loss so far, and an order `κ + 1` fixed in advance,

    φ(t) = h_{G_√v}(e^t) + r e^{κ(κ+1)v/2 - κt} + s.

`φ(eps) <= delta` at the start, and `(1 - e^t)_+ <= φ(t)` always. A query `L` may take the state
`(v, r, s)` to `(v - c, r', s - η)` if `E_L[φ'(t - Z)] <= φ(t)` for all `t`, in both directions.
Gaussian noise takes `v` alone: the factor `e^{κ(κ+1)v/2}` is what it makes of the exponential. With
`M = E_L[e^{κZ}]`, `r' = (r - α) e^{κ(κ+1)c/2} / M`, the condition becomes

    h_{L ⊕ G_√(v-c)}(e^t) <= h_{G_√v}(e^t) + α e^{κ(κ+1)v/2 - κt} + η      for all t.          (*)

What is proven is slightly more, with `(1-η) h_{G_√v}` on the right, as verifiers ask for.

Composing both sides with a Gaussian shows that `(c, α, η)` for some `v` will do for every larger
`v`. So costs are worked out at the next lower of a few values of `v` (`rung`).

**Why this helps.** The tail of a subsampled Gaussian lies above every Gaussian of its size, by
little and far out. A constant `η` alone would pay for a rare large loss what it costs at the worst
`t`; the exponential pays what it costs at likely ones.

**Proof of (*) for a given `(c, α, η)`.** It is enough for `t >= 0`: for `t < 0` the difference of
the curves is `e^t` times that of the reversed ones at `-t`, which is at most `e^t (a e^{κt} + η)`,
`a = α e^{κ(κ+1)v/2}`. From the first `t` on at which the left side is at most `η`, it stays so. Up
to there it is proven over cells. In `x = e^t` the left side is convex and so below its chord, and
each term on the right is convex and so above its tangent in the middle of the cell. Both are lines:
two comparisons settle a cell, and cells that are not settled are divided.

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
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.pld import Pld
from residua.pld.residue.slack import tents_above

_SPACING = 48
"""Values of `v` in a decade at which costs are worked out."""
_FINE, _TRUNCATED, _MOST_OUTCOMES = 0.04, 0.02, 256
"""The distance of outcomes beside the size of the loss, and the share of the slack that what lies
beyond the last one may take. Longer lists of outcomes are replaced by such a list."""
_HALVINGS, _FARTHEST_T = 24, 1e4
"""Bisection steps for the right end, and the largest `t` that is looked at."""
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
_DESCENTS, _FEW = 8, 64
"""How often `_one_by_one` lowers `v` before it gives up, and up to how many copies are always
charged in this way."""
_LEAST_FACTOR = 3e-5
"""More than a few factors that cost less of `v` than this are not charged one by one."""
_ALL = Fraction(99, 100)
"""What takes more of `v` than this is not charged so: then hardly anything would be left."""
_RAISES = (1e-3, 1e-2, 0.1)
"""By how much of itself the cost is raised, in turn, until it is proven."""
_SPARE = 1e-2
"""How much more of the reserve is taken than the search found."""
_ROUNDING = 1e-10
"""Relative allowance for the arithmetic of a comparison: some ten operations on floats."""


class ReserveCost(NamedTuple):
    """What a query takes of `v` and, at the value of `v` it was worked out for, of the reserve."""

    cost: Fraction
    drawn: Fraction
    """The `α` of the inequality."""


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
    v: Fraction, reserve: Fraction, slack: float, order: float, loss: Pld
) -> ReserveCost | None:
    """A cost `(c, α)` for which (*) is proven, with the slack `η` that is given.

    Of the pairs that are proven, one that takes about the same share of `v` and of the reserve.

    Args:
        v: `mu²` of the budget, positive; best one of the values of `rung`.
        reserve: the reserve `r`, positive; best one of the values of `rung`.
        slack: `η`, positive.
        order: `κ + 1`, above 1.
        loss: the query, without mass at infinity that splits off.

    Returns:
        None if no pair within the budget is proven.
    """
    if sum(loss.terms.values()) > 1 and any(isinstance(f, GaussianMixture) for f in loss.terms):
        # Curves of a few copies are slow to read; those of many small ones are not.
        copies = sum(loss.terms.values())
        each = slack / 2.0 ** math.ceil(math.log2(copies))
        if copies <= _FEW or all(_is_large(Pld(None, {f: 1}), v, each) for f in loss.terms):
            return _one_by_one(v, reserve, each, order, loss)
    return _cost(*v.as_integer_ratio(), *reserve.as_integer_ratio(), slack, order, loss)


def _one_by_one(
    v: Fraction, reserve: Fraction, each: float, order: float, loss: Pld
) -> ReserveCost | None:
    """The cost of a composition as that of its factors, one after the other, a slack for each.

    Each is worked out at a value of `v` below what is left after all of them. What the first ones
    make of the reserve of the later ones, `g = M e^{-κ(κ+1)c/2}` each, is at most `max(1, g)^n` in
    all.
    """
    low = v
    for _ in range(_DESCENTS):
        total, drawn, growth = Fraction(0), Fraction(0), 0.0
        for factor, n in loss.terms.items():
            one = Pld(None, {factor: 1})
            found = _cost(*low.as_integer_ratio(), *reserve.as_integer_ratio(), each, order, one)
            if found is None:
                return None
            total, drawn = total + n * found.cost, drawn + n * found.drawn
            growth += n * max(_growth(one, order, found.cost), 0.0)
        drawn = Fraction(f"{float(drawn) * math.exp(min(growth, 600.0)) * (1.0 + 1e-6):.6e}")
        if total >= v or drawn > reserve:
            return None
        if low <= v - total:
            return ReserveCost(total, drawn)
        low = rung(v - total)
    return None


def _is_large(one: Pld, v: Fraction, slack: float) -> bool:
    """Whether one query costs so much of `v` that its own cost is known well."""
    sides = outcomes_above(one, _level(slack))
    return sides is None or _mean(sides) >= _LEAST_FACTOR * float(v)


def _growth(loss: Pld, order: float, cost: Fraction) -> float:
    """`ln M - κ(κ+1)c/2`, from above."""
    kappa = order - 1.0
    sides = (loss,) if loss.is_symmetric else (loss, loss.reverse())
    divergence = max(float(side.renyi(order)) for side in sides)
    return kappa * (divergence - 0.5 * order * float(cost) * (1.0 - 8.0 * U)) * (1.0 + 8.0 * U)


def _level(slack: float) -> float:
    """The height at which a list of outcomes may end, one for a range of slacks."""
    return _TRUNCATED * 2.0 ** math.floor(math.log2(slack))


def _mean(sides: tuple[Outcomes, ...]) -> float:
    """Twice the mean loss: about the cost as Gaussian noise."""
    return max(2.0 * abs(float(side.losses @ side.masses)) for side in sides)


# By the integers: to hash a rational takes a division modulo a prime.
@lru_cache(maxsize=4096)
def _cost(
    v_n: int, v_d: int, r_n: int, r_d: int, slack: float, order: float, loss: Pld
) -> ReserveCost | None:
    v, reserve = Fraction(v_n, v_d), Fraction(r_n, r_d)
    sides = outcomes_above(loss, _level(slack))
    if sides is None or any(side.at_infinity >= slack for side in sides):
        return None
    most = float(reserve)
    budget = _Budget(float_down(v), order - 1.0, slack, most, sides)
    c = _balanced(budget)
    if c is None:
        return None
    for raised in _RAISES:
        cost = Fraction(f"{c * (1.0 + raised):.6e}")
        if cost > _ALL * v:
            return None
        left = float(v - cost)
        drawn = budget.drawn(left) * (1.0 + _SPARE) + 1e-4 * most * float(cost / v)
        alpha = Fraction(f"{drawn:.6e}")
        if alpha <= reserve and budget.proves(left, float(alpha) * (1.0 - 4.0 * U)):
            return ReserveCost(cost, alpha)
    return None


def _balanced(budget: _Budget) -> float | None:
    """About the cost whose share of `v` is that of the reserve that is drawn with it."""

    def gap(log_cost: float) -> float:
        cost = math.exp(log_cost)
        share = budget.drawn(max(budget.v - cost, 0.0)) / (budget.reserve * cost / budget.v)
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
        at = t[:, None] - self.losses
        error = self.error + 4.0 * U * (np.abs(t).max() + np.abs(self.losses).max())
        if left > 0.0:
            each = gaussian.curve(at.ravel(), error, left, 4.0 * U)[1].reshape(at.shape)
        else:
            each = np.maximum(-np.expm1(np.minimum(at - error, 0.0)), 0.0)
        return np.asarray(each @ self.masses * (1.0 + 2.0 * U * at.shape[1]) + self.at_infinity)


@lru_cache(maxsize=64)
def outcomes_above(loss: Pld, level: float) -> tuple[Outcomes, ...] | None:
    """Lists above a query and above its reversal (one if it is symmetric), down to `level`.

    The curve is enclosed separately on both sides of `x = 1`. The lower side is raised so that they
    meet there; what is then missing to a whole is no loss. None if the query has no such list.
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
        mass *= max(at_one) / height
        nothing = max(1.0 - mass - float(np.sum(p)), 0.0) + 1e-13
        losses, masses = np.append(sign * z, 0.0), np.append(p, nothing)
        made.append(Outcomes(losses, masses, mass, excess.loss_error))
    return tuple(made)


class _Budget:
    """Both sides of (*) for one query, as functions of what is left of `v`."""

    def __init__(
        self,
        v: float,
        kappa: float,
        slack: float,
        reserve: float,
        sides: tuple[Outcomes, ...],
    ):
        self.v, self.kappa, self.slack, self.reserve = v, kappa, slack, reserve
        self.sides = sides
        self.lift = 0.5 * kappa * (kappa + 1.0) * v
        self.coarse = np.linspace(0.0, self._right_end(v), _COARSE)
        self.budget = (1.0 - slack) * gaussian.curve(self.coarse, 0.0, v, 0.0)[0]

    def guess(self) -> float:
        """A cost to begin with: that of Gaussian noise with the same mean loss, about."""
        return min(max(_mean(self.sides), 1e-7 * self.v), 0.5 * self.v)

    def drawn(self, left: float) -> float:
        """About the `α` that (*) needs, from a few points."""
        t = self.coarse
        over = np.max([side.heights(left, t) for side in self.sides], axis=0) - self.budget
        weights = np.exp(np.minimum(self.kappa * t - self.lift, 700.0))
        return float(np.max((over - self.slack) * weights, initial=0.0))

    def _right_end(self, left: float) -> float:
        """About the `t` from which on the left side is at most the slack."""
        low, high = 0.0, 1.0
        while high < _FARTHEST_T and self._exceeds(left, high):
            low, high = high, 2.0 * high
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._exceeds(left, middle) else (low, middle)
        return high

    def _exceeds(self, left: float, t: float) -> bool:
        at = np.array([t])
        return any(float(side.heights(left, at)[0]) > self.slack for side in self.sides)

    def proves(self, left: float, alpha: float) -> bool:
        """Whether (*) holds for this `α`, proven; `left` is rounded in the caller's favour."""
        if not alpha > 0.0:
            return False
        # More is left than is claimed: the left side is only larger.
        left = left * (1.0 + 4.0 * U)
        end = self._right_end(left)
        if self._exceeds(left, end):
            return False
        t = np.linspace(0.0, end, _CELLS + 1)
        return all(self._settled(side, left, alpha, t) for side in self.sides)

    def _settled(self, side: Outcomes, left: float, alpha: float, t: Floats) -> bool:
        low, high = t[:-1], t[1:]
        heights = side.heights(left, t)
        at_low, at_high = heights[:-1], heights[1:]
        for _ in range(_ROUNDS):
            kept = ~self._below_tangents(alpha, (low, at_low), (high, at_high))
            if not kept.any():
                return True
            low, high = low[kept], high[kept]
            if low.size * _SPLIT > _MOST_CELLS:
                return False
            edges = np.linspace(low, high, _SPLIT + 1, axis=1)
            edges[:, -1] = high
            found = side.heights(left, edges.ravel()).reshape(edges.shape)
            if np.any(found > self._right_side(alpha, edges)):
                return False
            low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
            at_low, at_high = found[:, :-1].ravel(), found[:, 1:].ravel()
        return False

    def _right_side(self, alpha: float, t: Floats) -> Floats:
        """About the right side of (*)."""
        curve = gaussian.curve(t.ravel(), 0.0, self.v, 0.0)[1].reshape(t.shape)
        return np.asarray(
            (1.0 - self.slack) * curve + alpha * np.exp(self.lift - self.kappa * t) + self.slack
        )

    def _below_tangents(
        self, alpha: float, low: tuple[Floats, Floats], high: tuple[Floats, Floats]
    ) -> NDArray[np.bool_]:
        """In which cells both ends of the chord lie below the tangents of the right side."""
        middle = 0.5 * (low[0] + high[0])
        curve = (1.0 - self.slack) * gaussian.curve(middle, 0.0, self.v, 2.0 * U)[0]
        slope = (1.0 - self.slack) * _slope(middle, self.v)
        power = self.lift - self.kappa * middle
        tail = alpha * np.exp(power) * (1.0 - 8.0 * U * (4.0 + np.abs(power) + self.lift))
        out = np.ones(middle.shape, dtype=bool)
        for t, height in (low, high):
            away = np.expm1(t - middle)
            line = curve - slope * away + tail * (1.0 - self.kappa * away) + self.slack
            size = curve + np.abs(slope * away) + tail * (1.0 + self.kappa * np.abs(away))
            out &= height <= line - _ROUNDING * (size + self.slack)
        return out


def _slope(t: Floats, v: float) -> Floats:
    """`-dh/d ln x` of the Gaussian's curve, `e^t Φ(-mu/2 - t/mu)`, to within the rounding."""
    mu = math.sqrt(v)
    return np.asarray(normal_density(t / mu - 0.5 * mu) * mills_ratio(t / mu + 0.5 * mu))
