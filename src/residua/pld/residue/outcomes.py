"""Lists of outcomes above a query: what it may lose, with masses from above.

A query that is not finite, or has too many outcomes, is replaced by the chords through proven upper
ends of its curve, on either side of `x = 1`. What lies beyond the last point, where the curve has
come down to some level, counts as mass at infinity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.curve.reads import reach, right_half
from residua.pld.families import gaussian
from residua.pld.pld import Pld
from residua.pld.residue.finite import finite_excess
from residua.work_limit import remembered, work

_ACCURACY = 1e-3
"""Relative, asked for where a curve is read; the chords are above what is found in any case."""
_WIDEST = 600.0
"""The largest loss that is listed; what is beyond counts as mass at infinity."""


class Outcomes(NamedTuple):
    """A list of losses and masses above a query; the masses from above, the losses to `error`."""

    losses: Floats
    masses: Floats
    at_infinity: float
    error: float

    def heights(self, left: float, t: Floats) -> Floats:
        """`h(e^t)` of the list and the Gaussian that is left, from above."""
        work(4.0 * t.size * self.losses.size, 80.0 * t.size * self.losses.size)
        at = t[:, None] - self.losses
        error = self.error + 4.0 * U * (np.abs(t).max() + np.abs(self.losses).max())
        if left > 0.0:
            each = gaussian.curve(at.ravel(), error, left, 4.0 * U)[1].reshape(at.shape)
        else:
            each = np.maximum(-np.expm1(np.minimum(at - error, 0.0)), 0.0)
        return np.asarray(each @ self.masses * (1.0 + 2.0 * U * at.shape[1]) + self.at_infinity)


@remembered(maxsize=64)
def outcomes_above(loss: Pld, level: float, fine: float, most: int) -> tuple[Outcomes, ...] | None:
    """Lists above a query and above its reversal (one if it is symmetric), down to `level`.

    Both sides of `x = 1` are lists of weights `√(pq)`. The lower side is raised so that they meet
    there; the mass that is then missing has loss 0.

    Args:
        loss: the query.
        level: the height at which the chords end.
        fine: the distance of outcomes beside the size of the loss at 1, and their own place.
        most: a list of at most so many outcomes is taken as it is.

    Returns:
        None if the query may lose everything with certainty, or loses nothing on one side.
    """
    tails = [loss.mass_at_infinity, loss.mass_at_minus_infinity]
    if loss.is_infinite or max(tails) >= 1.0:
        return None
    exact = finite_excess(loss) if loss.is_finite else None
    if exact is not None and exact.losses.size <= most:
        z, w, error = exact.losses, exact.weights * (1.0 + exact.weight_error), exact.loss_error
        right, left = z > 0.0, z < 0.0
        sides = [(z[right], w[right]), (-z[left][::-1], w[left][::-1])]
    else:
        both = (loss,) if loss.is_symmetric else (loss, loss.reverse())
        # Both curves have the same height at 1, which one of them may enclose poorly.
        at_one = min(float(right_half(s, np.zeros(1), 0.0, _ACCURACY)[1][0]) for s in both)
        made = [_chords(side, at_one, level, fine) for side in both]
        sides, tails = [(z, w) for z, w, _ in (made[0], made[-1])], [made[0][2], made[-1][2]]
        error = 0.0
    heights = [
        float(np.sum(2.0 * np.sinh(0.5 * z) * w)) + tail
        for (z, w), tail in zip(sides, tails, strict=True)
    ]
    if min(heights) <= 0.0:
        return None
    raised = [max(heights) / height for height in heights]
    z = np.concatenate([-sides[1][0][::-1], sides[0][0]])
    w = np.concatenate([sides[1][1][::-1] * raised[1], sides[0][1] * raised[0]])
    rounding = 1.0 + (EXP_ULPS + 64.0 + 4.0 * np.abs(z)) * U
    found = []
    for sign, tail, raise_by in zip((1.0, -1.0), tails, raised, strict=True):
        p = w * np.exp(0.5 * sign * z) * rounding
        at_infinity = tail * raise_by
        nothing = max(1.0 - at_infinity - float(np.sum(p)), 0.0) + 1e-13
        losses, masses = np.append(sign * z, 0.0), np.append(p, nothing)
        found.append(Outcomes(losses, masses, at_infinity, error))
    return tuple(found[:1] if loss.is_symmetric else found)


def _chords(side: Pld, at_one: float, level: float, fine: float) -> tuple[Floats, Floats, float]:
    """Places and weights whose curve, with the last height, is above that of one side."""
    floor = float(side.mass_at_infinity_bounds.hi)
    end = min(side._evaluator._top, max(reach(side, level), 1e-9), _WIDEST)
    size = max(2.5 * min(at_one, 0.4), 1e-9)
    y = [0.0]
    while y[-1] < end:
        y.append(y[-1] + fine * (size + y[-1]))
    work(200.0 * len(y))
    t = np.minimum(np.array(y), end)
    _, high = right_half(side, t, 0.0, _ACCURACY)
    high[0] = at_one
    enough = np.flatnonzero(high - floor <= level)
    last = int(enough[0]) if enough.size else t.size - 1
    t, high = t[: last + 1], np.minimum.accumulate(high[: last + 1])
    kept = _lower_hull(np.exp(t), high)
    t, high = t[kept], high[kept]
    if t.size < 2:
        return np.empty(0), np.empty(0), float(high[-1])
    x = np.exp(t)
    # Slopes of the chords, in units of x: q beyond each place.
    q = -np.diff(high) / (x[:-1] * np.expm1(np.diff(t)))
    jump = np.maximum(q - np.append(q[1:], 0.0), 0.0)
    places, weights = t[1:], jump * np.exp(0.5 * t[1:])
    work(4.0 * t.size * t.size, 24.0 * t.size * t.size)
    # What rounding took away is put back: the sum must be at least the heights it came from.
    sums = 2.0 * np.sinh(0.5 * np.maximum(places - t[:, None], 0.0)) @ weights * np.exp(0.5 * t)
    needed = (high - high[-1])[:-1] / np.maximum(sums[:-1], 1e-300)
    scale = max(1.0, float(np.max(needed))) * (1.0 + 1e-12)
    return places, weights * scale, float(high[-1]) * (1.0 + 1e-12)


def _lower_hull(x: Floats, h: Floats) -> list[int]:
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (h[b] - h[a]) * (x[i] - x[b]) < (h[i] - h[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return kept
