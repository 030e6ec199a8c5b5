"""PLDs known through a certified curve only, made finite at a requested accuracy.

A profile encloses `h(e^t)` and the reversed curve for `t >= 0`. The finite PLD above it
connects the dots, the one below hangs under them (`finite.py`). Dots are as dense as it
takes for both to lie within `accuracy` of the curve in `eps`; `n` uses then cost about
`n * accuracy`. Far tails may be coarser, and stop where the curve has come down to 1e-40:
what is left goes to infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.rational import Side
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.constructors import from_exact
from residua.pld.discretise.finite import hanging, heights_at, refined, region_above
from residua.pld.pld import Pld

Curve = Callable[[Floats, float], tuple[Floats, Floats]]

_DEEP = 1e-12
"""Below this height the accuracy asked for relaxes with the depth."""
_NOTHING = 1e-40
_WIDEST = 690.0
_NET = 65


@dataclass(frozen=True)
class Profile:
    """Enclosures of the curve (`right`) and of the reversed curve (`left`) at `t >= 0`."""

    right: Curve
    left: Curve
    at_infinity: tuple[float, float] = (0.0, 0.0)
    """Lower bounds on `P`'s mass at `+inf` and on `Q`'s at `-inf`."""

    def mirrored(self) -> Profile:
        """The profile of the reversal."""
        return Profile(self.left, self.right, self.at_infinity[::-1])


def finite(profile: Profile, accuracy: float, side: Side) -> Pld:
    """A finite PLD above (dominating) or below the profile, within `accuracy` in `eps`."""
    dt = (EXP_ULPS + 2.0) * U

    def curve(t: Floats) -> tuple[Floats, Floats]:
        lo, hi = np.empty(t.size), np.empty(t.size)
        for half, one in ((t >= 0.0, profile.right), (t < 0.0, profile.left)):
            if half.any():
                lo[half], hi[half] = one(np.abs(t[half]), dt)
        return np.clip(lo, 0.0, 1.0), np.clip(hi, 0.0, 1.0)

    def enough(gap: Floats, noise: Floats, s: Floats, high: Floats) -> NDArray[np.bool_]:
        fall = np.maximum(high[:-1] - high[1:], 0.0) / np.diff(s)
        depth = np.log(np.maximum(high[:-1], _NOTHING) / _DEEP)
        relaxed = accuracy * (1.0 + np.minimum(depth, 0.0) ** 2)
        return (gap <= relaxed * fall) | (gap <= 4.0 * noise) | (high[:-1] <= _NOTHING)

    ends = [_end(profile.left), _end(profile.right)]
    net = [np.linspace(0.0, end, _NET) for end in ends]
    start = np.unique(np.concatenate([-net[0], net[1]]))
    t, lo, hi, x = refined(curve, start, enough)
    if side == "above":
        return from_exact(region_above(x, heights_at(t, x, hi), False, None))
    floor, missing = (Fraction(v) for v in profile.at_infinity)
    return from_exact(hanging(t, lo, hi, x, floor, 1 - missing))


def _end(curve: Curve) -> float:
    """Where the curve has come down to its last value, give or take nothing."""
    last = float(curve(np.array([_WIDEST]), 0.0)[1][0])
    low, high = 0.0, _WIDEST
    for _ in range(60):
        middle = 0.5 * (low + high)
        height = float(curve(np.array([middle]), 0.0)[1][0])
        done = height <= last * (1.0 + 1e-12) + _NOTHING
        low, high = (low, middle) if done else (middle, high)
        if high - low <= 1e-9 * high:
            break
    return min(high * (1.0 + 1e-9) + 1e-12, _WIDEST)
