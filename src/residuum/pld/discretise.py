"""Finite PLDs above and below a given one.

`above(L, accuracy)` dominates `L`, `below(L, accuracy)` is dominated by it, and their
hockey-stick curves are within `accuracy` of that of `L`. Both come from samples of the curve:

* above: connect the dots. The piecewise-linear curve through upper bounds of `h(x_i)` is
  above `h`; what lies beyond the last point becomes mass at infinity, and before the first
  point mass at minus infinity.
* below: the lowest points that convexity allows between samples (`cells.py`), connected.

Either is a polygon of tangent lines to the testing region; its vertices are rounded away
from (towards) the region to dyadic rationals, so the result is an exact finite PLD and the
side of the bound survives every rounding.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np

from residuum import checks
from residuum.bounds import Floats
from residuum.errors import ArgumentError
from residuum.pld import cells
from residuum.pld.atoms import Atoms, atoms_from_exact, atoms_from_floats
from residuum.pld.exact import ExactAtoms, from_vertices, integers, upper_hull
from residuum.pld.special import U
from residuum.pld.value import Pld

_WRITTEN_OUT = 1 << 20
_EXACT = 1 << 16
_POINTS = 1 << 15
_DEPTH = 1e-20
"""Tails are followed to this height of the curve."""


def written_out(pld: Pld) -> Atoms:
    """The atoms of a finite PLD: exact for rational atoms, else rounded to nearest."""
    evaluator = pld._evaluator
    if evaluator._single_atoms is not None:
        return evaluator._single_atoms
    exact = exact_atoms(pld)
    if exact is not None:
        return atoms_from_exact(exact)
    if evaluator._table_size > _WRITTEN_OUT:
        raise ArgumentError(f"too many atoms to write out ({evaluator._table_size:.3g}): {pld!r}")
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
    if pld._evaluator._table_size > _EXACT:
        return None
    whole = ExactAtoms((1,), (1,), 1, 1)
    return reduce(ExactAtoms.compose, (f.exact for f, n in parts for _ in range(n)), whole)


def above(pld: Pld, accuracy: float) -> ExactAtoms:
    """A finite PLD that dominates `pld`."""
    exact = exact_atoms(pld)
    if exact is not None:
        return exact
    t, _, hi = _samples(pld, accuracy)
    bounded = bool(-t[0] >= pld.reverse()._evaluator._top)
    total = 1.0 - pld.mass_at_minus_infinity if bounded else None
    return region_above(np.exp(t), hi, np.inf, total)


def below(pld: Pld, accuracy: float) -> ExactAtoms:
    """A finite PLD dominated by `pld`."""
    exact = exact_atoms(pld)
    if exact is not None:
        return exact
    t, lo, hi = _samples(pld, accuracy)
    bounds = cells.lower_cells(t, lo, hi)
    w, lowest = bounds.bottom()
    x = np.exp(t)
    hanging = x[:-1] * (1.0 + w)
    order = np.argsort(np.concatenate([x, hanging]), kind="stable")
    places = np.concatenate([x, hanging])[order]
    # The curve is at least 1 - x, and after the last sample at least its mass at infinity.
    floor = float(pld.mass_at_infinity_bounds.lo)
    heights = np.maximum(np.concatenate([lo, lowest])[order], floor)
    heights = np.maximum(heights, 1.0 - places)
    total = min(1.0, float(np.nextafter(1.0 - float(pld.mass_at_minus_infinity_bounds.lo), 2.0)))
    return region_below(places, heights, floor, total)


def _samples(pld: Pld, accuracy: float) -> tuple[Floats, Floats, Floats]:
    """Enough points `t = ln x` that chord and lines are within `accuracy`, with the curve there."""
    accuracy = checks.positive("accuracy", accuracy)
    width = min(1e-3, accuracy)

    def curve(t: Floats) -> tuple[Floats, Floats]:
        bounds = pld._evaluator.at_log_x(t, 0.0, width)
        return np.asarray(bounds.lo), np.asarray(bounds.hi)

    t = _starting_points(pld)
    lo, hi = curve(t)
    for _ in range(30):
        bounds = cells.lower_cells(t, lo, hi)
        w, lowest = bounds.bottom()
        gap = cells.chord(hi, bounds.width, w) - lowest
        noise = np.maximum(hi - lo, 0.0)
        split = np.flatnonzero((gap > accuracy) & (gap > 4.0 * (noise[:-1] + noise[1:])))
        middle = 0.5 * (t[split] + t[split + 1])
        middle = middle[(middle > t[split]) & (middle < t[split + 1])]
        if middle.size == 0 or t.size + middle.size > _POINTS:
            break
        new_lo, new_hi = curve(middle)
        order = np.argsort(np.concatenate([t, middle]), kind="stable")
        t = np.concatenate([t, middle])[order]
        lo = np.concatenate([lo, new_lo])[order]
        hi = np.concatenate([hi, new_hi])[order]
    return t, lo, hi


def _starting_points(pld: Pld) -> Floats:
    """Kinks of a finite PLD, or an even net over the range where the curve is alive."""
    evaluator = pld._evaluator
    if pld.gaussian is None and evaluator._table_size <= _POINTS / 2:
        ends = [-pld.reverse()._evaluator._top, evaluator._top]
        return np.unique(np.concatenate([evaluator._table.z, ends]))
    ends = []
    for side in (pld.reverse(), pld):
        top = side._evaluator._top
        if not np.isfinite(top):
            top = side._evaluator.reach(_DEPTH)
        ends.append(min(top, 690.0))
    return np.unique(
        np.concatenate([np.linspace(-ends[0], 0.0, 129), np.linspace(0.0, ends[1], 129)])
    )


# -- polygons -------------------------------------------------------------------------------


def region_above(
    x: Floats, v: Floats, tolerance: float, q_total: float | None = None
) -> ExactAtoms:
    """The finite PLD whose curve runs through `(x, v)`, convexified and rounded up.

    Points that stick out above the lower convex envelope by more than `tolerance` are an
    error. `q_total` is `Q`'s mass on finite losses (rounded down) if all of them lie at or
    above `ln x[0]`; otherwise the first slope says it.
    """
    x, v = np.concatenate([[0.0], x]), np.concatenate([[1.0], np.minimum(v, 1.0)])
    v = np.minimum.accumulate(np.maximum(v, 1.0 - x))
    kept = _lower_hull(x, v)
    worst = float(np.max(v - np.interp(x, x[kept], v[kept])))
    checks.require(worst <= tolerance, "values", "convex in xs", f"a point {worst!r} off")
    x, v = x[kept], v[kept]
    # Lines P = v_i + x_i Q; neighbouring ones meet at Q = slope.
    slope = np.clip((v[:-1] - v[1:]) / np.diff(x), 0.0, 1.0)
    p = np.maximum(v[:-1] + slope * x[:-1], v[1:] + slope * x[1:])
    p = np.minimum(p * (1.0 + 16.0 * U), 1.0)
    q = slope * (1.0 - 16.0 * U)
    if q_total is not None and kept[1] == 1:
        q[0], p[0] = q_total, 1.0
    elif slope[0] >= 1.0:
        q[0], p[0] = 1.0, 1.0
    return _polygon(np.append(q, 0.0), np.append(p, v[-1]))


def region_below(x: Floats, v: Floats, at_infinity: float, q_total: float) -> ExactAtoms:
    """The finite PLD whose curve runs below `(x, v)`, convexified and rounded down.

    `at_infinity` is `P`'s mass at `+inf`, rounded down; `q_total` is `Q`'s mass on finite
    losses, rounded up: the region's two ends.
    """
    x, v = np.concatenate([[0.0], x]), np.concatenate([[1.0], v])
    first = np.concatenate([[True], np.diff(x) > 0.0])
    x, v = x[first], np.minimum.accumulate(v)[first]
    kept = _lower_hull(x, v)
    x, v = x[kept], v[kept]
    slope = np.clip((v[:-1] - v[1:]) / np.diff(x), 0.0, 1.0)
    p = np.minimum(v[:-1] + slope * x[:-1], v[1:] + slope * x[1:]) * (1.0 - 64.0 * U)
    q = np.minimum(slope * (1.0 + 64.0 * U), 1.0)
    # The diagonal P = Q belongs to every region.
    p = np.maximum(p, q)
    return _polygon(np.append(q, [0.0, q_total]), np.append(p, [at_infinity, 1.0]))


def _polygon(q: Floats, p: Floats) -> ExactAtoms:
    """The exact PLD of the concave hull of testing-region points."""
    ints, _ = integers(np.concatenate([q, p, [1.0]]))
    one = ints[-1]
    hull = upper_hull(sorted(zip(ints[: q.size], ints[q.size : -1], strict=True)))
    # The region is flat after its highest vertex, which must be at P = 1.
    while len(hull) > 1 and hull[-2][1] >= hull[-1][1]:
        hull.pop()
    if hull[-1][1] != one:
        hull.append((one, one))
    return from_vertices(hull, one, one)


def _lower_hull(x: Floats, v: Floats) -> np.ndarray:
    """Indices of the lower convex hull of points with increasing `x` (floats; any subset is sound).

    Dropping points of a convex curve only raises the chord, so rounding here costs tightness
    at most; points above the hull are the ones dropped.
    """
    kept: list[int] = []
    xs, vs = x.tolist(), v.tolist()
    for i in range(len(xs)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (vs[b] - vs[a]) * (xs[i] - xs[b]) < (vs[i] - vs[b]) * (xs[b] - xs[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)
