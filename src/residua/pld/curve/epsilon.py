"""`epsilon(delta)`: the least `eps >= 0` with `h(e^eps) <= delta`, from enclosures of the curve.

The curve decreases, so one enclosure `[lo, hi]` at `t` says all that is needed: `hi <= delta` puts
`eps` at `t` or left of it, `lo > delta` right of it. Both ends of the answer are such `t`; where to
look is guesswork. The first guess is a saddle point's (`chernoff.py`). A contour made for a guess
can be read anywhere, only wider than where it was made for. So both ends are located with the
contour of the guess alone; another one is made for the answer, until that no longer moves.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats, Interval
from residua.pld.arithmetic import MOST_STEPS
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
_LOCATED = 0.01
"""Of the width of the answer: how finely its ends are located."""
_LESS = 0.85
"""Where to make a contour instead, relative to where one said nothing."""
_OFF = 0.02
"""How far off the first guess may well be, relative to itself."""

Read = Callable[[float], tuple[float, float]]
Point = tuple[float, float]
"""Where, and the height of the end that matters there; height 0 stands for nothing seen."""


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

    def fresh(t: float) -> Point:
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
        self._delta, self._samples = delta, list[tuple[float, float, float]]()
        self.low, self.high = low, high
        """Proven bounds of the answer, also from earlier samples."""

    def add(self, t: float, lo: float, hi: float) -> None:
        """One more sample."""
        self._samples.append((t, lo, hi))
        self.low = max(self.low, t) if lo > self._delta else self.low
        self.high = min(self.high, t) if hi <= self._delta else self.high

    def _bracket(self, side: int, first: float, last: float) -> tuple[Point, Point]:
        """Samples between which the lower (0) or upper (1) end crosses `delta`."""
        points = [(s[0], s[1 + side]) for s in self._samples]
        above = [p for p in points if p[1] > self._delta]
        below = [p for p in points if not p[1] > self._delta]
        # Of lower ends those above are proofs, of upper ends those below: they come first.
        if side == 0:
            low = max(above, default=(first, 0.0))
            return low, min((p for p in below if p[0] > low[0]), default=(last, 0.0))
        high = min(below, default=(last, 0.0))
        return max((p for p in above if p[0] < high[0]), default=(first, 0.0)), high

    def settle(self, read: Read, near: float, off: float, fine: Callable[[float], float]) -> None:
        """Locate both ends, from a guess and how far off it is; again once the width is known."""
        first, last = self.low, self.high
        for _ in range(4):
            before = self.high - self.low
            for side in (1, 0):
                self._locate(read, side, near, off, fine, (first, last))
            if self.high - self.low >= 0.5 * before:
                return

    def _locate(
        self,
        read: Read,
        side: int,
        near: float,
        off: float,
        fine: Callable[[float], float],
        ends: tuple[float, float],
    ) -> None:
        """Narrow the bracket of the lower (0) or upper (1) end.

        `ln h` is close to linear over short ranges, so secants in it converge fast; every third
        step halves.
        """
        first, last = ends
        for step in range(MOST_STEPS):
            (low, above), (high, below) = self._bracket(side, first, last)
            width = max(fine(high), _LOCATED * (self.high - self.low))
            if high - low <= width:
                return
            if not (above or below):
                t = near
            elif above > 0.0 and below > 0.0 and self._delta > 0.0 and step % 3:
                fall = np.log(above) - np.log(below)
                share = (np.log(above) - np.log(self._delta)) / fall if fall > 0.0 else 0.5
                t = low + share * (high - low)
            elif high == last and not below and low + off < 0.5 * (low + high):
                t, off = low + off, 4.0 * off
            elif low == first and not above and high - off > 0.5 * (low + high):
                t, off = high - off, 4.0 * off
            else:
                t = 0.5 * (low + high)
            t = min(max(t, low + 0.45 * width), high - 0.45 * width)
            if not low < t < high:
                return
            self.add(t, *read(t))
