"""Curves of a PLD and the ways between them: `epsilon(delta)`, the least `eps >= 0` with
`h(e^eps) <= delta`; vertices and conjugates of piecewise-linear curves (`tradeoff.py` has `tau`).
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

if TYPE_CHECKING:
    from residuum.pld.value import Pld

Points = tuple[Floats, Floats]

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
