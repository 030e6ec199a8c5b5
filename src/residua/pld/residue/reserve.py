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
`e^t` times the reserves at `-t`, and these are larger at `t`. For `t >= 0` both sides are those of
the residue with slack (`slack.py`) but for the exponentials. As functions of `t`, times `e^{-t/2}`,
these are `C e^{-(κ+1/2)y}` composed with `G_m`, `m² = v - c`, with `C = τ r e^{κ(κ+1)c/2}`; so

    B(l) = the same with slack + Σ C_i ∫ e^{-(κ_i+1/2)y - y²/2m² + ly} dy,

over all `y`, where `l = t/m²`. That is log-convex too, and the cells of `certificate.py` decide.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from residua.bounds import Floats, float_down
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.pld import Pld
from residua.pld.residue.certificate import proven_by_cells
from residua.pld.residue.contact_equation import FINE, first_cost, last_place
from residua.pld.residue.excess import Budget, Transform
from residua.pld.residue.slack import Tents, slack_budgets, tents_above, total, truncation_level
from residua.work_limit import remembered, work

_SPACING = 48
"""Values of `v` in a decade at which costs are worked out."""
_FINE, _MOST_OUTCOMES = 0.04, 256
"""The distance of the tents beside the size of the loss. Longer lists of outcomes are replaced by
tents."""
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


# By the integers: to hash a rational takes a division modulo a prime.
@remembered(maxsize=4096)
def _cost(
    v_n: int, v_d: int, reserves: Reserves, slack: float, loss: Pld, start: float
) -> ReserveCost | None:
    v = Fraction(v_n, v_d)
    tents = tents_above(loss, truncation_level(slack), _FINE, _MOST_OUTCOMES)
    if tents is None or max(tents.p_inf, tents.q_inf) >= slack:
        return None
    budget = _Budget(float_down(v), reserves, slack, tents, start, loss.is_symmetric)
    c = _balanced(budget)
    if c is None:
        return None
    for raised in _RAISES:
        cost = min(Fraction(f"{c * (1.0 + raised):.6e}"), _ALL * v)
        drawn = budget.drawn(float(cost)) * (1.0 + _SPARE) + 1e-4 * float(cost / v)
        if not drawn <= 1.0:
            continue
        share = Fraction(f"{drawn:.6e}")
        if share <= 1 and budget.proves(float(v - cost), float(cost), float(share)):
            return ReserveCost(cost, share)
    return None


def _balanced(budget: _Budget) -> float | None:
    """About the cost whose share of `v` is that of the reserves that is drawn with it."""

    def gap(log_cost: float) -> float:
        cost = math.exp(log_cost)
        share = budget.drawn(cost) * budget.v / cost
        return math.log(min(max(share, _FARTHEST), 1.0 / _FARTHEST))

    top = math.log(float(_ALL) * budget.v)
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


class _Budget:
    """Both sides of (*) for one query, as functions of the cost."""

    def __init__(
        self,
        v: float,
        reserves: Reserves,
        slack: float,
        tents: Tents,
        start: float,
        is_symmetric: bool,
    ):
        self.v, self.start = v, start
        self.reserves = [(k, r) for k, r in zip(*reserves, strict=True) if r > 0.0]
        plain, mirrored = slack_budgets(tents, slack)
        self.plain = (plain,) if is_symmetric else (plain, mirrored)
        excess = tents.excess
        self.excesses = (excess,) if is_symmetric else (excess, excess.reversed)

    def guess(self) -> float:
        """A cost to begin with: what the Hellinger distance asks for."""
        return min(first_cost(self.excesses[0], self.v, 1e-7 * self.v), 0.5 * self.v)

    def _exponentials(self, share: float, m2: float, c: float, l: Floats) -> list[Transform]:
        """What that share of each reserve adds to `B`."""
        work(20.0 * len(self.reserves) * l.size)
        made = []
        for kappa, left in self.reserves:
            weight, lift = math.log(share) + math.log(left), 0.5 * kappa * (kappa + 1.0) * c
            away = l - (kappa + 0.5)
            power = 0.5 * m2 * away * away
            log = weight + lift + 0.5 * math.log(2.0 * math.pi * m2) + power
            error = (32.0 + 8.0 * abs(weight) + 8.0 * lift + 8.0 * power) * U
            # `l - (κ + 1/2)` is off by `u` of the larger of the two.
            error = error + 4.0 * U * m2 * np.abs(away) * (np.abs(l) + kappa + 0.5)
            made.append(Transform(log, error, m2 * away, np.full(l.size, m2)))
        return made

    def drawn(self, c: float) -> float:
        """About the share `τ` that (*) needs, from a few points."""
        if not self.reserves:
            return math.inf
        m2, most = self.v - c, 0.0
        for excess, plain in zip(self.excesses, self.plain, strict=True):
            first = self.start / m2
            end = max(last_place(max(excess.top, 0.0), m2, c, plain), first)
            l = first + (end - first) * FINE
            a, b = excess.transform(m2, l).log, plain(m2, c, l).log
            whole = total(self._exponentials(1.0, m2, c, l)).log
            with np.errstate(over="ignore"):
                over = np.exp(np.minimum(b - whole, 600.0)) * np.expm1(np.minimum(a - b, 100.0))
            most = max(most, float(np.max(over, initial=0.0)))
        return most

    def proves(self, m2: float, c: float, share: float) -> bool:
        """Whether (*) holds for this `τ`, proven; all three may be off by `2u`."""
        if not share > 0.0:
            return False
        share *= 1.0 - 4.0 * U

        def with_reserves(plain: Budget) -> Budget:
            return lambda m2, c, l: total([plain(m2, c, l), *self._exponentials(share, m2, c, l)])

        budgets = with_reserves(self.plain[0]), with_reserves(self.plain[-1])
        if len(self.plain) == 1:
            budgets = budgets[:1] * 2
        first = self.start / m2 * (1.0 - 8.0 * U)
        known = np.empty(0)
        return proven_by_cells(self.excesses[0], m2, c, known, budgets, first) is None
