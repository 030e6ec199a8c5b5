"""`epsilon(delta)`: the least `eps >= 0` with `h(e^eps) <= delta`, from enclosures of the curve.

The curve decreases, so one enclosure `[lo, hi]` at `t` says all that is needed: `hi <= delta` puts
`eps` at `t` or left of it, `lo > delta` right of it. Both ends of the answer are such `t`; where to
look is guesswork. The first guess is a saddle point's (`chernoff.py`). `ln h` is nearly a parabola,
so the inverse is interpolated through the samples next to `delta`, for both ends of the enclosure
at once, and the next samples surround the two guesses at the distance by which these still move
(`narrow`). Several points cost hardly more than one, as only the middle one may ask for another
contour. What is left is halved and cut by secants, one point at a time (`settle`). If a contour
made for elsewhere has served, and left the answer wider than need be, one is made for the answer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats, Interval
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.curve import chernoff
from residua.pld.support.support_ends import mass_at_infinity_at_most

if TYPE_CHECKING:
    from residua.pld.curve.evaluate import Evaluator
    from residua.pld.pld import Pld

_FAR = 1e6
_FIRST = np.array([0.8, 0.95, 1.0, 1.05, 1.2])
"""Times the first guess: where the first samples are."""
_OFF = 0.1
"""How far off that guess may well be, relative to itself."""
_AROUND = np.array([-8.0, -1.0, -0.1, 0.1, 1.0, 8.0])
_ROUNDS = 8
_LESS, _LOWER = 0.85, 2
"""How far below a guess to look next if nothing is known there, and how often."""
_RELATIVE = 1e-7
"""Relative width at the answer that is narrow enough where Gaussian noise takes part."""
_SHARE = 0.5
"""Of the accuracy in `eps`: what is narrow enough elsewhere."""
_CLOSE = 1e-3
"""A contour made so close to the answer, relative to `1 + eps`, was made for it."""
_WIDE, _OPEN = 16.0, 0.1
"""By which factor widths may differ in samples of one quality; and a width that says nothing."""
_LOCATED = 0.01
"""Of the width of the answer: how finely its ends are located."""
_DEAR = 1 << 12
"""Nodes from which on another contour is not worth it."""

Point = tuple[float, float]
"""Where, and the height of the end that matters there."""

_ZERO: Point = (0.0, 0.0)


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
    guess, far = chernoff.start(evaluator, float(np.nextafter(delta - float(mass.hi), -1.0)))
    search = _Search(evaluator, _Seen(delta, far), accuracy)
    if guess == 0.0 and search.is_zero():
        return 0.0, 0.0
    if np.isfinite(far):
        search.narrow(guess or 0.5 * far)
    if not search.seen.is_above and search.is_zero():
        return 0.0, 0.0
    search.settle()
    if np.isfinite(far) and search.renew():
        search.narrow(search.seen.ends[1])
        search.settle()
    return search.seen.ends


class _Search:
    """Looks at one curve for one `delta`."""

    def __init__(self, evaluator: Evaluator, seen: _Seen, accuracy: float):
        self.seen = seen
        self._evaluator, self._accuracy = evaluator, accuracy
        self._relative, self._absolute = evaluator.resolution(accuracy)

    def look(self, t: Floats, bracket: float) -> bool:
        """At the points `t`, the middle one of which matters: False if it says nothing."""
        delta, middle = self.seen.delta, t.size // 2
        # Far from the answer a rough value does, unless it leaves the side open.
        rough = max(self._accuracy, min(0.02 * bracket, 1.0))
        lo, hi = self._evaluator.right(t, 0.0, rough, sparing=True)
        if rough > self._accuracy and lo[middle] <= delta < hi[middle]:
            lo, hi = self._evaluator.right(t, 0.0, self._accuracy, sparing=True)
        return self.seen.add(t, lo, hi)

    def is_zero(self) -> bool:
        """Whether the answer is 0."""
        self.look(np.zeros(1), 0.0)
        return self.seen.ends[1] == 0.0

    def _width(self, t: float) -> float:
        """How finely to locate a point next to `t`."""
        return self._relative * (1.0 + t) + self._absolute

    def narrow(self, guess: float) -> None:
        """Look closer and closer until both crossings are located, or guesses no longer help."""
        points, widest = guess * _FIRST, _OFF * guess
        lower = _LOWER
        for _ in range(_ROUNDS):
            if not self.look(points, widest):
                # Next to the largest loss a contour made for less may serve better.
                if not lower:
                    return
                guess, lower = _LESS * guess, lower - 1
                points, widest = guess * _FIRST, _OFF * guess
                continue
            wanted, widest = [], 0.0
            for side in (0, 1):
                (low, _), (high, _) = self.seen.bracket(side)
                width = self._width(high)
                if high - low <= width or high <= width:
                    continue
                widest = max(widest, high - low)
                at, off = self.seen.guess(side)
                around = at + max(min(off, 0.1 * (high - low)), 0.4 * width) * _AROUND
                inside = around[(around > low) & (around < high)]
                wanted.append(inside if inside.size else np.array([0.5 * (low + high)]))
            if not wanted:
                return
            points = np.unique(np.concatenate(wanted))

    def settle(self) -> None:
        """Both ends, one point at a time; again if one has told that the other was rough."""
        for _ in range(4):
            self._edge(1)
            low, high = self.seen.ends
            self._edge(0)
            if self.seen.ends[0] - low <= 0.5 * (high - low):
                return

    def _edge(self, side: int) -> None:
        """Narrow the bracket around where the lower (0) or upper (1) end crosses `delta`.

        `ln h` is close to linear over short ranges, so secants in it converge fast; every third
        step halves.
        """
        seen, delta = self.seen, self.seen.delta
        for step in range(200):
            (low, above), (high, below) = seen.bracket(side)
            high = min(high, _FAR) if side == 0 else high
            width = max(self._width(high), _LOCATED * (seen.ends[1] - seen.ends[0]))
            if not (high - low > width and above > 0.0 and np.isfinite(high)):
                return
            if step == 0 and below <= 0.0:
                guess = low + 0.9 * (high - low)
            elif step % 3 == 0 or below <= 0.0 or delta <= 0.0:
                guess = 0.5 * (low + high)
            else:
                fall = np.log(above) - np.log(below)
                share = (np.log(above) - np.log(delta)) / fall if fall > 0.0 else 0.5
                guess = low + share * (high - low)
            guess = min(max(guess, low + 0.45 * width), high - 0.45 * width)
            if not low < guess < high:
                return
            self.look(np.array([guess]), high - low)

    def renew(self) -> bool:
        """Make a contour for the answer that was found, if it may well be narrower for it."""
        evaluator, (low, high) = self._evaluator, self.seen.ends
        kept = evaluator.contours
        if not kept or high - low <= 2.0 * self._width(high):
            return False
        if any(made.line.count > _DEAR for made in kept):
            return False
        if evaluator._is_smooth:
            if any(abs(made.aim - high) <= _CLOSE * (1.0 + high) for made in kept):
                return False
            lo, hi = evaluator.right(np.array([high]), 0.0, self._accuracy, sparing=True)
            if hi[0] - lo[0] <= _RELATIVE * hi[0]:
                return False
        elif high - low <= _SHARE * self._accuracy:
            return False
        evaluator.contours = ()
        evaluator.right(np.array([high]), 0.0, self._accuracy)
        evaluator.contours = (*evaluator.contours, *kept)
        self.seen = self.seen.proven()
        return True


class _Seen:
    """Samples of the curve, and what they say about where it comes down to `delta`.

    The bound `far` is one without a height: a Chernoff bound says that the curve is below there.
    """

    def __init__(self, delta: float, far: float):
        self.delta, self._far = delta, far
        self._samples: list[tuple[float, float, float]] = []
        self._brackets = [(_ZERO, (far, 0.0)), (_ZERO, (far, 0.0))]

    def add(self, t: Floats, lo: Floats, hi: Floats) -> bool:
        """Samples, the middle one as good as it gets: False if that is too wide to be of use.

        Others count if they are no worse, or else if they are proven to be on one side of `delta`.
        """
        useful, middle = True, t.size // 2
        if t.size > 1:
            share = (hi - lo) / np.where(hi > 0.0, hi, 1.0)
            limit = min(_WIDE * max(share[middle], 8.0 * U), _OPEN)
            kept = (share <= limit) | (lo > self.delta) | (hi <= self.delta)
            useful = bool(kept[middle])
            t, lo, hi = t[kept], lo[kept], hi[kept]
        self._samples += zip(t.tolist(), lo.tolist(), hi.tolist(), strict=True)
        self._brackets = [self._bracket(0), self._bracket(1)]
        return useful

    def proven(self) -> _Seen:
        """What holds for the curve itself, not only for enclosures that some contour gave."""
        rest = _Seen(self.delta, self._far)
        sided = [s for s in self._samples if s[1] > self.delta or s[2] <= self.delta]
        for sample in sided:
            rest.add(*(np.array([v]) for v in sample))
        return rest

    @property
    def ends(self) -> tuple[float, float]:
        """Proven bounds of the answer."""
        return self._brackets[0][0][0], self._brackets[1][1][0]

    @property
    def is_above(self) -> bool:
        """Whether the curve was seen above `delta`: the answer is not 0."""
        return self._brackets[0][0][1] > 0.0

    def bracket(self, side: int) -> tuple[Point, Point]:
        """Samples between which the lower (0) or upper (1) end crosses `delta`.

        Height 0 stands for an end of the range, where nothing was seen.
        """
        return self._brackets[side]

    def _bracket(self, side: int) -> tuple[Point, Point]:
        points = [(t, (lo, hi)[side]) for t, lo, hi in self._samples]
        above = [p for p in points if p[1] > self.delta]
        below = [p for p in points if not p[1] > self.delta]
        # Of lower ends those above are proofs, of upper ends those below: they come first.
        if side == 0:
            low = max(above, default=_ZERO)
            return low, min((p for p in below if p[0] > low[0]), default=(self._far, 0.0))
        high = min(below, default=(self._far, 0.0))
        return max((p for p in above if p[0] < high[0]), default=_ZERO), high

    def guess(self, side: int) -> tuple[float, float]:
        """Where the end crosses `delta`, and about how far off that is."""
        (low, _), (high, _) = self._brackets[side]
        known = np.array([(s[0], s[1 + side]) for s in self._samples if s[1 + side] > 0.0])
        if len(known) < 2 or self.delta <= 0.0:
            return 0.5 * (low + high), 0.5 * (high - low)
        t, f = known[:, 0], np.log(known[:, 1]) - np.log(self.delta)
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
