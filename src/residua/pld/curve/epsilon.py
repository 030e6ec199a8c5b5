"""`epsilon(delta)`: the least `eps >= 0` with `h(e^eps) <= delta`, from enclosures of the curve.

The curve decreases, so one enclosure `[lo, hi]` at `t` says all that is needed: `hi <= delta` puts
`eps` at `t` or left of it, `lo > delta` right of it. Both ends of the answer are such `t`; where to
look is guesswork. The first guess is a saddle point's (`chernoff.py`). A contour made for a guess
can be read anywhere, only wider than where it was made for. So both ends are located with the
contour of the guess alone; another one is made for the answer, until that no longer moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats, Interval
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.curve import chernoff
from residua.pld.curve.evaluate import RELATIVE
from residua.pld.curve.support_ends import mass_at_infinity_at_most

if TYPE_CHECKING:
    from residua.pld.pld import Pld

_GUESSES = 8
"""Contours are made for at most so many guesses."""
_CLOSE = 1e-3
"""A contour made so close to the answer, relative to `1 + eps`, was made for it."""
_SHARE = 0.5
"""Of the accuracy in `eps`: what is narrow enough elsewhere."""
_LESS = 0.85
"""Where to make a contour instead, relative to where one said nothing."""
_OFF = 0.02
"""How far off the first guess may well be, relative to itself."""

Read = Callable[[float], tuple[float, float]]


def epsilon_bounds(pld: Pld, delta: Floats, accuracy: float) -> Interval:
    """Proven interval for the least `eps >= 0` with `h(e^eps) <= delta`, elementwise."""
    ends = [search(pld._workspace(), level, accuracy) for level in delta.ravel().tolist()]
    lo, hi = np.array(ends, dtype=np.float64).reshape(-1, 2).T
    if not delta.shape:
        return Interval(float(lo[0]), float(hi[0]))
    return Interval(lo.reshape(delta.shape), hi.reshape(delta.shape))


def search(pld: Pld, delta: float, accuracy: float) -> tuple[float, float]:
    """The same for one `delta`; `pld` is a workspace, which keeps the contours it makes."""
    accuracy *= 0.9  # Locating the two ends takes a little of the width.
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
    relative, absolute = evaluator.resolution(accuracy)

    def fresh(t: float) -> tuple[float, float]:
        lo, hi = evaluator.right(np.array([t]), 0.0, accuracy)
        return float(lo[0]), float(hi[0])

    guess, far = chernoff.start(evaluator, float(np.nextafter(delta - float(mass.hi), -1.0)))
    if guess == 0.0 and fresh(0.0)[1] <= delta:
        return 0.0, 0.0
    low, high = 0.0, far
    if not np.isfinite(far):
        return low, high
    tried = [made.aim for made in evaluator.contours]
    aim, beyond = tried[0] if tried else guess or 0.5 * far, far
    off = _OFF * aim
    for _ in range(_GUESSES):
        seen = _Samples(delta, low, high)
        read = evaluator.known if evaluator._by_contour else fresh
        if evaluator._by_contour and aim not in tried:
            evaluator.contours = ()
            seen.add(aim, *fresh(aim))
            tried.append(aim)
        if not evaluator._by_contour or read(aim)[0] > float(mass.lo):
            seen.settle(read, aim, off, lambda t: relative * (1.0 + t) + absolute)
            aims = [seen.high, 0.5 * (seen.low + seen.high)]
        else:
            # Next to the largest loss nothing is seen: a contour made for less serves better there.
            beyond, aims = aim, [_LESS * aim]
        low, high = seen.low, seen.high
        if low == 0.0 and fresh(0.0)[1] <= delta:
            return 0.0, 0.0
        done = high - low <= 2.0 * (relative * (1.0 + high) + absolute)
        if evaluator._is_smooth:
            lo, hi = read(high)
            done = done or (high < far and hi - lo <= 0.5 * RELATIVE * hi)
        else:
            done = done or high - low <= _SHARE * accuracy
        aims = [at for at in aims if at < beyond and not _is_close(at, tried)]
        if done or not aims or not evaluator._by_contour:
            break
        aim, off = aims[0], 0.5 * (high - low)
    return low, high


def _is_close(t: float, tried: list[float]) -> bool:
    return any(abs(at - t) <= _CLOSE * (1.0 + t) for at in tried)


class _Samples:
    """Samples of a curve, and what they say about where it comes down to `delta`."""

    def __init__(self, delta: float, low: float, high: float):
        self._delta = delta
        self.low, self.high = low, high
        """Proven bounds of the answer, also from earlier samples."""

    def add(self, t: float, lo: float, hi: float) -> None:
        """One more sample."""
        self.low = max(self.low, t) if lo > self._delta else self.low
        self.high = min(self.high, t) if hi <= self._delta else self.high

    def settle(self, read: Read, near: float, off: float, fine: Callable[[float], float]) -> None:
        """Locate where the upper and where the lower ends cross `delta`, from a guess about it.

        `off` is how far off the guess may be. `ln h` is close to linear over short ranges.
        """
        from scipy.optimize import brentq

        first, last = self.low, self.high
        for side in (1, 0):

            def gap(t: float, side: int = side) -> float:
                ends = read(t)
                self.add(t, *ends)
                if not (self._delta > 0.0 and ends[side] > 0.0):
                    return 1.0 if ends[side] > self._delta else -1.0
                # Next to `delta` logarithms do not tell floats apart, and 0 would end the search.
                off = (ends[side] - self._delta) / self._delta
                if abs(off) < 0.5:
                    return math.log1p(off) or -U
                return math.log(ends[side]) - math.log(self._delta)

            above = below = near
            step, height = off + fine(near), gap(near)
            if height > 0.0:
                while height > 0.0 and below < last:
                    above, below, step = below, min(below + step, last), 4.0 * step
                    height = gap(below)
                crosses = height <= 0.0
            else:
                while height <= 0.0 and above > first:
                    below, above, step = above, max(above - step, first), 4.0 * step
                    height = gap(above)
                crosses = height > 0.0
            width = 0.5 * fine(below)
            if crosses and width < below - above:
                root = float(brentq(gap, above, below, xtol=width, disp=False))
                for t in (root - width, root + width):
                    gap(min(max(t, first), last))
