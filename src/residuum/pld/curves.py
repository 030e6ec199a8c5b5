"""Curves of a PLD and the ways between them.

    epsilon(delta)   least `eps >= 0` with `h(e^eps) <= delta`
    tau(alpha)       sup over x of `(1 - alpha - h(x)) / x`: the conjugacy `h(x) = 1 + (τ⁻¹)*(-x)`

Any `x` gives a lower bound of `tau`. For the upper bound, `g(y) = (1 - alpha) y - y h(1/y)` is
concave in `y = 1/x` (a perspective function), so between samples it lies below the chords of
the neighbouring cells, extended. For `x < 1` the same number is `1 - alpha/x - h_rev(1/x)`, which
does not cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from residuum import checks
from residuum.bounds import Floats, Interval
from residuum.pld.ends import mass_at_infinity_at_most
from residuum.pld.exact import EXACT_IDENTITY, ExactAtoms
from residuum.pld.special import EXP_ULPS, TINY, U

if TYPE_CHECKING:
    from residuum.pld.value import Pld

Points = tuple[Floats, Floats]

_GRID = 16
_ROUNDS = 24
_FAR = 1e6


# -- epsilon --------------------------------------------------------------------------------


def epsilon_bounds(pld: Pld, delta: Floats, accuracy: float) -> Interval:
    """Proven interval for the least `eps >= 0` with `h(e^eps) <= delta`, elementwise."""
    flat = delta.ravel()
    # Locating the two ends takes a little of the width.
    ends = [_epsilon(pld, level, 0.9 * accuracy) for level in flat.tolist()]
    return _interval(ends, delta.shape)


def _interval(ends: list[tuple[float, float]], shape: tuple[int, ...]) -> Interval:
    """Pairs of ends as one interval of the given shape."""
    lo, hi = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    if not shape:
        return Interval(float(lo[0]), float(hi[0]))
    return Interval(lo.reshape(shape), hi.reshape(shape))


def _epsilon(pld: Pld, delta: float, accuracy: float) -> tuple[float, float]:
    mass = pld.mass_at_infinity_bounds
    if delta >= 1.0 or pld.is_identity:
        return 0.0, 0.0
    if float(mass.lo) > delta:
        return np.inf, np.inf
    if pld.gaussian is not None and delta <= float(mass.lo):
        return np.inf, np.inf
    if float(mass.hi) > delta and not mass_at_infinity_at_most(pld, Fraction(delta)):
        return 0.0, np.inf
    evaluator = pld._evaluator

    def curve(t: float, bracket: float) -> tuple[float, float]:
        # Far from the answer a rough value does, unless it leaves the side open.
        lo, hi = evaluator.right(np.array([t]), 0.0, max(accuracy, min(0.02 * bracket, 1.0)))
        if lo[0] <= delta < hi[0]:
            lo, hi = evaluator.right(np.array([t]), 0.0, accuracy)
        return float(lo[0]), float(hi[0])

    bottom, top = curve(0.0, 0.0)
    if top <= delta:
        return 0.0, 0.0
    tolerance = evaluator.resolution(accuracy)
    left = float(np.nextafter(delta - float(mass.hi), -1.0))
    far = min(evaluator._top, evaluator.reach(left))
    if not np.isfinite(far):
        # Only a sharper look at the mass at infinity, or no eps at all, could tell more.
        low = _edge(curve, 0, delta, (0.0, bottom), _FAR, tolerance)[0] if bottom > delta else 0.0
        return low, np.inf
    hi = _edge(curve, 1, delta, (0.0, top), far, tolerance)[1]
    if bottom <= delta:
        return 0.0, hi
    return _edge(curve, 0, delta, (0.0, bottom), hi, tolerance)[0], hi


def _edge(
    curve: Callable[[float, float], tuple[float, float]],
    side: int,
    delta: float,
    start: tuple[float, float],
    high: float,
    tolerance: tuple[float, float],
) -> tuple[float, float]:
    """Narrow `[low, high]` around where the lower (0) or upper (1) end crosses `delta`.

    At `low` that end is above `delta`, at `high` it is not (a Chernoff bound says so before
    any value does): both stay true, whatever the guesses in between. `ln h` is close to
    linear over short ranges, so secants in it converge fast; every third step halves.
    """
    low, above = start
    below = 0.0
    guess = low + 0.9 * (high - low)
    for step in range(1, 200):
        width = tolerance[0] * (1.0 + high) + tolerance[1]
        if high - low <= width:
            break
        guess = min(max(guess, low + 0.45 * width), high - 0.45 * width)
        if not low < guess < high:
            break
        value = curve(guess, high - low)[side]
        if value > delta:
            low, above = guess, value
        else:
            high, below = guess, value
        if step % 3 == 0 or below <= 0.0 or delta <= 0.0:
            guess = 0.5 * (low + high)
        else:
            share = np.log(above / delta) / np.log(above / below)
            guess = low + share * (high - low)
    return low, high


# -- tradeoff -------------------------------------------------------------------------------


def tradeoff_bounds(pld: Pld, alpha: Floats) -> Interval:
    """Proven interval for the least type II error at type I error `alpha`, elementwise."""
    flat = alpha.ravel()
    if pld._evaluator._single_atoms is not None or pld.is_identity or pld.is_infinite:
        exact = pld._atoms.exact if not pld.is_identity else EXACT_IDENTITY
        ends = [_exact_tradeoff(exact, Fraction(a)) for a in flat.tolist()]
    else:
        ends = [_tradeoff(pld, a) for a in flat.tolist()]
    return _interval(ends, alpha.shape)


def _exact_tradeoff(exact: ExactAtoms, alpha: Fraction) -> tuple[float, float]:
    from residuum.bounds import float_down, float_up

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


def _tradeoff(pld: Pld, alpha: float) -> tuple[float, float]:
    plus, minus = pld.mass_at_infinity_bounds, pld.mass_at_minus_infinity_bounds
    if Fraction(alpha) >= 1 - Fraction(float(plus.lo)):
        return 0.0, 0.0
    if alpha == 0.0:
        ends = Interval(1.0, 1.0) - minus if minus.hi > 0.0 else Interval(1.0, 1.0)
        return max(0.0, float(ends.lo)), min(1.0, float(ends.hi))
    ceiling = min(1.0 - alpha, float(np.nextafter(1.0 - float(minus.lo), 2.0))) * (1.0 + 2.0 * U)
    # The best threshold t has P(Z <= t) about alpha: Chernoff bounds bracket it.
    left = pld._evaluator.quantile_reach(alpha)
    right = min(pld._evaluator.reach(1.0 - alpha), pld._evaluator._top)
    t = np.linspace(-min(left, 600.0) - 1e-3, max(min(right, 600.0), 0.0) + 1e-3, 2 * _GRID + 1)
    best_lo, best_hi = 0.0, ceiling
    stalls = 0
    for _ in range(_ROUNDS):
        gap = best_hi - best_lo
        lo, hi = _support(pld, alpha, t, max(1e-4, min(0.05 * float(t[1] - t[0]), 1.0)))
        best_lo = max(best_lo, float(np.max(lo)))
        best_hi = min(best_hi, _concave_maximum(t, lo, hi))
        peak = int(np.argmax(lo))
        left, right = float(t[max(peak - 2, 0)]), float(t[min(peak + 2, t.size - 1)])
        if peak < 2 or peak > t.size - 3:
            left, right = left - (right - left), right + (right - left)
        stalls = stalls + 1 if best_hi - best_lo > 0.7 * gap else 0
        if stalls == 4 or best_hi - best_lo <= 1e-12 * best_hi or right - left < 1e-11:
            break
        t = np.linspace(left, right, _GRID + 1)
    return max(best_lo, 0.0), max(best_hi, best_lo)


def _support(pld: Pld, alpha: float, t: Floats, accuracy: float) -> tuple[Floats, Floats]:
    """Enclosure of `(1 - alpha - h(e^t)) e^-t`, the height of each supporting line at `alpha`."""
    right = t >= 0.0
    lo, hi = np.empty_like(t), np.empty_like(t)
    if right.any():
        low, high = pld._evaluator.right(t[right], 0.0, accuracy)
        scale = np.exp(-t[right])
        slack = (EXP_ULPS + 8.0) * U * scale
        lo[right] = (1.0 - alpha - high) * scale - slack
        hi[right] = (1.0 - alpha - low) * scale + slack
    left = ~right
    if left.any():
        low, high = pld.reverse()._evaluator.right(-t[left], 0.0, accuracy)
        cost = alpha * np.exp(-t[left])
        slack = (EXP_ULPS + 8.0) * U * (1.0 + cost)
        lo[left] = 1.0 - cost - high - slack
        hi[left] = 1.0 - cost - low + slack
    return lo, hi


def _concave_maximum(t: Floats, lo: Floats, hi: Floats) -> float:
    """An upper bound of a function concave in `y = e^-t` from its enclosures at the `t`.

    Outside the samples it is bounded only if the end slopes point down; otherwise infinite.
    """
    y = np.exp(-(t - t[0]))[::-1]
    low, high = lo[::-1], hi[::-1]
    gaps = np.diff(y)
    if not np.all(gaps > TINY):
        return np.inf
    with np.errstate(over="ignore"):
        rise = (high[1:] - low[:-1]) / gaps
        fall = (low[1:] - high[:-1]) / gaps
    # Slopes of a concave function decrease: if it rises over the second cell it is below the end
    # of the first one up to there, and likewise on the other side.
    if not (fall[1] > 0.0 and rise[-2] < 0.0):
        return np.inf
    left = np.concatenate([[np.inf], rise[:-1]])
    right = np.concatenate([fall[1:], [-np.inf]])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        meet = (high[1:] - high[:-1] - right * gaps) / (left - right)
    meet = np.where(np.isfinite(meet), np.clip(meet, 0.0, gaps), 0.0)
    from_left = high[:-1] + np.where(np.isfinite(left), left, 0.0) * meet
    from_right = high[1:] - np.where(np.isfinite(right), right, 0.0) * (gaps - meet)
    inner = np.maximum(np.minimum(from_left, from_right), np.maximum(high[:-1], high[1:]))
    inner[0], inner[-1] = high[1], high[-2]
    return float(np.max(inner)) + 64.0 * U * float(np.max(np.abs(high)))


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
    from residuum.pld.constructors import from_tradeoff

    return from_tradeoff(alphas, betas).hockey_stick(x)


def tradeoff_from_hockey_stick(xs: Any, values: Any, alpha: Any) -> Any:
    """`τ(alpha) = sup_x (1 - alpha - h(x)) / x` for the piecewise-linear `h` through the points."""
    from residuum.pld.constructors import from_hockey_stick

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
    from residuum.pld.constructors import from_tradeoff

    pld = from_tradeoff(alphas, betas)
    exact = pld._atoms.exact if not pld.is_identity else EXACT_IDENTITY
    segments = [
        (Fraction(p, exact.p_den), Fraction(q * exact.p_den, exact.q_den * p))
        for p, q in zip(exact.p, exact.q, strict=True)
    ]
    if exact.p_inf:
        segments.append((Fraction(exact.p_inf, exact.p_den), Fraction(0)))
    return segments, Fraction(exact.q_tails[0], exact.q_den)
