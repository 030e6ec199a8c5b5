"""Group privacy: two steps from `P` to `Q` through a data set in the middle.

If every test obeys `P(S) <= F(C(S))` and `C(S) <= G(Q(S))`, then `P(S) <= F(G(Q(S)))`; `F` and `G`
are the upper boundaries of the two testing regions (Dong, Roth and Su 2022, theorem 2.14). Both
are concave and increasing, so their composition is the boundary of a testing region again. For
finite PLDs it is a polygon, worked out in rationals and rounded outward to 2^-400.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise

from residua.pld.arithmetic.exact import ExactAtoms, region
from residua.work_limit import work

_GRID_BITS = 400

Vertices = list[tuple[Fraction, Fraction]]


def two_steps(first: ExactAtoms, second: ExactAtoms) -> ExactAtoms:
    """A PLD above every pair `(P, Q)` with `(P, C)` below `first` and `(C, Q)` below `second`."""
    work(5000.0 * (len(first) + len(second)))
    outer, inner = _boundary(first), _boundary(second)
    starts = [q for q, _ in outer]
    points: Vertices = []
    for (q, c), (q_next, c_next) in pairwise(inner):
        points.append((q, _at(outer, starts, c)))
        # Where the inner boundary passes a vertex of the outer one.
        for corner, height in outer[bisect_right(starts, c) : bisect_left(starts, c_next)]:
            points.append((q + (corner - c) * (q_next - q) / (c_next - c), height))
    points.append((inner[-1][0], _at(outer, starts, inner[-1][1])))
    grid = 1 << _GRID_BITS
    whole = [
        (q.numerator * grid // q.denominator, -(-p.numerator * grid // p.denominator))
        for q, p in points
    ]
    return region([(q, min(p, grid)) for q, p in whole], grid, grid)


def _boundary(exact: ExactAtoms) -> Vertices:
    """The upper boundary of the testing region, from `Q = 0` to `Q = 1`."""
    vertices = exact.vertices()
    if vertices[-1][0] < 1:
        vertices.append((Fraction(1), Fraction(1)))
    return vertices


def _at(vertices: Vertices, starts: list[Fraction], q: Fraction) -> Fraction:
    i = max(bisect_right(starts, q) - 1, 0)
    (q0, p0), (q1, p1) = vertices[i], vertices[min(i + 1, len(vertices) - 1)]
    return p0 if q1 == q0 else p0 + (p1 - p0) * (q - q0) / (q1 - q0)
