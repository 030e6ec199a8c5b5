"""Finite PLDs above and below a given one.

`above(L, accuracy)` dominates `L`, `below(L, accuracy)` is dominated by it, and their
hockey-stick curves are within `accuracy` of that of `L`. Both come from samples of the curve:

* above: connect the dots. The piecewise-linear curve through upper bounds of `h(x_i)` is
  above `h`; what lies beyond the last point becomes mass at infinity, and before the first
  point mass at minus infinity.
* below: the lowest points that convexity allows between samples (`convexity_bounds.py`), connected.

Either is a polygon of tangent lines to the testing region, worked out in rationals; its
vertices are rounded away from (towards) the region to multiples of 2^-400, so the result is an
exact finite PLD and the side of the bound survives every rounding.

PLDs known through a certified curve only, made finite at a requested accuracy.

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
from functools import partial, reduce
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError
from residua.pld.arithmetic import BATCH, MANY, MOST_STEPS, convexity_bounds
from residua.pld.arithmetic.exact import (
    EXACT_IDENTITY,
    ExactAtoms,
    Side,
    from_rational_vertices,
    rounded_region,
)
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, U
from residua.pld.constructors import from_exact
from residua.pld.curve.support_ends import survival
from residua.pld.families.atoms import Atoms, atoms_from_exact, atoms_from_floats
from residua.pld.pld import Pld
from residua.work_limit import work

_DEPTH = 1e-20
"""Tails are followed to this height of the curve."""


def listed_atoms(pld: Pld) -> Atoms:
    """The atoms of a finite PLD: exact for rational atoms, else rounded to nearest."""
    evaluator = pld._evaluator
    if evaluator._single_atoms is not None:
        return evaluator._single_atoms
    exact = exact_atoms(pld)
    if exact is not None:
        return atoms_from_exact(exact)
    if evaluator._table_size > BATCH:
        raise ArgumentError(
            f"pld has too many atoms to write out (about {evaluator._table_size:.3g}): {pld!r}"
        )
    table = evaluator._table
    p, q = table.p, np.exp(table.log_p - table.z)
    kept = (p > 2.0**-1000) & (q > 2.0**-1000)
    p_total = 1 - Fraction(pld.mass_at_infinity)
    q_total = 1 - Fraction(pld.mass_at_minus_infinity)
    return atoms_from_floats(p[kept], q[kept], p_total, q_total)


def exact_atoms(pld: Pld) -> ExactAtoms | None:
    """The denoted atoms in rationals, if all factors are rational and few enough."""
    if pld.gaussian is not None or not all(type(f) is Atoms for f in pld.terms):
        return None
    parts = [(f, n) for f, n in pld.terms.items() if type(f) is Atoms]
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].exact
    if pld._evaluator._table_size > 4 * MANY:
        return None
    every = (f.exact for f, n in parts for _ in range(n))
    return reduce(ExactAtoms.compose, every, EXACT_IDENTITY)


def above(pld: Pld, accuracy: float) -> ExactAtoms:
    """A finite PLD that dominates `pld`, by enough of a margin to prove it."""
    exact = exact_atoms(pld)
    if exact is not None:
        return exact
    t, lo, hi, x = _samples(pld, accuracy)
    raised = np.minimum(hi * (1.0 + _margin(pld)) + 2.0 * (hi - lo), 1.0)
    heights = heights_at(t, x, raised)
    back = pld.reverse()
    kept, kept_back = survival(pld.terms), survival(back.terms)
    bounded = t[-1] >= pld._evaluator._top and -t[0] >= back._evaluator._top
    if bounded and kept is not None and kept_back is not None:
        # Past the largest losses the curves are the masses at infinity, which are rationals.
        heights[-1] = 1 - kept
        return region_above(x, heights, False, None, kept_back)
    return region_above(x, heights, False, None)


def below(pld: Pld, accuracy: float) -> ExactAtoms:
    """A finite PLD dominated by `pld`, by enough of a margin to prove it."""
    exact = exact_atoms(pld)
    if exact is not None:
        return exact
    t, lo, hi, x = _samples(pld, accuracy)
    margin = _margin(pld)
    lowered = np.maximum(lo * (1.0 - margin) - 2.0 * (hi - lo), 0.0)
    floor = Fraction(float(pld.mass_at_infinity_bounds.lo) * (1.0 - margin))
    total = 1 - Fraction(float(pld.mass_at_minus_infinity_bounds.lo) * (1.0 - margin))
    return convex_minorant_points(t, lowered, hi, x, floor, total, margin)


def convex_minorant_points(
    t: Floats,
    lo: Floats,
    hi: Floats,
    x: list[Fraction],
    floor: Fraction,
    total: Fraction,
    margin: float = 0.0,
) -> ExactAtoms:
    """A finite PLD below a curve with these samples (as `refined` gives them).

    `floor` is `P`'s mass at infinity, rounded down, and `total` is `Q`'s on finite losses,
    rounded up. Between the samples the curve hangs lower: the points where convexity lets it
    are taken, lowered by `margin`, relative.
    """
    heights = heights_at(t, x, lo)
    x = list(x)
    for side, sign in ((t >= 0.0, 1.0), (t <= 0.0, -1.0)):
        s = sign * t[side][:: int(sign)]
        if s.size < 3:
            continue
        bounds = convexity_bounds.lower_cells(s, lo[side][:: int(sign)], hi[side][:: int(sign)])
        w, lowest = bounds.bottom()
        places = [Fraction(v) for v in np.exp(s[:-1] + np.log1p(w)).tolist()]
        hung = [Fraction(v) for v in np.maximum(lowest * (1.0 - margin), 0.0).tolist()]
        for y, h in zip(places, hung, strict=True):
            x.append(y if sign > 0.0 else 1 / y)
            heights.append(h if sign > 0.0 else 1 - 1 / y + h / y)
    order = sorted(range(len(x)), key=lambda i: (x[i], heights[i]))
    return region_below([x[i] for i in order], [heights[i] for i in order], floor, total)


def _margin(pld: Pld) -> float:
    """A relative margin with which the order check can prove which side the samples are on."""
    return 1e-6 if pld._evaluator._by_contour else 1e-10


def heights_at(t: Floats, x: list[Fraction], h: Floats) -> list[Fraction]:
    """`h(x)` exactly from what is known on each side: the reversed curve where `t < 0`."""
    work(1000.0 * t.size)
    return [
        Fraction(v) if at >= 0.0 else 1 - place + place * Fraction(v)
        for at, place, v in zip(t.tolist(), x, h.tolist(), strict=True)
    ]


def _samples(pld: Pld, accuracy: float) -> tuple[Floats, Floats, Floats, list[Fraction]]:
    """Enough points `t`, with the curve there: `h(e^t)` for `t >= 0`, else `h_rev(e^-t)`.

    Enough means that chord and hanging point differ by at most `accuracy` in each cell. The
    last list holds `x`, within rounding of `e^t`; the enclosures allow for that.
    """
    width = min(1e-3, accuracy)
    right, left = (partial(one._evaluator.right, accuracy=width) for one in (pld, pld.reverse()))

    def enough(gap: Floats, noise: Floats, _s: Floats, _high: Floats) -> NDArray[np.bool_]:
        return (gap <= accuracy) | (gap <= 4.0 * noise)

    return refined(Profile(right, left).at, _starting_points(pld), enough)


def refined(
    curve: Callable[[Floats], tuple[Floats, Floats]],
    t: Floats,
    enough: Callable[[Floats, Floats, Floats, Floats], NDArray[np.bool_]],
) -> tuple[Floats, Floats, Floats, list[Fraction]]:
    """Samples `t`, enclosures there and `x` (within rounding of `e^t`), dense enough.

    `curve` encloses `h(e^t)` for `t >= 0` and `h_rev(e^-t)` below. A cell is split unless
    `enough(gap, noise, s, high)`: the height between chord and hanging point, the width of the
    enclosures, the distance `|t|` and the upper heights of the samples.
    """
    lo, hi = curve(t)
    for _ in range(MOST_STEPS):
        work(60.0 * t.size)
        split = []
        for side, sign in ((t >= 0.0, 1), (t <= 0.0, -1)):
            s, low, high = (sign * t[side])[::sign], lo[side][::sign], hi[side][::sign]
            if s.size < 3:
                continue
            bounds = convexity_bounds.lower_cells(s, low, high)
            w, lowest = bounds.bottom()
            # On the left the reversed curve counts x = e^-s times.
            scale = 1.0 if sign > 0 else np.exp(-s[:-1])
            gap = (convexity_bounds.chord(high, bounds.width, w) - lowest) * scale
            noise = ((high - low)[:-1] + (high - low)[1:]) * scale
            wide = np.flatnonzero(~enough(gap, noise, s, high))
            split.append(sign * 0.5 * (s[wide] + s[wide + 1]))
        new = np.setdiff1d(np.concatenate(split), t) if split else np.empty(0)
        if new.size == 0 or t.size + new.size > 2 * MANY:
            break
        new_lo, new_hi = curve(new)
        order = np.argsort(np.concatenate([t, new]), kind="stable")
        t = np.concatenate([t, new])[order]
        lo = np.concatenate([lo, new_lo])[order]
        hi = np.concatenate([hi, new_hi])[order]
    return t, lo, hi, [Fraction(v) for v in np.exp(t).tolist()]


def _starting_points(pld: Pld) -> Floats:
    """Kinks of a finite PLD, or an even net over the range where the curve is alive."""
    evaluator = pld._evaluator
    if pld.gaussian is None and evaluator._table_size <= MANY:
        ends = [-_beyond(pld.reverse()), _beyond(pld)]
        return np.unique(np.concatenate([evaluator._table.z, ends, [0.0]]))
    ends = []
    for side in (pld.reverse(), pld):
        far = _beyond(side) if np.isfinite(side._evaluator._top) else side._evaluator.reach(_DEPTH)
        ends.append(min(far, EXP_RANGE))
    return np.unique(
        np.concatenate([np.linspace(-ends[0], 0.0, _NET), np.linspace(0.0, ends[1], _NET)])
    )


def _beyond(pld: Pld) -> float:
    """A little more than the largest loss: there the curve has come down for certain."""
    return pld._evaluator._top * (1.0 + 1e-9) + 1e-12


# -- polygons -------------------------------------------------------------------------------


def region_above(
    x: list[Fraction],
    v: list[Fraction],
    exactly: bool,
    tolerance: float | None,
    q_total: Fraction | None = None,
) -> ExactAtoms:
    """The finite PLD whose curve runs through `(x, v)`, convexified; exact, or rounded up.

    Points that stick out above the lower convex envelope by more than `tolerance` are an
    error. `q_total` is `Q`'s mass on finite losses (rounded down) if all of them lie at or
    above `ln x[0]`; otherwise the first slope says it.
    """
    x, v = [Fraction(0), *x], [Fraction(1), *v]
    work(4000.0 * len(x), 1000.0 * len(x))
    kept = convexity_bounds.lower_hull(x, v)
    if tolerance is not None:
        v = _lifted(v, _overhang(x, v, kept, tolerance))
    points = []
    for a, b in pairwise(kept):
        # Lines P = v + xQ of neighbouring points meet at Q = slope.
        slope = (v[a] - v[b]) / (x[b] - x[a])
        if a == 0 and b == 1 and q_total is not None:
            points.append((q_total, Fraction(1)))
        else:
            points.append((slope, v[a] + x[a] * slope))
    points.append((Fraction(0), v[kept[-1]]))
    if exactly:
        return from_rational_vertices(points)
    return rounded_region(points, "above")


def region_below(
    x: list[Fraction], v: list[Fraction], at_infinity: Fraction, q_total: Fraction
) -> ExactAtoms:
    """The finite PLD whose curve runs below `(x, v)`, convexified and rounded down.

    `at_infinity` is `P`'s mass at `+inf`, rounded down; `q_total` is `Q`'s mass on finite
    losses, rounded up: the region's two ends.
    """
    first = [True, *(b > a for a, b in pairwise(x))]
    x = [Fraction(0), *(a for a, new in zip(x, first, strict=True) if new)]
    v = [Fraction(1), *(a for a, new in zip(v, first, strict=True) if new)]
    v = list(accumulate(v, min))
    work(4000.0 * len(x), 1000.0 * len(x))
    kept = convexity_bounds.lower_hull(x, v)
    points = [(Fraction(0), at_infinity), (q_total, Fraction(1))]
    for a, b in pairwise(kept[1:]):
        slope = (v[a] - v[b]) / (x[b] - x[a])
        # A flat end would claim its height for all larger x; the curve may still fall. (Nor
        # may the chord from x = 0 count: it lies above the curve.)
        if slope > 0:
            points.append((slope, v[a] + x[a] * slope))
    return rounded_region(points, "below")


def _overhang(x: list[Fraction], v: list[Fraction], kept: list[int], tolerance: float) -> Fraction:
    """How far points stick out above the hull (rounding apart), relative to its distance from 1."""
    worst = Fraction(0)
    for a, b in pairwise(kept):
        for i in range(a + 1, b):
            hull = v[a] + (v[b] - v[a]) * (x[i] - x[a]) / (x[b] - x[a])
            gap = float(v[i] - hull)
            checks.require(gap <= tolerance, "values", "convex in xs", f"a point {gap!r} off")
            if gap > 4.0 * U * float(v[i]):
                worst = max(worst, (v[i] - hull) / (1 - hull))
    checks.require(worst <= 1e-6, "values", "convex in xs", f"a lift of {float(worst)!r} needed")
    return worst


def _lifted(v: list[Fraction], share: Fraction) -> list[Fraction]:
    """The curve with that share of its mass moved to infinity: convex, and above every point."""
    return [(1 - share) * height + share for height in v] if share else v


Curve = Callable[[Floats, float], tuple[Floats, Floats]]

_DEEP = 1e-12
"""Below this height the accuracy asked for relaxes with the depth."""
_NOTHING = 1e-40
"""Where a profile has come down to this it is not followed any further."""
_NET = 129
"""Even points on either side to begin with."""


@dataclass(frozen=True)
class Profile:
    """Enclosures of the curve (`right`) and of the reversed curve (`left`) at `t >= 0`."""

    right: Curve
    left: Curve
    at_infinity: tuple[float, float] = (0.0, 0.0)
    """Lower bounds on `P`'s mass at `+inf` and on `Q`'s at `-inf`."""

    def at(self, t: Floats) -> tuple[Floats, Floats]:
        """Enclosure near `e^t`, as floats have it: of the reversed curve where `t < 0`."""
        lo, hi = np.empty(t.size), np.empty(t.size)
        for half, one in ((t >= 0.0, self.right), (t < 0.0, self.left)):
            if half.any():
                lo[half], hi[half] = one(np.abs(t[half]), (EXP_ULPS + 2.0) * U)
        return np.clip(lo, 0.0, 1.0), np.clip(hi, 0.0, 1.0)

    def mirrored(self) -> Profile:
        """The profile of the reversal."""
        return Profile(self.left, self.right, self.at_infinity[::-1])


def finite(profile: Profile, accuracy: float, side: Side) -> Pld:
    """A finite PLD above (dominating) or below the profile, within `accuracy` in `eps`."""

    def enough(gap: Floats, noise: Floats, s: Floats, high: Floats) -> NDArray[np.bool_]:
        fall = np.maximum(high[:-1] - high[1:], 0.0) / np.diff(s)
        depth = np.log(np.maximum(high[:-1], _NOTHING) / _DEEP)
        relaxed = accuracy * (1.0 + np.minimum(depth, 0.0) ** 2)
        return (gap <= relaxed * fall) | (gap <= 4.0 * noise) | (high[:-1] <= _NOTHING)

    ends = [_end(profile.left), _end(profile.right)]
    net = [np.linspace(0.0, end, _NET) for end in ends]
    start = np.unique(np.concatenate([-net[0], net[1]]))
    t, lo, hi, x = refined(profile.at, start, enough)
    if side == "above":
        return from_exact(region_above(x, heights_at(t, x, hi), False, None))
    floor, missing = (Fraction(v) for v in profile.at_infinity)
    return from_exact(convex_minorant_points(t, lo, hi, x, floor, 1 - missing))


def _end(curve: Curve) -> float:
    """Where the curve has come down to its last value, give or take nothing."""
    last = float(curve(np.array([EXP_RANGE]), 0.0)[1][0])
    low, high = 0.0, EXP_RANGE
    for _ in range(60):
        middle = 0.5 * (low + high)
        height = float(curve(np.array([middle]), 0.0)[1][0])
        done = height <= last * (1.0 + 1e-12) + _NOTHING
        low, high = (low, middle) if done else (middle, high)
        if high - low <= 1e-9 * high:
            break
    return min(high * (1.0 + 1e-9) + 1e-12, EXP_RANGE)
