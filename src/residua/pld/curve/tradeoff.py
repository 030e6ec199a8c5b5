"""The tradeoff curve: the least type II error at a type I error, from the hockey-stick curve.

    tau(alpha) = sup over x of (1 - alpha - h(x)) / x        (conjugacy `h(x) = 1 + (τ⁻¹)*(-x)`)

Any `x = e^t` gives a lower bound: a supporting line. For the upper bound, write `y = 1/x`; then
`g(y) = (1 - alpha) y - y h(1/y)` is concave in `y` (a perspective function), so between samples it
lies below the chords of the neighbouring cells, extended. For `t < 0` the same number is
`1 - alpha/x - h_rev(1/x)`, which does not cancel.

All levels `alpha` are worked on together. Each has a bracket around its best `t`, sampled evenly
and, finely, around two guesses: where a parabola through the highest sample has its top, and where
the chords meet, which is exact at a kink. The neighbours of the highest sample are the next
bracket, until the error of the curve itself is all that is left. Many levels share their first
samples: an even net, and then the guess of each, which its neighbours look at too.

A Gaussian alone has a curve in closed form (`support_ends.py`).

Vertices and conjugates of piecewise-linear curves; `tradeoff.py` has `tau`, `epsilon.py` eps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from residua import checks
from residua.bounds import Floats, Interval, float_down, float_up
from residua.pld.arithmetic.exact import EXACT_IDENTITY, ExactAtoms
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, EXPM1_ULPS, U
from residua.pld.constructors import from_hockey_stick, from_tradeoff
from residua.pld.curve import chernoff
from residua.pld.support.support_ends import gaussian_tradeoff
from residua.work_limit import work

if TYPE_CHECKING:
    from residua.pld.pld import Pld

_FIRST = 33
"""Even samples over the first bracket of a level."""
_FAR = 600.0
"""Brackets end here: `e^t` is near the end of the floats."""
_EVEN = np.array([-0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25])
"""Even samples of later brackets, in units of their length."""
_NEAR = np.array([-1 / 16, -1 / 128, 1 / 128, 1 / 16])
"""Samples next to a guess, in the same units."""
_APART = 2.0**-10
"""The distance that samples keep, in the same units."""
_FINEST = 1e-11
"""Shorter brackets have nothing left to find: floats run out."""
_ROUNDS, _STALLS = 40, 5
"""Brackets of a level, at most; and in how many of them, one after the other, its interval may
hardly shrink."""
_GOAL = 1e-12
"""The relative width of an interval that is narrow enough."""
_ACCURATE = 1e-4
"""The finest accuracy in `eps` that is asked of the curve."""
_AT_ONCE = 4096
"""Levels worked on together, which bounds the memory."""
_NEXT_TO_ONE = 1e-3
"""Where the curve is closer to 1, its complement has more digits."""
_CHORD_ULPS = 2.0 * EXPM1_ULPS + EXP_ULPS + 66.0
"""Error of a chord extended over the next cell, in units of `u` of its terms."""
_MANY = 64
"""Levels from which on the first samples are shared."""
_NET = 129
"""Even points of the net from which the levels are guessed then."""
_STRIDES = np.array([-32, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32])
"""Which shared samples a level looks at: near its guess, and so far away that it has fallen."""
_CLOSEST = 50.0 * _ACCURATE
"""Closer than that, samples of a curve that is not smooth do not see it fall."""
_GAP, _PARTS = 2.0, 16.0
"""How much wider than others the spaces between shared samples may be; parts of one at most."""
_CORE = slice(3, 10)
"""Those near it, whose error is that of the level."""


class Heights(NamedTuple):
    """Enclosures of a curve, and an upper bound of what it lacks to 1."""

    lo: Floats
    hi: Floats
    lacking: Floats


class Samples(NamedTuple):
    """Points of each row, which of them are even, and the enclosures there if they are known."""

    t: Floats
    even: NDArray[np.intp]
    ends: tuple[Floats, Floats] | None = None


def tradeoff_bounds(pld: Pld, alpha: Floats) -> Interval:
    """Proven interval for the least type II error at type I error `alpha`, elementwise."""
    flat = np.asarray(alpha, dtype=np.float64).ravel()
    if pld._evaluator._single_atoms is not None or pld.is_identity or pld.is_infinite:
        exact = pld._atoms.exact if not pld.is_identity else EXACT_IDENTITY
        ends = np.array([_exact(exact, Fraction(a)) for a in flat.tolist()]).reshape(-1, 2)
        lo, hi = ends[:, 0], ends[:, 1]
    else:
        pld = pld._workspace()
        pieces = [_bounds(pld, flat[i : i + _AT_ONCE]) for i in range(0, flat.size, _AT_ONCE)]
        lo = np.concatenate([np.empty(0), *(low for low, _ in pieces)])
        hi = np.concatenate([np.empty(0), *(high for _, high in pieces)])
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
    active = np.arange(alpha.size)
    t, even, known = _first(pld, alpha, mass)
    for _ in range(_ROUNDS):
        level, gap = alpha[active], high[active] - low[active]
        if known is None:
            accuracy = max(_ACCURATE, min(0.05 * float(np.min(np.diff(t, axis=1))), 1.0))
            lower, upper = _supports(level[:, None], t, _heights(pld, t, accuracy))
            core = slice(None)
        else:
            accuracy, (lower, upper), known = _ACCURATE, known, None
            core = _CORE
        most, meet = _concave_maximum(t, lower, upper)
        # Chords over short cells multiply the error of the curve; even points have longer ones.
        rough, _ = _concave_maximum(*(np.take_along_axis(v, even, 1) for v in (t, lower, upper)))
        low[active] = np.maximum(low[active], np.max(lower, axis=1))
        high[active] = np.minimum(high[active], np.minimum(most, rough))
        left = high[active] - low[active]
        noise = np.max((upper - lower)[:, core], axis=1)
        stalls[active] = np.where(left > 0.7 * gap, stalls[active] + 1, 0)
        t, even = _closer(t, lower, meet, noise)
        # Where floats run out there is nothing more to find.
        going = np.min(np.diff(t, axis=1), axis=1) > _FINEST * _APART
        going &= (stalls[active] < _STALLS) & (left > _GOAL * high[active])
        if accuracy == _ACCURATE:
            going &= left > 3.0 * noise
        active, t, even = active[going], t[going], even[going]
        if not active.size:
            break
    return low, np.maximum(high, low)


def _first(pld: Pld, alpha: Floats, mass: float) -> Samples:
    """Where to look at first."""
    left, right = _brackets(pld, alpha, mass)
    # Past the ends there must be room to see the curve fall.
    room = right - left
    if alpha.size >= _MANY:
        ends = np.array([np.min(left - 0.1 * room), np.max(right + 0.1 * room)])
        return _shared(pld, alpha, *np.clip(ends, -EXP_RANGE, EXP_RANGE))
    t = left[:, None] + room[:, None] * np.linspace(-0.1, 1.1, _FIRST)
    return Samples(np.clip(t, -EXP_RANGE, EXP_RANGE), _every_second(t))


def _brackets(pld: Pld, alpha: Floats, mass: float) -> tuple[Floats, Floats]:
    """Ranges with the best `t`, for which P(Z <= t) is about `alpha`."""
    evaluator = pld._evaluator
    left = -np.minimum(evaluator.quantile_reaches(alpha), _FAR) - 1e-3
    above = np.maximum(1.0 - alpha - mass, 0.0)
    right = np.minimum(evaluator.reaches(above), min(evaluator._top, _FAR))
    return left, np.maximum(right, 0.0) + 1e-3


def _shared(pld: Pld, alpha: Floats, left: float, right: float) -> Samples:
    """A guess for every level from a net of few points; then each guess serves all around it."""
    net = np.linspace(left, right, _NET)
    rough = max(_ACCURATE, min(0.2 * float(net[1] - net[0]), 1.0))
    level = alpha[:, None]
    lower, _ = _supports(level, net, _heights(pld, net, rough))
    rows, peak = np.arange(alpha.size), np.clip(np.argmax(lower, axis=1), 1, _NET - 2)
    a, b, c = (lower[rows, peak + k] for k in (-1, 0, 1))
    top, step = net[peak], float(net[1] - net[0])
    with np.errstate(invalid="ignore", divide="ignore"):
        guess = top + 0.5 * step * (a - c) / (a - 2.0 * b + c)
    guess = np.where(np.abs(guess - top) <= step, guess, top)
    places = _places(pld, net, guess)
    heights = _heights(pld, places, _ACCURATE)
    reach = int(_STRIDES[-1])
    centre = np.clip(np.searchsorted(places, guess), reach, places.size - 1 - reach)
    at = centre[:, None] + _STRIDES
    t = places[at]
    return Samples(t, _every_second(t), _supports(level, t, Heights(*(v[at] for v in heights))))


def _places(pld: Pld, net: Floats, guess: Floats) -> Floats:
    """Where to look at all levels together: at the net, and near the guesses.

    Closer than `_CLOSEST` the curve bends by less than it is wide, if Gaussian noise takes no part:
    even points do then, where they are fewer. Else at every guess, and between those far apart.
    """
    left, right = float(np.min(guess)), float(np.max(guess))
    even = math.ceil((right - left) / _CLOSEST) + 1
    if even < 2 * guess.size and not pld._evaluator._is_smooth:
        return np.unique(np.concatenate([net, np.linspace(left, right, even)]))
    places = np.unique(np.concatenate([net, guess]))
    places = places[np.diff(places, prepend=-np.inf) > 1e-6 * float(net[1] - net[0])]
    gaps = np.diff(places)
    inside = (places[1:] > left) & (places[:-1] < right)
    parts = np.where(inside, np.ceil(gaps / (_GAP * np.median(gaps))), 1.0)
    parts = np.minimum(parts, _PARTS).astype(int)
    count = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.append(
        np.repeat(places[:-1], parts) + np.repeat(gaps / parts, parts) * count, places[-1]
    )


def _every_second(t: Floats) -> NDArray[np.intp]:
    """The first and the last and every second between, of rows of odd length."""
    chosen = np.arange(0, t.shape[1], 2)
    return np.broadcast_to(chosen, (t.shape[0], chosen.size))


def _heights(pld: Pld, t: Floats, accuracy: float) -> Heights:
    """The curve at `e^t` where `t >= 0`, and the reversed one at `e^-t` elsewhere."""
    lo, hi, lacking = np.empty_like(t), np.empty_like(t), np.empty_like(t)
    mirror = pld.reverse()
    right = t >= 0.0 if mirror is not pld else np.full(t.shape, True)
    for side, one in ((right, pld), (~right, mirror)):
        if side.any():
            at = np.abs(t[side])
            lo[side], hi[side] = one._evaluator.right(at, 0.0, accuracy)
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
        slack = _CHORD_ULPS * U * (slack + np.abs(begin) + np.abs(end))
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


def _closer(t: Floats, lo: Floats, meet: Floats, error: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """The next points: even ones over the bracket of the highest sample, others at two guesses.

    And which of them are the even ones. The bracket is long enough for the curve to bend by more
    than its error.
    """
    last = t.shape[1] - 1
    rows = np.arange(t.shape[0])
    peak: NDArray[np.intp] = np.argmax(lo, axis=1)
    centre = np.clip(peak, 1, last - 1)
    left, top, right = (t[rows, centre + k] for k in (-1, 0, 1))
    a, b, c = (lo[rows, centre + k] for k in (-1, 0, 1))
    back, on = top - left, right - top
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        bend = on * (a - b) + back * (c - b)
        guess = top + 0.5 * (on * on * (a - b) - back * back * (c - b)) / bend
        least = 4.0 * np.sqrt(error * (back * on * (back + on)) / np.maximum(-2.0 * bend, 0.0))
    # At an end it is lost: look further out.
    whole = t[:, -1] - t[:, 0]
    left = np.where(peak == 0, left - whole, left)
    right = np.where(peak == last, right + whole, right)
    least = np.where(np.isfinite(least), np.minimum(least, 0.25 * whole), 0.0)
    left, right = np.minimum(left, top - least), np.maximum(right, top + least)
    wide = right - left
    guesses = [np.where(np.isfinite(g), np.clip(g, left, right), top) for g in (guess, meet)]
    points = [left[:, None] + wide[:, None] * _EVEN]
    points += [g[:, None] + wide[:, None] * _NEAR for g in guesses]
    found = np.concatenate(points, axis=1)
    order = np.argsort(found, axis=1)
    found = np.take_along_axis(found, order, 1)
    even = np.nonzero(order < _EVEN.size)[1].reshape(t.shape[0], _EVEN.size)
    # Never two at one place.
    shift = _APART * wide[:, None] * np.arange(found.shape[1])
    found = np.maximum.accumulate(found - shift, axis=1) + shift
    return np.clip(found, -EXP_RANGE, EXP_RANGE), even


Points = tuple[Floats, Floats]

# -- vertices and conjugates ----------------------------------------------------------------


def hockey_stick_points(exact: ExactAtoms) -> Points:
    """Kinks `x` and the values there, from left to right."""
    x = [exact.kink(i) for i in range(len(exact))]
    v = [exact.height(i + 1, k.numerator, k.denominator) for i, k in enumerate(x)]
    return np.array([float(k) for k in x]), np.array([float(h) for h in v])


def tradeoff_points(exact: ExactAtoms) -> Points:
    """Vertices `(alpha, tau)`, from left to right; flat at 0 after the last."""
    alphas = [1 - Fraction(p, exact.p_den) for p in exact.p_tails]
    betas = [Fraction(q, exact.q_den) for q in exact.q_tails]
    if alphas and alphas[-1] < 1:
        alphas.append(Fraction(1))
        betas.append(Fraction(0))
    return np.array([float(a) for a in alphas]), np.array([float(b) for b in betas])


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
