"""The tradeoff curve: the least type II error at a type I error, from the hockey-stick curve.

    tau(alpha) = sup over x of (1 - alpha - h(x)) / x        (conjugacy `h(x) = 1 + (τ⁻¹)*(-x)`)

Any `x = e^t` gives a lower bound: a supporting line. For the upper bound, write `y = 1/x`; then
`g(y) = (1 - alpha) y - y h(1/y)` is concave in `y` (a perspective function), so between samples it
lies below the chords of the neighbouring cells, extended. For `t < 0` the same number is
`1 - alpha/x - h_rev(1/x)`, which does not cancel.

All levels `alpha` are worked on together and share their samples: an even net first, and then more
around two guesses for each level, where a parabola through its highest sample has its top, and
where the chords meet, which is exact at a kink. A level looks at the samples next to its highest
one and at some further and further away, whose chords are long beside the error of the curve, until
that error is all that is left.

A Gaussian alone has a curve in closed form (`support_ends.py`).

Vertices and conjugates of piecewise-linear curves; `tradeoff.py` has `tau`, `epsilon.py` eps.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from residua import checks
from residua.bounds import Floats, Interval, float_down, float_up
from residua.pld.arithmetic import MOST_STEPS
from residua.pld.arithmetic.exact import EXACT_IDENTITY, ExactAtoms
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, U
from residua.pld.constructors import from_hockey_stick, from_tradeoff
from residua.pld.curve import chernoff
from residua.pld.curve.support_ends import gaussian_tradeoff
from residua.work_limit import work

if TYPE_CHECKING:
    from residua.pld.pld import Pld

_FAR = 600.0
"""Samples end here: `e^t` is near the end of the floats."""
_NET = 129
"""Even samples to begin with."""
_STRIDES = np.concatenate([-(2 ** np.arange(9))[::-1], [0], 2 ** np.arange(9)])
"""Which samples a level looks at, counted from its highest one: near it, and so far away that the
curve has fallen by more than its error."""
_NEAR = np.array([-1 / 2, -1 / 16, 0.0, 1 / 16, 1 / 2])
"""New samples next to a guess, in units of the cells next to the highest sample."""
_GRAIN = 7
"""How many binary digits finer than these cells they are."""
_STALLS = 6
"""In how many rounds of new samples, one after the other, the interval of a level may hardly
shrink."""
_GOAL = 1e-12
"""The relative width of an interval that is narrow enough."""
_ACCURATE = 1e-4
"""The accuracy in `eps` that is asked of the curve."""
_NEXT_TO_ONE = 1e-3
"""Where the curve is closer to 1, its complement has more digits."""


class Heights(NamedTuple):
    """Enclosures of a curve, and an upper bound of what it lacks to 1."""

    lo: Floats
    hi: Floats
    lacking: Floats


def tradeoff_bounds(pld: Pld, alpha: Floats) -> Interval:
    """Proven interval for the least type II error at type I error `alpha`, elementwise."""
    flat = np.asarray(alpha, dtype=np.float64).ravel()
    if pld._evaluator._single_atoms is not None or pld.is_identity or pld.is_infinite:
        exact = pld._atoms.exact if not pld.is_identity else EXACT_IDENTITY
        ends = np.array([_exact(exact, Fraction(a)) for a in flat.tolist()]).reshape(-1, 2)
        lo, hi = ends[:, 0], ends[:, 1]
    else:
        pld = pld._workspace()
        lo, hi = _bounds(pld, flat)
    if not alpha.shape:
        return Interval(float(lo[0]), float(hi[0]))
    return Interval(lo.reshape(alpha.shape), hi.reshape(alpha.shape))


def _exact(exact: ExactAtoms, alpha: Fraction) -> tuple[float, float]:
    """Of a finite PLD in rationals: along the vertices of the curve."""
    wanted = (1 - alpha) * exact.p_den
    tails = exact.p_tails
    low, high = 0, len(tails) - 1
    while low < high:
        mid = (low + high) // 2
        low, high = (mid + 1, high) if tails[mid] > wanted else (low, mid)
    if wanted <= tails[-1]:
        return 0.0, 0.0
    if low == 0:
        value = Fraction(exact.q_tails[0], exact.q_den)
    else:
        share = (wanted - tails[low]) / (tails[low - 1] - tails[low])
        q = exact.q_tails[low] + share * (exact.q_tails[low - 1] - exact.q_tails[low])
        value = q / exact.q_den
    return max(0.0, float_down(value)), float_up(value)


def _bounds(pld: Pld, alpha: Floats) -> tuple[Floats, Floats]:
    plus, minus = pld.mass_at_infinity_bounds, pld.mass_at_minus_infinity_bounds
    lo, hi = np.zeros(alpha.shape), np.zeros(alpha.shape)
    start = alpha == 0.0
    if start.any():
        ends = Interval(1.0, 1.0) - minus if minus.hi > 0.0 else Interval(1.0, 1.0)
        lo[start], hi[start] = max(0.0, float(ends.lo)), min(1.0, float(ends.hi))
    # Where 1 - alpha <= p_inf nothing is left to be missed. Elsewhere the curve is below the chord
    # to there: convex, at most 1 - q_inf at 0.
    if plus.lo == 0.0 and minus.lo == 0.0:
        chord = (1.0 - alpha) * (1.0 + 4.0 * U)
    else:
        end, first = 1 - Fraction(float(plus.lo)), 1 - Fraction(float(minus.lo))
        left = [max(end - Fraction(a), Fraction(0)) for a in alpha.tolist()]
        chord = np.array([float_up(first * rest / end) if rest else 0.0 for rest in left])
    inside = np.flatnonzero(~start & (chord > 0.0))
    if inside.size and pld.gaussian is not None and not pld.terms:
        least, most = gaussian_tradeoff(pld.gaussian, alpha[inside])
        lo[inside], hi[inside] = least, np.minimum(most, chord[inside])
    elif inside.size:
        lo[inside], hi[inside] = _searched(pld, alpha[inside], chord[inside], float(plus.hi))
    return lo, hi


def _searched(pld: Pld, alpha: Floats, ceiling: Floats, mass: float) -> tuple[Floats, Floats]:
    """Both ends for `0 < alpha < 1 - mass`, by sampling ever closer to the best `t`."""
    low, high = np.zeros(alpha.shape), ceiling.copy()
    stalls = np.zeros(alpha.shape, dtype=np.int64)
    active, columns = np.arange(alpha.size), np.arange(_STRIDES.size)
    t = _net(pld, alpha, mass)
    # In a separate workspace, so that contours for the samples to come are made next to them.
    heights = _heights(pld._workspace(), t)
    best = t[[int(np.argmax(_supports(a, t, heights)[0])) for a in alpha]]
    for _ in range(MOST_STEPS):
        level, gap = alpha[active], high[active] - low[active]
        at = np.searchsorted(t, best[active])[:, None] + _STRIDES
        # All different, also next to the ends.
        at = np.clip(at, columns, t.size - columns.size + columns)
        near = t[at]
        lower, upper = _supports(level[:, None], near, Heights(*(v[at] for v in heights)))
        # Chords over short cells multiply the error of the curve: longer ones are tried as well.
        tried = [
            _concave_maximum(*(v[:, ::step] for v in (near, lower, upper))) for step in (1, 2, 4)
        ]
        meet = tried[0][1]
        most = np.min([found for found, _ in tried], axis=0)
        peak = np.argmax(lower, axis=1)
        rows = np.arange(active.size)
        best[active] = near[rows, peak]
        low[active] = np.maximum(low[active], lower[rows, peak])
        high[active] = np.minimum(high[active], most)
        left = high[active] - low[active]
        stalls[active] = np.where(left > 0.7 * gap, stalls[active] + 1, 0)
        noise = (upper - lower)[rows, peak]
        going = (stalls[active] < _STALLS) & (left > np.maximum(_GOAL * high[active], 3.0 * noise))
        active = active[going]
        new = _around(near[going], lower[going], meet[going], noise[going])
        new = np.setdiff1d(new, t)
        if not new.size:
            break
        order = np.argsort(np.concatenate([t, new]), kind="stable")
        t = np.concatenate([t, new])[order]
        more = _heights(pld, new)
        heights = Heights(
            *(np.concatenate([v, w])[order] for v, w in zip(heights, more, strict=True))
        )
    return low, np.maximum(high, low)


def _net(pld: Pld, alpha: Floats, mass: float) -> Floats:
    """Even points past the best `t` of every level, for which `P(Z <= t)` is about `alpha`."""
    evaluator = pld._evaluator
    left = -np.minimum(evaluator.quantile_reaches(alpha), _FAR) - 1e-3
    above = np.maximum(1.0 - alpha - mass, 0.0)
    right = np.minimum(evaluator.reaches(above), min(evaluator._top, _FAR))
    first, last = float(left.min()), max(float(right.max()), 0.0) + 1e-3
    # Past the ends there must be room to see the curve fall.
    room = 0.1 * (last - first)
    return np.linspace(max(first - room, -EXP_RANGE), min(last + room, EXP_RANGE), _NET)


def _around(t: Floats, lo: Floats, meet: Floats, noise: Floats) -> Floats:
    """New points for rows of samples: next to where each row is highest, near two guesses.

    They reach so far that the curve bends by more than its error.
    """
    rows = np.arange(t.shape[0])
    centre = np.clip(np.argmax(lo, axis=1), 1, t.shape[1] - 2)
    left, top, right = (t[rows, centre + k] for k in (-1, 0, 1))
    a, b, c = (lo[rows, centre + k] for k in (-1, 0, 1))
    back, on = top - left, right - top
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        bend = on * (a - b) + back * (c - b)
        vertex = top + 0.5 * (on * on * (a - b) - back * back * (c - b)) / bend
        least = 8.0 * np.sqrt(noise * (back * on * (back + on)) / np.maximum(-2.0 * bend, 0.0))
    wide = np.maximum(right - left, np.where(np.isfinite(least), np.minimum(least, 1.0), 0.0))
    guesses = [np.where(np.isfinite(g), np.clip(g, left, right), top) for g in (vertex, meet)]
    # Rounded, so that levels with guesses close to each other share them.
    grain = np.exp2(np.floor(np.log2(wide)) - _GRAIN)[:, None]
    found = [np.rint(g[:, None] / grain + _NEAR * 2.0**_GRAIN) * grain for g in guesses]
    return np.unique(np.clip(found, -EXP_RANGE, EXP_RANGE))


def _heights(pld: Pld, t: Floats) -> Heights:
    """The curve at `e^t` where `t >= 0`, and the reversed one at `e^-t` elsewhere."""
    lo, hi, lacking = np.empty_like(t), np.empty_like(t), np.empty_like(t)
    mirror = pld.reverse()
    right = t >= 0.0 if mirror is not pld else np.full(t.shape, True)
    for side, one in ((right, pld), (~right, mirror)):
        if side.any():
            at = np.abs(t[side])
            lo[side], hi[side] = one._evaluator.right(at, 0.0, _ACCURATE)
            lacking[side] = _lacking(one, at, lo[side])
    return Heights(lo, hi, lacking)


def _supports(alpha: Floats, t: Floats, h: Heights) -> tuple[Floats, Floats]:
    """Enclosure of `(1 - alpha - h(e^t)) e^-t` at the points `t`, from the heights there."""
    work(20.0 * t.size * (alpha.size if t.ndim == 1 else 1))
    right = t >= 0.0
    # One exponential serves both sides: for `t < 0` the number is `1 - alpha e^-t - h_rev(e^-t)`.
    scale = np.exp(-t)
    cost = alpha * scale
    slack = (EXP_ULPS + 8.0) * U * np.where(right, scale, 1.0 + cost)
    unit, level = np.where(right, scale, 1.0), np.where(right, alpha, cost)
    lo = (1.0 - level - h.hi) * unit - slack
    hi = (1.0 - level - h.lo) * unit + slack
    return lo, np.minimum(hi, (h.lacking - level) * unit + slack * (h.lacking + level))


def _lacking(pld: Pld, t: Floats, low: Floats) -> Floats:
    """An upper bound of `1 - h(e^t)` for `t >= 0`; one with digits where `h` is next to 1."""
    near = low > 1.0 - _NEXT_TO_ONE
    found = np.ones(t.shape)
    if near.any():
        moments = pld._evaluator._moments.log_moment
        found[near] = chernoff.complement_bound(moments, t[near], np.zeros(int(near.sum())))
    return found


def _concave_maximum(t: Floats, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
    """Of functions concave in `y = e^-t`, from enclosures at the `t` of each row.

    An upper bound of the maximum, and the `t` where the bound is attained. Outside the samples a
    function is bounded only if it surely falls there: where the slope over the second cell from
    either end points down, it is below the end of the first one up to there. Infinite elsewhere,
    but on the side of small `y` where it is at most `y`.
    """
    # The points in the order of y, from left to right. Everything is in units of the cell it is in,
    # as cells may differ by more than floats do: a neighbour's slope counts by the ratio of
    # lengths.
    t, low, high = t[:, ::-1], lo[:, ::-1], hi[:, ::-1]
    steps = t[:, :-1] - t[:, 1:]
    rise, fall = high[:, 1:] - low[:, :-1], low[:, 1:] - high[:, :-1]
    bounded = rise[:, -2] < 0.0
    # To the left every such function is below `y` itself.
    edge = np.where(fall[:, 1] > 0.0, -np.inf, np.exp(-t[:, 1]) * (1.0 + 2.0 * EXP_ULPS * U))
    begin, end = high[:, 1:-2], high[:, 2:-1]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        grown = np.expm1(steps)
        ratio = np.exp(steps[:, :-1]) * (grown[:, 1:] / grown[:, :-1])
        # Inner cells: the chord from the left extended, and that from the right.
        left, right = rise[:, :-2] * ratio[:, :-1], fall[:, 2:] / ratio[:, 1:]
        share = (end - begin - right) / (left - right)
        share = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.0)
        from_left, from_right = begin + left * share, end - right * (1.0 - share)
        slack = np.abs(left) * share + np.abs(right) * (1.0 - share)
        slack = (3.0 * EXP_ULPS + 66.0) * U * (slack + np.abs(begin) + np.abs(end))
        # On either side of any point, one of the two lines bounds the other's minimum.
        inner = np.maximum(np.maximum(from_left, from_right) + slack, np.maximum(begin, end))
    inner = np.where(np.isfinite(inner), inner, np.inf)
    best = np.argmax(inner, axis=1)
    rows = np.arange(t.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        stretch = np.log1p(share[rows, best] * grown[rows, best + 1])
    where = t[rows, best + 1] - np.where(np.isfinite(stretch), stretch, 0.0)
    most = np.maximum(np.maximum(inner[rows, best], edge), np.maximum(high[:, 1], high[:, -2]))
    most = most + 64.0 * U * np.abs(most)
    return np.where(bounded, most, np.inf), where


Points = tuple[Floats, Floats]

# -- vertices and conjugates ----------------------------------------------------------------


def hockey_stick_from_tradeoff(alphas: Any, betas: Any, x: Any) -> Any:
    """`h(x) = 1 + (τ⁻¹)*(-x)` for the piecewise-linear tradeoff curve through the given points."""
    return from_tradeoff(alphas, betas).hockey_stick(x)


def tradeoff_from_hockey_stick(xs: Any, values: Any, alpha: Any) -> Any:
    """`τ(alpha) = sup_x (1 - alpha - h(x)) / x` for the piecewise-linear `h` through the points."""
    return from_hockey_stick(xs, values).tradeoff(alpha)


def compose_tradeoff(first: tuple[Any, Any], second: tuple[Any, Any]) -> Points:
    """The tradeoff curve of the composition of two piecewise-linear ones, exactly (then rounded).

    Segments multiply: lengths `w1 w2`, slopes `-(s1 s2)`, steepest first, starting from
    `1 - f(0) = d1 + d2 - d1 d2`, where `d` is `Q`'s mass at `-inf`.
    """
    curves = []
    for name, given in (("first", first), ("second", second)):
        checks.require(
            isinstance(given, (tuple, list)) and len(given) == 2, name, "(alphas, betas)", given
        )
        curves.append(_exact_segments(*given))
    (w1, f1), (w2, f2) = curves
    segments = [(wa * wb, sa * sb) for wa, sa in w1 for wb, sb in w2]
    segments.sort(key=lambda s: -s[1])
    alpha, beta = Fraction(0), f1 * f2
    points = [(alpha, beta)]
    for (width, steep), following in pairwise([*segments, (Fraction(0), Fraction(-1))]):
        alpha, beta = alpha + width, beta - width * steep
        if following[1] != steep and width > 0:
            points.append((alpha, beta))
    a, b = zip(*points, strict=True)
    return np.array([float(v) for v in a]), np.array([max(0.0, float(v)) for v in b])


def _exact_segments(alphas: Any, betas: Any) -> tuple[list[tuple[Fraction, Fraction]], Fraction]:
    """Widths and steepnesses (minus the slopes) of a curve, and its height at 0."""
    pld = from_tradeoff(alphas, betas)
    exact = pld._atoms.exact if not pld.is_identity else EXACT_IDENTITY
    segments = [
        (Fraction(p, exact.p_den), Fraction(q * exact.p_den, exact.q_den * p))
        for p, q in zip(exact.p, exact.q, strict=True)
    ]
    if exact.p_inf:
        segments.append((Fraction(exact.p_inf, exact.p_den), Fraction(0)))
    return segments, Fraction(exact.q_tails[0], exact.q_den)
