"""Amplification by sampling: the curve of a sampled mechanism from that of the whole one.

A record is sampled at rate `q`; `(A, C)` is the pair with and without it when it is sampled.

* Poisson, add-remove: `P = (1-q) C + q A` against `Q = C`, and its reversal (`gaussian_mixture.py`,
  Balle, Barthe and Gaboardi 2018, theorem 2; Zhu, Dong and Wang 2022, theorem 11).
* Without replacement, replace-one: for `x >= 1` the first of these with the pair of a replaced
  record, and the same for the reversal (Zhu, Dong and Wang 2022, theorem 11): a supremum of two
  pairs, symmetric if the inner one is.
* Poisson, replace-one: `(1-q) C + q A` against `(1-q) C + q B`. In two steps through `C`
  (below), and where the pair `(A, B)` is known too, with `x' = 1 + (x-1)/q` and `β =
  x/x'` the curve is `q H_{x'}(A, (1-β) C + β B)` (the same theorem 2), by convexity at most `q
  ((1-β) h_{A,C}(x') + β h_{A,B}(x'))`. The infimum of the two bounds is a bound.

Rates are exact floats. What is finite stays exact; the rest are profiles.

Group privacy: two steps from `P` to `Q` through a data set in the middle.

If every test obeys `P(S) <= F(C(S))` and `C(S) <= G(Q(S))`, then `P(S) <= F(G(Q(S)))`; `F` and `G`
are the upper boundaries of the two testing regions (Dong, Roth and Su 2022, theorem 2.14). Both
are concave and increasing, so their composition is the boundary of a testing region again. For
finite PLDs it is a polygon, worked out in rationals and rounded outward to 2^-400.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np

from residua.bounds import Floats, Interval
from residua.errors import ArgumentError
from residua.pld.arithmetic import FEW
from residua.pld.arithmetic.exact import (
    EXACT_IDENTITY,
    ExactAtoms,
    Side,
    from_masses,
    response,
    rounded_region,
)
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.pld.constructors import LEAST_RATE, from_exact, identity
from residua.pld.discretise.finite import Profile, above, exact_atoms, finite
from residua.pld.families.gaussian_mixture import Curve, inner_argument, sampled, sampled_reversed
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.lattice import infimum
from residua.pld.pld import ACCURACY, Pld
from residua.work_limit import work

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
    return rounded_region(points, "above")


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


_COARSEST = 1e-2
"""The coarsest accuracy at which a pair is made finite to have few atoms."""


def poisson(inner: Pld, rate: float, direction: str, accuracy: float, side: Side) -> Pld:
    """Poisson sampling under add-remove; `inner` is the pair (with, without) in this direction.

    `remove`: `inner = (A, C)`; `add`: `inner = (C, A)`. Exact for a finite `inner`.
    """
    rate = _carried(rate, side)
    if rate == 0.0:
        return identity()
    if rate == 1.0:
        return inner
    forward = inner if direction == "remove" else inner.reverse()
    exact = _written_out(forward, side)
    if exact is not None:
        made = from_exact(_sampled_exactly(exact, Fraction(rate)))
        return made if direction == "remove" else made.reverse()
    profile = Profile(
        partial(sampled, _curve(forward), rate),
        partial(sampled_reversed, _curve(forward.reverse()), rate),
        (_part(rate, forward.mass_at_infinity_bounds), 0.0),
    )
    profile = profile if direction == "remove" else profile.mirrored()
    return finite(profile, accuracy, side)


def without_replacement(inner: Pld, rate: float, accuracy: float, side: Side) -> Pld:
    """Sampling without replacement under replace-one; `inner` is the pair of a replacement."""
    rate = _carried(rate, side)
    if rate == 0.0:
        return identity()
    if rate == 1.0:
        return inner
    ends = inner.mass_at_infinity_bounds, inner.mass_at_minus_infinity_bounds
    profile = Profile(
        partial(sampled, _curve(inner), rate),
        partial(sampled, _curve(inner.reverse()), rate),
        (_part(rate, ends[0]), _part(rate, ends[1])),
    )
    return finite(profile, accuracy, side)


def poisson_replaced(
    remove: Pld, add: Pld, replaced: Pld | None, rate: float, accuracy: float, side: Side
) -> Pld:
    """Poisson sampling under replace-one: an upper bound, not known to be attained.

    `remove` and `add` are the pairs (with, without) and (without, with), `replaced` that of one
    record against another, symmetric, if it is known. Below, one record is left out instead.
    """
    rate = _carried(rate, side)
    if rate == 0.0:
        return identity()
    if rate == 1.0 and replaced is not None:
        return replaced
    if side == "below":
        return poisson(remove, rate, "remove", accuracy, side)
    steps = [
        _short(remove, rate, "remove", accuracy, replaced is None),
        _short(add, rate, "add", accuracy, replaced is None),
    ]
    short = [exact for exact in steps if exact is not None]
    bounds = [from_exact(two_steps(*short))] if len(short) == 2 else []
    if replaced is not None:
        bounds.append(_jointly_convex(remove, replaced, rate, accuracy))
    if not bounds:
        raise ArgumentError(
            "relation must be add-remove or zero-out for this sampled mechanism: no bound under "
            f"replace-one is known for {remove!r}"
        )
    return infimum(bounds)


def _carried(rate: float, side: Side) -> float:
    """The curve increases in the rate: a tiny one is rounded up, or down to 0."""
    if 0.0 < rate < LEAST_RATE:
        return LEAST_RATE if side == "above" else 0.0
    return rate


def _short(
    inner: Pld, rate: float, direction: str, accuracy: float, needed: bool
) -> ExactAtoms | None:
    """The sampled pair above, with few atoms: where it is `needed`, coarser until they are few."""
    while True:
        made = poisson(inner, rate, direction, accuracy, "above")
        exact = _written_out(made, "above") if made.is_finite else above(made, accuracy)
        if exact is not None or not needed or accuracy > _COARSEST:
            return exact
        accuracy *= 8.0


def _jointly_convex(present: Pld, replaced: Pld, rate: float, accuracy: float) -> Pld:
    """The bound of advanced joint convexity, for symmetric pairs."""

    def curve(t: Floats, dt: float) -> tuple[Floats, Floats]:
        inner, inner_error = inner_argument(t, np.full(t.shape, dt), rate)
        share = np.exp(t - inner) * (1.0 + 2.0 * (EXP_ULPS + 4.0) * U + dt + inner_error)
        _, near = _curve(present)(inner, inner_error)
        _, far = _curve(replaced)(inner, inner_error)
        # far >= near, so the share rounded up is the safe side.
        share = np.minimum(share, 1.0)
        top = rate * (near + share * np.maximum(far - near, 0.0)) * (1.0 + 16.0 * U)
        return np.zeros(t.shape), np.asarray(top + TINY * (top > 0.0))

    return finite(Profile(curve, curve), accuracy, "above")


# -- finite ---------------------------------------------------------------------------------


def _written_out(pld: Pld, side: Side) -> ExactAtoms | None:
    """The atoms in rationals (responses rounded to the side), unless they are too many."""
    if pld.is_infinite:
        return ExactAtoms((), (), 1, 1)
    if not pld.is_finite or pld._evaluator._table_size > 8 * FEW:
        return None
    exact = exact_atoms(pld)
    if exact is not None:
        return exact
    exact = EXACT_IDENTITY
    for factor, n in pld.terms.items():
        if isinstance(factor, RandomizedResponse):
            one = response(Fraction(factor.eps), Fraction(factor.delta), side)
        else:
            one = exact_atoms(Pld(None, {factor: 1})) or EXACT_IDENTITY
        for _ in range(n):
            exact = exact.compose(one)
    return exact


def _sampled_exactly(exact: ExactAtoms, rate: Fraction) -> ExactAtoms:
    """`(1-q) Q + q P` against `Q`, outcome by outcome, `±inf` included."""
    work(2000.0 * len(exact))
    p = [Fraction(a, exact.p_den) for a in exact.p]
    q = [Fraction(b, exact.q_den) for b in exact.q]
    mixed = [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]
    missing = Fraction(exact.q_inf, exact.q_den)
    if missing:
        mixed, q = [*mixed, (1 - rate) * missing], [*q, missing]
    return from_masses(mixed, q)


def _part(rate: float, mass: Interval) -> float:
    """The product of a mass and a share, rounded down."""
    return max(float(np.nextafter(rate * float(mass.lo), 0.0)), 0.0)


def _curve(pld: Pld) -> Curve:
    def curve(t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        found = pld._evaluator.at_log_x(t, dt, ACCURACY)
        return np.asarray(found.lo), np.asarray(found.hi)

    return curve
