"""Supremum and infimum: the Blackwell order is a complete lattice.

In testing regions (vertices `(Q(Z > z), P(Z > z))`, concave) the supremum is the convex
hull of the union and the infimum the intersection. Both are exact for finite rational
PLDs: the vertices of a hull are vertices of the members, so no digits are added; an
intersection adds crossing points, which are rationals too.

Members that another one provably dominates are dropped first, so `gaussian(mu=1) |
gaussian(mu=2)` is `gaussian(mu=2)` itself. Only what remains is written out, from above for
a supremum and from below for an infimum, to the requested accuracy in `h`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from math import lcm

import numpy as np

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.pld.arithmetic.exact import (
    ExactAtoms,
    floats,
    from_rational_vertices,
    from_vertices,
    upper_hull,
)
from residua.pld.constructors import from_exact
from residua.pld.discretise.finite import above, below
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld, query
from residua.work_limit import work

DEFAULT_ACCURACY = 1e-5
_MARGIN = 1e-12


def supremum(plds: Iterable[Pld], accuracy: float = DEFAULT_ACCURACY) -> Pld:
    """The least PLD above all members; exact for finite rational ones, else rounded up.

    `accuracy` bounds how far the curve may lie above the exact supremum where a member is
    smooth or irrational, up to a few times 1e-6 of its height.
    """
    members = _members(plds)
    accuracy = checks.between("accuracy", accuracy, 1e-6, 1.0)
    kept = _prune(members, lambda a, b: dominated(a, b).proven)
    if len(kept) == 1:
        return kept[0]
    return from_exact(reduce(exact_supremum, (above(m, accuracy) for m in kept)))


def infimum(plds: Iterable[Pld], accuracy: float = DEFAULT_ACCURACY) -> Pld:
    """The greatest PLD below all members; exact for finite rational ones, else rounded down.

    `accuracy` as for `supremum`.
    """
    members = _members(plds)
    accuracy = checks.between("accuracy", accuracy, 1e-6, 1.0)
    kept = _prune(members, lambda a, b: dominated(b, a).proven)
    if len(kept) == 1:
        return kept[0]
    return from_exact(reduce(exact_infimum, (below(m, accuracy) for m in kept)))


def exact_supremum(a: ExactAtoms, b: ExactAtoms) -> ExactAtoms:
    """The convex hull of two testing regions."""
    p_den, q_den = lcm(a.p_den, b.p_den), lcm(a.q_den, b.q_den)
    work(200.0 * (len(a) + len(b)))
    from_a, from_b = _outside(a, b)
    points = _scaled(a, q_den, p_den, from_a) + _scaled(b, q_den, p_den, from_b)
    hull = upper_hull(sorted(points))
    return from_vertices(hull, q_den, p_den)


def exact_infimum(a: ExactAtoms, b: ExactAtoms) -> ExactAtoms:
    """The intersection of two testing regions."""
    p_den, q_den = lcm(a.p_den, b.p_den), lcm(a.q_den, b.q_den)
    work(2000.0 * (len(a) + len(b)))
    left, right = _scaled(a, q_den, p_den), _scaled(b, q_den, p_den)
    edge_a, edge_b = _Edges(left, q_den, p_den), _Edges(right, q_den, p_den)
    stops = sorted({q for q, _ in left} | {q for q, _ in right} | {q_den})
    points: list[tuple[Fraction, Fraction]] = []
    previous: tuple[int, Fraction, Fraction] | None = None
    for q in stops:
        height_a, height_b = edge_a(q), edge_b(q)
        if previous is not None:
            q0, a0, b0 = previous
            if (a0 - b0) * (height_a - height_b) < 0:
                share = (b0 - a0) / ((height_a - a0) - (height_b - b0))
                points.append((q0 + share * (q - q0), a0 + share * (height_a - a0)))
        points.append((Fraction(q), min(height_a, height_b)))
        previous = (q, height_a, height_b)
    return from_rational_vertices([(q / q_den, p / p_den) for q, p in points])


class _Edges:
    """Height of a concave polygon at increasing `q`; after its last vertex it is flat."""

    def __init__(self, points: list[tuple[int, int]], q_den: int, p_den: int):
        self.points = [*points, (q_den, p_den)]
        self.at = 0

    def __call__(self, q: int) -> Fraction:
        while self.at < len(self.points) - 2 and self.points[self.at + 1][0] <= q:
            self.at += 1
        (q0, p0), (q1, p1) = self.points[self.at], self.points[self.at + 1]
        if q1 == q0:
            return Fraction(p1)
        return p0 + Fraction((p1 - p0) * (q - q0), q1 - q0)


def _scaled(
    exact: ExactAtoms, q_den: int, p_den: int, kept: list[int] | None = None
) -> list[tuple[int, int]]:
    """Vertices `(Q, P)`, left to right, over the given denominators; only those `kept` if given."""
    q_times, p_times = q_den // exact.q_den, p_den // exact.p_den
    q_tails, p_tails = exact.q_tails[::-1], exact.p_tails[::-1]
    wanted = range(len(q_tails)) if kept is None else kept
    return [(q_tails[i] * q_times, p_tails[i] * p_times) for i in wanted]


def _outside(a: ExactAtoms, b: ExactAtoms) -> tuple[list[int], list[int]]:
    """Which vertices of each are not certainly inside the other's region.

    Interpolated in floats: the height of a concave polygon through points of the unit square,
    each rounded, is good to a few units in the last place, far within the margin.
    """
    corners = [
        (floats(exact.q_tails[::-1], exact.q_den), floats(exact.p_tails[::-1], exact.p_den))
        for exact in (a, b)
    ]
    kept = []
    for (q, p), (other_q, other_p) in (corners, corners[::-1]):
        inside = p < np.interp(q, other_q, other_p) - _MARGIN
        inside[0] = inside[-1] = False
        kept.append(np.flatnonzero(~inside).tolist())
    return kept[0], kept[1]


def _members(plds: Iterable[Pld]) -> list[Pld]:
    try:
        members = [query(f"plds[{i}]", pld) for i, pld in enumerate(plds)]
    except TypeError as error:
        if isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentTypeError(
            f"plds must be a sequence of Pld, got {checks.shown(plds)}"
        ) from None
    if not members:
        raise ArgumentError("plds must hold at least one Pld, got []")
    return members


def _prune(members: list[Pld], covered: Callable[[Pld, Pld], bool]) -> list[Pld]:
    """Drop every member that another one covers; of equals, the first stays."""
    kept: list[Pld] = []
    for member in members:
        if any(covered(member, other) for other in kept):
            continue
        kept = [other for other in kept if not covered(other, member)]
        kept.append(member)
    return kept
