"""Gaussian with slack: what a query costs of a budget `G_mu ⊕ R_{0,delta}`.

A query `L` may be charged `(c, η)` if `L ⊕ G_m ⪯ G_mu ⊕ R_{0,η}`, `m² = mu² - c`: the rest of the
budget composed to both sides leaves `G_m ⊕ R_{0,delta'}`, `1 - delta = (1-η)(1 - delta')`. With
slack the query may have mass at infinity, be asymmetric, or have tails that no Gaussian of its size
covers.

In terms of excesses (`excess.py`) the right side has `(1-η) e_{G_mu} + η e^{-|y|/2}`, and a query
with masses `p` at `+∞` and `q` of its `Q` at `-∞` has `p e^{-y/2}` and `q e^{y/2}` beside its
tents. The condition is that `A <= B` everywhere, where now

    B(l) = (1-η) B_Gaussian(l) + (η-p) ∫ e^{-y/2 - y²/2m² + ly} dy over y > 0,
                               + (η-q) ∫ e^{y/2 - y²/2m² + ly} dy over y < 0.

That is log-convex too, so the cells of `certificate.py` decide, both directions at once.
Every term is positive and relatively accurate: nothing is hidden where `h` is close to 1.

What is not finite is replaced by tents above it: on either side of `x = 1`, through proven
upper ends of its curve; beyond the last point the height there counts as mass at infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from residua import checks
from residua.bounds import Floats, Interval, float_down, float_up
from residua.pld.arithmetic import MANY
from residua.pld.arithmetic.convexity_bounds import lower_hull
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.constructors import approximate_dp
from residua.pld.constructors import gaussian as gaussian_of
from residua.pld.families import gaussian
from residua.pld.pld import ACCURACY, Pld, query
from residua.pld.residue.certificate import proven_cost
from residua.pld.residue.contact_equation import solve
from residua.pld.residue.excess import (
    Budget,
    FiniteExcess,
    Transform,
    gaussian_transform,
    tail_transform,
)
from residua.pld.residue.excess_nodes import ladder
from residua.pld.residue.finite import finite_excess
from residua.pld.residue.gdp_residue import gdp_residue_cost, squared
from residua.work_limit import remembered, work

_FINE = 0.012
"""Distance of the tents beside the size of the loss at 1, and beside their own place."""
_TRUNCATED = 0.02
"""The share of the slack that truncation may take."""
_ALL = 0.99
"""The share of `mu²` from which a query takes all there is."""


def slack_cost(mu_squared: Fraction | float, L: Pld, eta: float) -> Interval | None:
    """The cost `c` of a query for a given slack: `L ⊕ G_sqrt(mu² - hi) ⪯ G_mu ⊕ R_{0,η}` is proven.

    Args:
        mu_squared: `mu²`, 0 or more.
        L: the query; its Gaussian part splits off.
        eta: the slack `η`, a probability; 0 is `gdp_residue_cost`.

    Returns:
        An interval: `hi` is proven to be enough, `lo` is the Gaussian part alone. None if `L` is
        not proven to fit.
    """
    v, share = squared(mu_squared), checks.probability("eta", eta)
    if share == 0.0:
        return gdp_residue_cost(v, L)
    return _cost(v, query("L", L), share)


@remembered(maxsize=1 << 12)
def _cost(v: Fraction, L: Pld, eta: float) -> Interval | None:
    part = L._exact_variance
    low = float_down(v)
    if part > v or eta >= 1.0:
        return None
    rest = Pld(None, L.terms)
    # What is (0, η)-DP fits the slack alone: `L ⪯ R_{0,η}` is `h(1) <= η`.
    if rest.is_identity or rest.delta(0.0) <= eta:
        return Interval(float_down(part), float_up(part))
    tents = tents_above(rest, _level(eta), _FINE, MANY)
    if tents is None or max(tents.p_inf, tents.q_inf) > eta or low <= 0.0:
        return None
    found = _proven_cost(tents, low, eta)
    if found is not None and found > _ALL * low:
        # Nothing to speak of would be left: then all is taken, if the query fits at all.
        fits = rest <= gaussian_of(mu=math.sqrt(low) * (1.0 - 2.0 * U)) + approximate_dp(0.0, eta)
        found = low if fits else None
    if found is None or part + Fraction(found) > v:
        return None
    # A Gaussian part costs at least itself; nothing better is claimed below.
    return Interval(float_down(part), float_up(part + Fraction(found)))


def _level(eta: float) -> float:
    """The height at which to truncate, one for a range of slacks so that tents are made once."""
    return _TRUNCATED * 2.0 ** math.floor(math.log2(eta))


# -- the query ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tents:
    """An excess above that of the query: tents, and upper bounds of the masses at infinity."""

    excess: FiniteExcess
    p_inf: float
    q_inf: float


@remembered(maxsize=64)
def tents_above(L: Pld, level: float, fine: float, most: int | None = None) -> Tents | None:
    """Tents above a query, down to heights of `level`; `fine` is their distance beside its size.

    A list of at most `most` outcomes is taken as it is. None if the query may lose everything with
    certainty.
    """
    masses = L.mass_at_infinity, L.mass_at_minus_infinity
    if L.is_infinite or max(masses) >= 1.0:
        return None
    exact = finite_excess(L) if L.is_finite else None
    if exact is not None and (most is None or exact.losses.size <= most):
        return Tents(exact, *masses)
    # Both curves have the same height at 1, which one of them may enclose poorly.
    sides = (L,) if L.is_symmetric else (L, L.reverse())
    at_one = min(float(s._evaluator.right(np.zeros(1), 0.0, ACCURACY)[1][0]) for s in sides)
    made = [_side(side, at_one, level, fine) for side in sides]
    (right, p_inf), (left, q_inf) = made[0], made[-1]
    losses = np.concatenate([-left[0][::-1], right[0]])
    weights = np.concatenate([left[1][::-1], right[1]])
    return Tents(FiniteExcess(weights, losses, 0.0, 0.0), p_inf, q_inf)


def _side(L: Pld, at_one: float, level: float, fine: float) -> tuple[tuple[Floats, Floats], float]:
    """Places and weights of tents whose sum, with the last height, is above the curve."""
    evaluator = L._evaluator
    floor = float(L.mass_at_infinity_bounds.hi)
    end = min(evaluator._top, max(evaluator.reach(level), 1e-9), 600.0)
    size = max(2.5 * min(at_one, 0.4), 1e-9)
    y = [0.0]
    while y[-1] < end:
        y.append(y[-1] + fine * (size + y[-1]))
    work(200.0 * len(y))
    t = np.minimum(np.array(y), end)
    _, high = evaluator.right(t, 0.0, ACCURACY)
    high[0] = at_one
    enough = np.flatnonzero(high - floor <= level)
    last = int(enough[0]) if enough.size else t.size - 1
    t, high = t[: last + 1], np.minimum.accumulate(high[: last + 1])
    kept = lower_hull(np.exp(t).tolist(), high.tolist())
    t, high = t[kept], high[kept]
    if t.size < 2:
        return (np.empty(0), np.empty(0)), float(high[-1])
    x = np.exp(t)
    # Slopes of the chords, in units of x: q beyond each place.
    q = -np.diff(high) / (x[:-1] * np.expm1(np.diff(t)))
    jump = np.maximum(q - np.append(q[1:], 0.0), 0.0)
    weights = jump * np.exp(0.5 * t[1:])
    places = t[1:]
    work(4.0 * t.size * t.size, 24.0 * t.size * t.size)
    # What rounding took away is put back: the sum must be at least the heights it came from.
    sums = 2.0 * np.sinh(0.5 * np.maximum(places - t[:, None], 0.0)) @ weights * np.exp(0.5 * t)
    needed = (high - high[-1])[:-1] / np.maximum(sums[:-1], 1e-300)
    scale = max(1.0, float(np.max(needed))) * (1.0 + 1e-12)
    return (places, weights * scale), float(high[-1]) * (1.0 + 1e-12)


# -- the budget ---------------------------------------------------------------------------------


def slack_transform(
    eta: float, right: float, left: float, m2: float, c: float, l: Floats
) -> Transform:
    """`ln B(l)` with slack: `right` is `η - p`, `left` is `η - q`."""
    parts = [_scaled(gaussian_transform(m2, c, l), 1.0 - eta)]
    if right > 0.0:
        parts.append(_scaled(tail_transform(m2, l), right))
    if left > 0.0:
        back = tail_transform(m2, -l)
        parts.append(_scaled(back._replace(mean=-back.mean), left))
    log = parts[0].log
    for one in parts[1:]:
        log = np.logaddexp(log, one.log)
    shares = [np.exp(one.log - log) for one in parts]
    mean = sum((w * one.mean for w, one in zip(shares, parts, strict=True)), np.zeros(l.size))
    spread = sum(
        (w * (one.spread + (one.mean - mean) ** 2) for w, one in zip(shares, parts, strict=True)),
        np.zeros(l.size),
    )
    error = np.max([one.error for one in parts], axis=0) + 64.0 * U
    return Transform(log, error, mean, spread)


def _scaled(one: Transform, weight: float) -> Transform:
    return one._replace(log=one.log + math.log(weight), error=one.error + 16.0 * U)


# -- the cost -----------------------------------------------------------------------------------


def _budgets(tents: Tents, eta: float) -> tuple[Budget, Budget]:
    """The budget that the slack and the masses at infinity leave, and the same mirrored."""
    right, left = (max((eta - p) * (1.0 - 4.0 * U), 0.0) for p in (tents.p_inf, tents.q_inf))
    return partial(slack_transform, eta, right, left), partial(slack_transform, eta, left, right)


def _may_fit(tents: Tents, v: float, eta: float) -> bool:
    """Whether the query alone may fit: no loss at which its tents are clearly too high."""
    sides = ((tents.excess, tents.p_inf), (tents.excess.reversed, tents.q_inf))
    for excess, mass in sides:
        keep = excess.losses > 0.0
        y = np.concatenate([[0.0], excess.losses[keep]])
        work(200.0 * y.size)
        heights, _ = ladder(np.diff(y, prepend=0.0), np.concatenate([[0.0], excess.weights[keep]]))
        h, _ = gaussian._right(y, 0.0, v, 0.0)
        room = ((1.0 - eta) * h + (eta - mass)) * np.exp(-0.5 * y)
        if not np.all(heights <= room * (1.0 + 1e-6)):
            return False
    return True


def _proven_cost(tents: Tents, v: float, eta: float) -> float | None:
    """A cost that is proven, unless it is more than `_ALL` of `v`; None if none is found."""
    if not _may_fit(tents, v, eta):
        return None
    budget, mirrored = _budgets(tents, eta)
    excess = tents.excess
    contact = solve(excess, v, None, budget, _ALL)
    return proven_cost(excess, v, contact, _ALL, budgets=(budget, mirrored))[1]
