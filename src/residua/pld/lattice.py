"""Supremum and infimum: the Blackwell order is a complete lattice.

In testing regions (vertices `(Q(Z > z), P(Z > z))`, concave) the supremum is the convex
hull of the union and the infimum the intersection. Both are exact for finite rational
PLDs: the vertices of a hull are vertices of the members, so no digits are added; an
intersection adds crossing points, which are rationals too.

Members that another one provably dominates are dropped first, so `gaussian(mu=1) |
gaussian(mu=2)` is `gaussian(mu=2)` itself. Only what remains is written out, from above for
a supremum and from below for an infimum, to the requested accuracy in `h`.

Blackwell's theorem made explicit: a Markov kernel that turns `M` into `L`.

`L ⪯ M` iff some kernel maps the pair of `M` to the pair of `L`. For finite PLDs that is a
linear feasibility problem; the kernel found is checked by multiplying it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import reduce
from math import lcm
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError, ResiduaError
from residua.pld.arithmetic import MANY
from residua.pld.arithmetic.exact import (
    ExactAtoms,
    from_rational_vertices,
    from_vertices,
    upper_hull,
)
from residua.pld.constructors import TOLERANCE, from_exact
from residua.pld.discretise.finite import above, below
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld, query
from residua.work_limit import work

DEFAULT_ACCURACY = 1e-5
"""How far a supremum or infimum may be off in height, where a member is not rational."""


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
    points = _scaled(a, q_den, p_den) + _scaled(b, q_den, p_den)
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


def _scaled(exact: ExactAtoms, q_den: int, p_den: int) -> list[tuple[int, int]]:
    """Vertices `(Q, P)`, left to right, over the given denominators."""
    q_times, p_times = q_den // exact.q_den, p_den // exact.p_den
    tails = zip(exact.q_tails, exact.p_tails, strict=True)
    return [(q * q_times, p * p_times) for q, p in tails][::-1]


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
        raise ArgumentError("plds must contain at least one Pld, got []")
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


def kernel(low: Pld, high: Pld) -> Floats:
    """A row-stochastic matrix `k` with `P_M k = P_L` and `Q_M k = Q_L` (within 1e-9).

    Rows are the outcomes of `high.pair()`, columns those of `low.pair()`. Raises
    `ArgumentError` unless both are finite and `low ⪯ high` is not refuted.
    """
    query("low", low)._require_finite("kernel")
    query("high", high)._require_finite("kernel")
    answer = dominated(low, high)
    if answer.witness is not None:
        raise ArgumentError(
            f"low must be dominated by high, got a witness x={answer.witness.x!r} "
            f"with gap {answer.witness.gap!r}"
        )
    p, q = high.pair()
    p_low, q_low = low.pair()
    rows, columns = p.size, p_low.size
    if rows * columns > 16 * MANY:
        raise ArgumentError(f"kernel needs at most {16 * MANY} entries, got {rows} x {columns}")
    found = _solve(p, q, p_low, q_low)
    found = np.clip(found, 0.0, None)
    found /= found.sum(axis=1, keepdims=True)
    miss = max(np.max(np.abs(p @ found - p_low)), np.max(np.abs(q @ found - q_low)))
    if not miss <= TOLERANCE:
        raise ResiduaError(f"no kernel within {TOLERANCE:g}: the best one misses by {miss:.3g}")
    return found


def _solve(p: Floats, q: Floats, p_low: Floats, q_low: Floats) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import block_array, eye_array, kron, vstack

    rows, columns = p.size, p_low.size
    work(5000.0 * rows * columns, 1000.0 * rows * columns)
    # Minimise the miss |mass k - wanted| instead of demanding equality: floats never sum exactly.
    images = vstack([kron(p[None], eye_array(columns)), kron(q[None], eye_array(columns))])
    slack = eye_array(2 * columns)
    stochastic = kron(eye_array(rows), np.ones((1, columns)))
    system: Any = block_array([[stochastic, None, None], [images, slack, -slack]], format="csr")
    n = rows * columns
    cost = np.concatenate([np.zeros(n), np.ones(4 * columns)])
    result = linprog(
        cost,
        A_eq=system,
        b_eq=np.concatenate([np.ones(rows), p_low, q_low]),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not result.success or result.x is None:
        raise ResiduaError(f"the linear program failed: {result.message}")
    return np.asarray(result.x[:n]).reshape(rows, columns)
