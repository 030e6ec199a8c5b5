"""The largest PLD whose Rényi divergences stay below given bounds, in both directions.

Any test of `P` against `Q` is a pair `(p, q)` of probabilities, and by data processing the two
coins it makes satisfy the same bounds: `D_α(p, q) <= ρ(α)` and `D_α(q, p) <= ρ(α)` at every order.
Conversely each such pair of coins is a mechanism within the bounds. So the testing region of
the supremum of all PLDs within them *is* the set of these pairs (which is convex): nothing is
lost beyond what the bounds themselves do not say.

With `F_α(p, q) = p^α q^{1-α} + (1-p)^α (1-q)^{1-α}`, convex in both, a tangent at any point is a
half-plane that contains the region: `p - xq <= p_0 - x q_0 + (e^{(α-1)ρ} - F_0) / F_p` with
`x = -F_q / F_p`. That is an upper bound on `h(x)`. The orders used may be any subset. Points are
found on the boundary in floats, the bound is charged with all rounding, and the dots are
connected in rationals; the part `x < 1` is the mirror image.

The discrete Gaussian on the integers, shifted by an integer: an exact testing region.

`P(x) ∝ ρ^{x²}` with `ρ = e^{-1/(2σ²)}`, against the same shifted by `k` (Canonne, Kamath and
Steinke 2020). The loss falls in `x`, so the best tests are thresholds `x <= m`. Weights are worked
out in integers over 2^480, `w_{x+1} = w_x ρ^{2x+1}`, each at most `4 (x+2)²` units too small; sums
of them bound the vertices of the testing region, which is then rounded outward (`above`) or inward
to 2^-400. Tails lighter than that become mass at infinity.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import MOST_STEPS
from residua.pld.arithmetic.exact import GRID, ExactAtoms, Side, exp_of, region
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, U
from residua.pld.discretise.finite import region_above
from residua.sizes import LONGEST_PROVABLE_LIST
from residua.work_limit import work

_BITS = GRID.bit_length() + 79
LARGEST_SIGMA = 2000.0
"""Of a discrete Gaussian: all values that are not lighter than the grid are written out."""
LARGEST_SHIFT = 10_000
"""The same for its sensitivity."""


def discrete_gaussian(sigma: float, shift: int, side: Side) -> ExactAtoms:
    """A finite PLD above or below the discrete Gaussian against itself shifted by `shift >= 1`.

    Meant for `sigma` and `shift` up to the largest named above: all values are written out.
    """
    # Weights lighter than the grid, 2^-400, are left out.
    reach = int(sigma * (2.0 * math.log(GRID)) ** 0.5) + 4
    work(4000.0 * reach, 2000.0 * reach)
    least = _weights(sigma, reach)
    slack = [4 * (x + 2) ** 2 for x in range(reach + 1)]
    most = [w + e for w, e in zip(least, slack, strict=True)]
    # Beyond `reach` the weights fall faster than geometrically, by at least ρ^{2 reach}.
    outside = 4 * most[-1] + (1 << 40)
    total_least = 2 * sum(least) - least[0]
    total_most = 2 * sum(most) - most[0] + 2 * outside
    # P(x <= m) for m = -reach-1, …, reach, below and above, as numerators.
    mirrored = [*reversed(range(1, reach + 1)), *range(reach + 1)]
    low = list(accumulate((least[x] for x in mirrored), initial=0))
    high = list(accumulate((most[x] for x in mirrored), initial=outside))
    floors = [v * GRID // total_most for v in low]
    ceilings = [-(-min(v, total_least) * GRID // total_least) for v in high]
    # The test x <= m catches P up to m, and Q (shifted right) up to m - k; past the end of P only Q
    # still grows.
    end = 2 * reach + 2
    past = range(max(end - shift, 0), end)
    if side == "above":
        points = [(floors[i - shift] if i >= shift else 0, ceilings[i]) for i in range(end)]
        points += [(floors[j], GRID) for j in past]
        whole = [(0, max(p for q, p in points if q == 0)), *((q, p) for q, p in points if q > 0)]
        return region(whole, GRID, GRID)
    points = [(ceilings[max(i - shift, 0)], floors[i]) for i in range(end)]
    points += [(ceilings[j], floors[-1]) for j in past]
    inner = [(q, max(p, q)) for q, p in points]
    return region([(0, 0), *inner, (GRID, GRID)], GRID, GRID)


def _weights(sigma: float, reach: int) -> list[int]:
    """`ρ^{x²}` for `x = 0, …, reach`, over 2^480, rounded down."""
    one = 1 << _BITS
    rho = _floor(exp_of(-1 / (2 * Fraction(sigma) ** 2), "below") * one)
    square = rho * rho >> _BITS
    weights, step = [one], rho
    for _ in range(reach):
        weights.append(weights[-1] * step >> _BITS)
        step = step * square >> _BITS
    return weights


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


_DEPTH = 103.0
"""The curve is followed down to `e^-103`, 1e-45, as far as floats reach."""
_POINTS = 1200
"""Points of the bulk; half as many further out."""
_BULK = 1e-6
"""From here on the points are denser: most of the curve lies there."""
_STRIDE = 10
"""Of many orders, every tenth says about which one binds."""
_MOST = LONGEST_PROVABLE_LIST
"""Of orders that are used from above."""
_MARGIN = 1e-13
"""How far inside the region the points of the inner polygon are kept, relative."""


def largest(orders: Floats, bounds: Floats, side: Side) -> ExactAtoms:
    """The largest PLD with `D_α <= bounds` both ways at all `orders > 1`, from above or below.

    From above, some of very many orders are enough: with fewer bounds the largest PLD is larger.
    """
    if side == "above" and orders.size > _MOST:
        some = np.linspace(0, orders.size - 1, _MOST).round().astype(np.int64)
        some = np.argsort(orders, kind="stable")[some]
        orders, bounds = orders[some], bounds[some]
    # Where p is e^-103, q is about e^-eps smaller, by the plain conversion.
    deepest = -_DEPTH - float(np.min(bounds + _DEPTH / (orders - 1.0)))
    deep = np.linspace(max(deepest, -EXP_RANGE), np.log(_BULK), _POINTS // 2, endpoint=False)
    bulk = np.linspace(np.log(_BULK), np.log(0.25), _POINTS, endpoint=False)
    q = np.concatenate([np.exp(deep), np.exp(bulk), np.linspace(0.25, 1.0, 257)[:-1]])
    log_q, log_q_bar = np.log(q), np.log1p(-q)
    if side == "below":
        return _inscribed(q, *_boundary(log_q, log_q_bar, orders, bounds, _MARGIN)[:2])
    log_p, log_p_bar, active = _boundary(log_q, log_q_bar, orders, bounds, 0.0)
    x, h = _tangents(log_p, log_p_bar, log_q, log_q_bar, active, orders, bounds)
    kept = np.isfinite(x) & np.isfinite(h) & (x >= 1.0) & (h < 1.0)
    if not kept.any():
        return ExactAtoms((), (), 1, 1)
    work(2000.0 * x.size)
    best: dict[Fraction, Fraction] = {}
    for a, v in zip(x[kept].tolist(), np.maximum(h[kept], 0.0).tolist(), strict=True):
        at, height = Fraction(a), Fraction(v)
        best[at] = min(best.get(at, height), height)
        back, mirror = 1 / at, 1 - 1 / at + height / at
        best[back] = min(best.get(back, mirror), mirror)
    places = sorted(best)
    heights = [best[at] for at in places]
    # Upper bounds need not decrease; the curve does.
    for i in range(1, len(heights)):
        heights[i] = min(heights[i], heights[i - 1])
    return region_above(places, heights, False, None)


def _excess(
    log_p: Floats, log_p_bar: Floats, log_q: Floats, log_q_bar: Floats, alpha: Floats, rho: Floats
) -> Floats:
    """`ln F - (α-1) ρ` for each order, forward and backward, about; orders by points."""
    size = max(alpha.size * log_p.size if alpha.shape[1:] == (1,) else alpha.size, log_p.size)
    work(15.0 * size, 100.0 * size)
    rows = []
    for a, a_bar, b, b_bar in (
        (log_p, log_p_bar, log_q, log_q_bar),
        (log_q, log_q_bar, log_p, log_p_bar),
    ):
        first = alpha * a + (1.0 - alpha) * b
        second = alpha * a_bar + (1.0 - alpha) * b_bar
        rows.append(np.logaddexp(first, second) - (alpha - 1.0) * rho)
    return np.concatenate(rows)


def _inscribed(q: Floats, log_p: Floats, log_p_bar: Floats) -> ExactAtoms:
    """The polygon of points well inside the region, and their mirror images."""
    work(3000.0 * q.size)
    points = [(0, 0), (GRID, GRID)]
    p, p_bar = np.exp(log_p) * (1.0 - _MARGIN), np.exp(log_p_bar) * (1.0 + _MARGIN)
    for a, b, c in zip(q.tolist(), p.tolist(), p_bar.tolist(), strict=True):
        # 1 - p is known better from one side, p from the other.
        height = max(Fraction(b), 1 - Fraction(c), Fraction(a))
        at, high = int(Fraction(a) * GRID) + 1, int(height * GRID)
        points += [(min(at, GRID), max(high, at)), (GRID - high, max(GRID - at, GRID - high))]
    return region([(a, min(b, GRID)) for a, b in points], GRID, GRID)


def _boundary(
    log_q: Floats, log_q_bar: Floats, alpha: Floats, rho: Floats, margin: float
) -> tuple[Floats, Floats, Floats]:
    """About the largest `p` for each `q` (as `ln p`, `ln(1-p)`), and the constraint that binds.

    A `margin` keeps every `ln F` that much below its bound, relative to its exponents, on the
    inner side of the last halving. Of many orders first a few say about which one binds at each
    point, then those near it are used; where that was not enough (all are checked), all are.
    """
    every, bounds = alpha[:, None], rho[:, None]
    if alpha.size <= 4 * _STRIDE:
        low, high = _halved(log_q, log_q_bar, every, bounds, margin)
    else:
        few = np.append(np.arange(0, alpha.size - 1, _STRIDE), alpha.size - 1)
        _, high = _halved(log_q, log_q_bar, every[few], bounds[few], margin)
        rough = _slack(high, log_q, log_q_bar, every[few], bounds[few], margin)
        binding = few[rough.argmax(axis=0) % few.size]
        window = binding + np.arange(-_STRIDE, _STRIDE + 1)[:, None]
        near = np.clip(window, 0, alpha.size - 1)
        low, high = _halved(log_q, log_q_bar, alpha[near], rho[near], margin)
        out = _slack(low, log_q, log_q_bar, every, bounds, margin).max(axis=0) > 0.0
        if out.any():
            low[out], high[out] = _halved(log_q[out], log_q_bar[out], every, bounds, margin)
    at = low if margin else high
    excess = _slack(at, log_q, log_q_bar, every, bounds, 0.0)
    return -np.logaddexp(0.0, -at), -np.logaddexp(0.0, at), excess.argmax(axis=0)


def _halved(
    log_q: Floats, log_q_bar: Floats, alpha: Floats, rho: Floats, margin: float
) -> tuple[Floats, Floats]:
    """`ln(p / (1-p))` just inside and just outside of these constraints, for each `q`."""
    low = log_q - log_q_bar
    high = np.full(log_q.shape, EXP_RANGE)
    for _ in range(MOST_STEPS):
        middle = 0.5 * (low + high)
        inside = _slack(middle, log_q, log_q_bar, alpha, rho, margin).max(axis=0) <= 0.0
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low, high


def _slack(
    at: Floats, log_q: Floats, log_q_bar: Floats, alpha: Floats, rho: Floats, margin: float
) -> Floats:
    """What is left of each constraint where `ln(p / (1-p))` is `at`: positive outside."""
    log_p, log_p_bar = -np.logaddexp(0.0, -at), -np.logaddexp(0.0, at)
    excess = _excess(log_p, log_p_bar, log_q, log_q_bar, alpha, rho)
    if margin:
        sizes = 1.0 + np.abs(log_p) + np.abs(log_p_bar) + np.abs(log_q) + np.abs(log_q_bar)
        reach = alpha * sizes + alpha * rho
        excess = excess + margin * np.concatenate([reach, reach])
    return excess


def _tangents(
    log_p: Floats,
    log_p_bar: Floats,
    log_q: Floats,
    log_q_bar: Floats,
    active: Floats,
    alphas: Floats,
    rhos: Floats,
) -> tuple[Floats, Floats]:
    """Points `(x, v)` with `h(x) <= v` proven, from the tangent at each boundary point."""
    backward = active >= alphas.size
    index = np.asarray(active % alphas.size, dtype=np.int64)
    a, rho = alphas[index], rhos[index]
    # The point itself is taken as the floats p and q; u, v are its log ratios.
    p, q = np.exp(log_p), np.exp(log_q)
    p_bar = np.exp(log_p_bar)
    u, v = log_p - log_q, log_p_bar - log_q_bar
    gap = np.maximum(u - v, 1e-300)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        near, far = -np.expm1(-(a - 1.0) * gap), -np.expm1(-a * gap)
        ahead = (a - 1.0) / a * np.exp(u) * far / near
        behind = a / (a - 1.0) * np.exp(v) * near / far
        x = np.where(backward, behind, ahead)
        lead = np.where(backward, (a - 1.0) * rho + a * v, (a - 1.0) * (rho - u))
        rest = np.where(
            backward, q * np.exp(a * v - (a - 1.0) * u), p_bar * np.exp(-(a - 1.0) * gap)
        )
        main = np.where(backward, p_bar, p)
        size = np.exp(lead) + rest + main
        divisor = np.where(backward, (a - 1.0) * far, a * near)
        lift = (np.exp(lead) - main - rest) / divisor
        # Exponents are products of α with logs that carry rounding errors too.
        scale = 1.0 + a * (np.abs(log_p) + np.abs(log_q) + np.abs(log_p_bar) + np.abs(log_q_bar))
        scale = scale + a * np.abs(rho)
        # A generous bound on the relative rounding of one term, exponents apart.
        wrong = (16.0 * EXP_ULPS + 32.0) * U * scale
        lift_error = wrong * size / divisor
        value = p - x * q * (1.0 - wrong) + lift + lift_error + wrong * p + 8.0 * U * (p + x * q)
        place = x * (1.0 + wrong)
    good = (wrong < 1e-3) & (gap > 0.0)
    return np.where(good, place, np.nan), np.where(good, value, np.nan)
