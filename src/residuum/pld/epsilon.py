"""`epsilon(delta)`: the least `eps >= 0` with `h(e^eps) <= delta`, from enclosures of the curve.

The curve decreases, so one enclosure `[lo, hi]` at `t` says all that is needed: `hi <= delta` puts
`eps` at `t` or left of it, `lo > delta` right of it. Both ends of the answer are such `t`; where to
look is guesswork. `ln h` is nearly a parabola, so the inverse is interpolated through the samples
next to `delta`, for both ends of the enclosure at once, and the next samples surround the two
guesses at the distance by which these still move (`_narrowed`). Several points cost hardly more
than one. What is left is halved and cut by secants, one point at a time (`_edge`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from residuum.bounds import Floats, Interval
from residuum.pld.ends import mass_at_infinity_at_most
from residuum.pld.mixture import LATTICE
from residuum.pld.special import U

if TYPE_CHECKING:
    from residuum.pld.evaluate import Evaluator
    from residuum.pld.value import Pld

_FAR = 1e6
_SHARES = np.array([0.5, 0.75, 0.86, 0.94, 0.98])
"""Of a Chernoff bound: where the first samples are. The answer is rarely far below it."""
_AROUND = np.array([-8.0, -1.0, -0.1, 0.1, 1.0, 8.0])
_ROUNDS = 8

Curve = Callable[[Floats, float], tuple[Floats, Floats]]
Point = tuple[float, float]
"""Where, and the height of the end that matters there."""


def epsilon_bounds(pld: Pld, delta: Floats, accuracy: float) -> Interval:
    """Proven interval for the least `eps >= 0` with `h(e^eps) <= delta`, elementwise."""
    flat = delta.ravel()
    # Locating the two ends takes a little of the width.
    ends = [_epsilon(pld, level, 0.9 * accuracy) for level in flat.tolist()]
    lo, hi = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    if not delta.shape:
        return Interval(float(lo[0]), float(hi[0]))
    return Interval(lo.reshape(delta.shape), hi.reshape(delta.shape))


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

    def curve(t: Floats, bracket: float) -> tuple[Floats, Floats]:
        # Far from the answer a rough value does, unless it leaves the side open.
        rough = max(accuracy, min(0.02 * bracket, 1.0))
        lo, hi = evaluator.right(t, 0.0, rough)
        if rough > accuracy and np.any((lo <= delta) & (delta < hi)):
            lo, hi = evaluator.right(t, 0.0, accuracy)
        return lo, hi

    left = float(np.nextafter(delta - float(mass.hi), -1.0))
    far = min(evaluator._top, _reach(evaluator, left))
    tolerance = evaluator.resolution(accuracy)
    seen = _Seen(delta, far)
    if np.isfinite(far) and delta > 0.0:
        _narrowed(curve, seen, tolerance)
    if seen.above[0] is None or seen.above[1] is None:
        lo, hi = curve(np.zeros(1), 0.0)
        if hi[0] <= delta:
            return 0.0, 0.0
        seen.add(np.zeros(1), lo, hi)
    above = seen.above[1]
    assert above is not None
    if not np.isfinite(far):
        # Only a sharper look at the mass at infinity, or no eps at all, could tell more.
        start = seen.above[0]
        low = 0.0 if start is None else _edge(curve, 0, delta, start, _FAR, tolerance)[0]
        return low, np.inf
    end = _edge(curve, 1, delta, above, seen.below[1][0], tolerance)[1]
    start = seen.above[0]
    if start is None:
        return 0.0, end
    return _edge(curve, 0, delta, start, min(seen.below[0][0], end), tolerance)[0], end


def _reach(evaluator: Evaluator, level: float) -> float:
    """`Evaluator.reach`; of mixtures, whose moments are dear, by the orders that look best."""
    moments = evaluator._moments
    if not moments.mixtures or not level > 0.0:
        return evaluator.reach(level)
    rough = moments.rough_log_moment(LATTICE) - np.log(level)
    best = int(np.argmin(np.where(np.isfinite(rough), rough, np.inf) / LATTICE))
    orders = LATTICE[max(best - 1, 0) : best + 2]
    k, error = moments.log_moment(orders)
    return max(float(np.min((k + error - np.log(level)) / orders)), 0.0) * (1.0 + 16.0 * U)


class _Seen:
    """The samples nearest to `delta` on either side, for the lower end (0) and the upper end (1).

    The bound `far` is one without a height: a Chernoff bound says that the curve is below there.
    """

    def __init__(self, delta: float, far: float):
        self.delta = delta
        self.above: list[Point | None] = [None, None]
        self.below: list[Point] = [(far, 0.0), (far, 0.0)]
        self._t = np.empty(0)
        self._heights = [np.empty(0), np.empty(0)]

    def add(self, t: Floats, lo: Floats, hi: Floats) -> None:
        self._t = np.concatenate([self._t, t])
        for side, height in enumerate((lo, hi)):
            self._heights[side] = np.concatenate([self._heights[side], height])
            for at, value in zip(t.tolist(), height.tolist(), strict=True):
                nearest = self.above[side]
                if value > self.delta:
                    if nearest is None or at > nearest[0]:
                        self.above[side] = (at, value)
                elif at < self.below[side][0]:
                    self.below[side] = (at, value)

    def bracket(self, side: int) -> tuple[float, float]:
        above = self.above[side]
        return (above[0] if above else 0.0), self.below[side][0]

    def guess(self, side: int) -> tuple[float, float]:
        """Where the end crosses `delta`, and about how far off that is."""
        low, high = self.bracket(side)
        known = self._heights[side] > 0.0
        t, height = self._t[known], self._heights[side][known]
        if t.size < 2:
            return 0.5 * (low + high), 0.5 * (high - low)
        f = np.log(height) - np.log(self.delta)
        order = np.argsort(np.abs(f))
        f, t = f[order][:4], t[order][:4]
        # Neville's scheme for the inverse at 0: each order is a check on the last.
        found, before, row = float(t[0]), float(t[1]), t
        for width in range(1, t.size):
            gap = f[:-width] - f[width:]
            if np.any(gap == 0.0):
                break
            row = (f[:-width] * row[1:] - f[width:] * row[:-1]) / gap
            found, before = float(row[0]), found
        off = abs(found - before)
        if not (low < found < high):
            return 0.5 * (low + high), 0.25 * (high - low)
        return found, off


def _narrowed(curve: Curve, seen: _Seen, tolerance: tuple[float, float]) -> None:
    """Look closer and closer until both crossings are located, or guesses no longer help."""
    _, far = seen.bracket(1)
    points, widest = far * _SHARES, far
    for _ in range(_ROUNDS):
        seen.add(points, *curve(points, widest))
        wanted, widest = [], 0.0
        for side in (0, 1):
            low, high = seen.bracket(side)
            width = tolerance[0] * (1.0 + high) + tolerance[1]
            if high - low <= width or high <= width:
                continue
            widest = max(widest, high - low)
            at, off = seen.guess(side)
            around = at + max(min(off, 0.1 * (high - low)), 0.4 * width) * _AROUND
            inside = around[(around > low) & (around < high)]
            wanted.append(inside if inside.size else np.array([0.5 * (low + high)]))
        if not wanted:
            return
        points = np.unique(np.concatenate(wanted))


def _edge(
    curve: Curve, side: int, delta: float, start: Point, high: float, tolerance: tuple[float, float]
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
        value = float(curve(np.array([guess]), high - low)[side][0])
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
