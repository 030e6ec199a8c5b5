"""Finite laws above losses that have no finite list of outcomes: chords through their curves.

Between points the curve is replaced by its chord, which lies above; beyond the last point it is
held constant, which is mass at infinity. A single factor is read off its own curve, a composition
off a fine lattice that dominates it (`lattice.py`). A proof through a law above is a proof; a
disproof is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from residua.verify.arithmetic.balls import Ball, ball, bits, near
from residua.verify.losses.costs import Unknown
from residua.verify.losses.curves import curve
from residua.verify.losses.factors import Factor, Loss
from residua.verify.losses.lattice import lattice_of
from residua.verify.losses.laws import Finite

FINENESS = (0.006, 0.001, 0.0004)
"""Distances of points beside the size of the loss, to be tried in turn. Lattice points are three
times as far apart at first, beside the size of the smallest factor."""
_GROWTH = 0.7
"""Far out, points are that much of their distance from 1 times the fineness apart."""
_CLOSE = 0.25
"""The same at the largest loss, if there is one, where tilted laws have most of their mass."""
_LEVEL = 1e-3
"""How much of the slack what lies beyond the last point may take."""
_MOST = 1 << 17


def law_above(loss: Loss, eta: Fraction, fine: float) -> Callable[[], Finite] | None:
    """How to make a finite law above a composition, with no more than `η` at infinity."""
    if loss.stated or not loss.factors:
        return None
    with bits(64):
        sizes = [_size(curve(factor, arb(0))) for factor, _ in loss.factors]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    if eta == 0 and any(factor.unbounded for factor, _ in loss.factors):
        return None
    whole = sum(size**2 * n for size, (_, n) in zip(known, loss.factors, strict=True)) ** 0.5
    level = _LEVEL * float(eta)
    if len(loss.factors) == 1 and loss.factors[0][1] == 1 and not loss.variance:
        factor = loss.factors[0][0]

        def heights(t: Ball, back: bool) -> Ball:
            found = curve(factor, t, back)
            if found is None:
                raise Unknown("no formula for its curve")
            return found

        def ends() -> tuple[Ball | None, Ball | None]:
            if not factor.missing().is_zero():
                return None, None
            return factor.top(), factor.top(True)

        def make() -> Finite:
            tops = ends()
            most = max((near(top) for top in tops if top is not None), default=math.inf)
            return _through(heights, _points(whole, fine, most), level, factor.symmetric, ends=tops)

        return make
    return lambda: _off_lattice(loss, min(known), whole, level, fine)


@dataclass(frozen=True)
class Above(Factor):
    """A finite law above a bounded factor, as a factor."""

    factor: Factor
    fine: float

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.factor.symmetric

    def law(self) -> Finite:
        make = law_above(Loss(factors=((self.factor, 1),)), Fraction(0), self.fine)
        if make is None:
            raise Unknown("no formula for its curve")
        return make()


def _size(height: Ball | None) -> float | None:
    """About the standard deviation of a loss with this height at 1."""
    return None if height is None else 2.4 * near(height)


def _points(size: float, fine: float, end: float = math.inf) -> Callable[[int], float]:
    """Points that lie closer together around 0 and around the end."""
    found = [0.0]

    def at(i: int) -> float:
        while len(found) <= i:
            far = min(found[-1], _CLOSE + abs(end - found[-1]))
            found.append(found[-1] + fine * max(size, _GROWTH * far))
        return found[i]

    return at


def _off_lattice(loss: Loss, least: float, whole: float, level: float, fine: float) -> Finite:
    apart = 3.0 * fine if fine == FINENESS[0] else fine
    spacing = Fraction(apart * least).limit_denominator(1 << 40)
    reach = _MOST
    law = lattice_of(loss, spacing, level / 8.0, reach)
    span = max(law.high, -law.low) + 2
    excess = law.excess(span, 1)
    d = ball(spacing)

    def heights(t: Ball, back: bool) -> Ball:
        k = min(round(near(t / d)), span)
        return excess[span - k] * (k * d).exp() if back else excess[span + k]

    at = _points(whole, fine)

    def on_lattice(i: int) -> float:
        return max(float(round(at(i) / float(spacing))), float(i)) * float(spacing)

    return _through(heights, on_lattice, level, loss.symmetric, spacing)


def _through(
    heights: Callable[[Ball, bool], Ball],
    point: Callable[[int], float],
    level: float,
    symmetric: bool,
    spacing: Fraction | None = None,
    ends: tuple[Ball | None, Ball | None] = (None, None),
) -> Finite:
    """The law of the chords through points of a curve, on both sides of `x = 1`.

    `ends` are the largest losses, if they are known: the last points, so that atoms there stay.
    """
    sides = []
    for back in (False,) if symmetric else (False, True):
        t: list[Ball] = []
        h: list[Ball] = []
        end = ends[back]
        while len(h) < 3 or not h[-1] <= level:
            if len(h) > 1 << 14:
                raise Unknown("its law has too many outcomes")
            at = point(len(h))
            place = arb(at) if spacing is None else round(at / float(spacing)) * ball(spacing)
            if end is not None and len(h) >= 2 and not place < end and end > t[-1]:
                t.append(end)
                h.append(arb(0))
                break
            if t and not place > t[-1]:
                raise Unknown("its points cannot be told apart")
            t.append(place)
            h.append(heights(place, back))
        x = [each.exp() for each in t]
        slopes = [(h[i] - h[i + 1]) / (x[i + 1] - x[i]) for i in range(len(h) - 1)] + [arb(0)]
        jumps = [slopes[i - 1] - slopes[i] for i in range(1, len(h))]
        over = [a * b for a, b in zip(x[1:], jumps, strict=True)]
        sides.append((t[1:], over, jumps, h[-1]))
    (z, p, q, plus), (z_back, q_back, p_back, minus) = sides[0], sides[-1]
    middle = 1 - plus - sum(p, arb(0)) - sum(p_back, arb(0))
    return Finite(
        (*p_back[::-1], middle, *p),
        (*q_back[::-1], middle, *q),
        (*(-each for each in z_back[::-1]), arb(0), *z),
        plus,
        minus,
        symmetric,
    )
