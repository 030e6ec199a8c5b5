"""Privacy loss by size: the profile of a symmetric PLD, and the two PLDs it lies between.

Cut `|Z|` at `0 = e_0 < e_1 < … < e_n = ∞` and let `p_i = Pr[e_{i-1} <= |Z| < e_i]`. A symmetric PLD
lies above the generalised randomized response that draws `i` with probability `p_i` and runs
`RR_{e_{i-1}}` (rounded down), and below the one that runs `RR_{e_i}` (rounded up): given `i`, the
loss has a ratio of at least `e^{e_{i-1}}` and at most `e^{e_i}` on one half of the outcomes and its
inverse on the other. Symmetry is used; for others it fails.

For `x = e^t >= 1` the mass `Pr[|Z| >= t]` is `h(x) + (1+x) |h'(x-)|`, and a convex curve's slope
lies between those of chords to either side. Where a mass is known as an interval, the pessimistic
PLD takes the upper end of every tail and the optimistic one the lower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import Interval, float_down, float_up
from residua.errors import ArgumentError
from residua.pld.arithmetic.rational import Side, from_masses, ratio_of
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.constructors import from_exact
from residua.pld.families.atoms import Atoms
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld, query

_STEPS = np.geomspace(1e-7, 1e-2, 11)


@dataclass(frozen=True)
class Discretisation:
    """`optimistic ⪯ L ⪯ pessimistic`; `profile` is the pessimistic one's, size by size."""

    points: tuple[float, ...]
    profile: tuple[float, ...]
    optimistic: Pld
    pessimistic: Pld


def discretise(loss: Pld, points: Any) -> Discretisation:
    """Cut a symmetric PLD at `points`, positive and increasing (infinity is added)."""
    query("loss", loss)
    if not loss.is_symmetric:
        raise ArgumentError(f"loss must be a symmetric PLD, got {loss!r}")
    cuts = checks.numbers("points", points)
    increasing = all(a < b for a, b in pairwise((0.0, *cuts)))
    checks.require(increasing, "points", "positive and increasing", points)
    checks.require(cuts[-1] <= 600.0, "points", "at most 600", cuts[-1])
    tails = [tail_mass(loss, e) for e in cuts]
    above = _buckets([Fraction(float(tail.hi)) for tail in tails])
    below = _buckets([Fraction(float(tail.lo)) for tail in tails])
    return Discretisation(
        cuts,
        tuple(float(p) for p in above),
        generalised_response(below, (0.0, *cuts), "below"),
        generalised_response(above, (*cuts, math.inf), "above"),
    )


def generalised_response(masses: Sequence[Any], sizes: Sequence[float], side: Side) -> Pld:
    """The PLD of generalised randomized response: draw `i`, run `RR_{sizes[i]}`, say both.

    Args:
        masses: the probability of each size; rationals or floats that sum to at most 1.
        sizes: 0 or more each, infinity for a response that tells the truth.
        side: "above" or "below": to which side irrational masses are rounded.

    Returns:
        A PLD that dominates it, or is dominated by it. What is missing from a sum of 1 is revealed.

    Raises:
        ArgumentError: a mass or a size that is negative or not a number, masses above 1 in total.
    """
    checks.one_of("side", side, ("above", "below"))
    shares = [
        mass if isinstance(mass, Fraction) else Fraction(checks.probability("masses", mass))
        for mass in checks.items("masses", masses, "a list of probabilities")
    ]
    in_range = min(shares, default=Fraction(0)) >= 0 and sum(shares) <= 1
    checks.require(in_range, "masses", "non-negative, with a sum of at most 1", masses)
    given = [checks.real("sizes", size) for size in checks.items("sizes", sizes, "a list of sizes")]
    checks.require(len(given) == len(shares), "sizes", f"as many as masses ({len(shares)})", sizes)
    for size in given:
        good = size == math.inf or 0.0 <= size <= 600.0
        checks.require(good, "sizes", "between 0 and 600, or infinite", size)
    p, q = [], []
    for mass, size in zip(shares, given, strict=True):
        if not mass or size == math.inf:
            continue
        ratio = ratio_of(Fraction(size), side)
        for share in (ratio / (1 + ratio), 1 / (1 + ratio)):
            p.append(mass * share)
            q.append(mass * (1 - share))
    return from_exact(from_masses(p, q))


def tail_mass(loss: Pld, size: float) -> Interval:
    """The mass of the losses of a size or more, in either direction.

    Args:
        loss: a symmetric PLD.
        size: positive, at most 600.

    Returns:
        A proven interval for `Pr[|Z| >= size]`, infinite losses included.

    Raises:
        ArgumentError: a PLD that is not symmetric, or a size out of range.
    """
    if not query("loss", loss).is_symmetric:
        raise ArgumentError(f"loss must be a symmetric PLD, got {loss!r}")
    size = checks.positive("size", size)
    checks.require(size <= 600.0, "size", "at most 600", size)
    if loss.is_identity:
        return Interval(0.0, 0.0)
    if not loss.gaussian and len(loss.terms) == 1:
        ((factor, n),) = loss.terms.items()
        if n == 1 and isinstance(factor, RandomizedResponse):
            mass = Fraction(1) if size <= factor.eps else Fraction(factor.delta)
            return Interval(float_down(mass), float_up(mass))
        if n == 1 and isinstance(factor, Atoms):
            return _exactly(factor, size)
    return _by_chords(loss, size)


def _exactly(factor: Atoms, size: float) -> Interval:
    """Sums of atoms; a loss is compared with `size` through its ratio, in rationals."""
    exact = factor.exact
    low, high = ratio_of(Fraction(size), "below"), ratio_of(Fraction(size), "above")
    sure, possible = exact.p_inf, exact.p_inf
    for p, q in zip(exact.p, exact.q, strict=True):
        ratio = Fraction(p * exact.q_den, q * exact.p_den)
        ratio = max(ratio, 1 / ratio)
        sure += p if ratio >= high else 0
        possible += p if ratio >= low else 0
    return Interval(
        float_down(Fraction(sure, exact.p_den)), float_up(Fraction(possible, exact.p_den))
    )


def _by_chords(loss: Pld, size: float) -> Interval:
    """From the curve: `h + (1+x)|h'|`, the slope between those of chords of several lengths."""
    t = np.concatenate([[size], size - _STEPS * size, size + _STEPS * size])
    h = loss.delta_bounds(t, accuracy=1e-9)
    lo, hi = np.asarray(h.lo), np.asarray(h.hi)
    n = _STEPS.size
    # Lengths in units of x: 1 - e^{-s} to the left, e^{s} - 1 to the right.
    left = -np.expm1(t[1 : n + 1] - size) * (1.0 - 8.0 * U)
    right = np.expm1(t[n + 1 :] - size) * (1.0 + 8.0 * U)
    steepest = float(np.min((hi[1 : n + 1] - lo[0]) / left))
    flattest = max(float(np.max((lo[0] - hi[n + 1 :]) / right)), 0.0)
    weight = 1.0 + math.exp(-size)
    upper = min(1.0, (float(hi[0]) + weight * steepest) * (1.0 + 1e-14))
    lower = max(0.0, (float(lo[0]) + weight * flattest) * (1.0 - 1e-14))
    return Interval(min(lower, upper), upper)


def _buckets(tails: list[Fraction]) -> list[Fraction]:
    """Masses between consecutive cuts, from tails that are made to decrease."""
    falling: list[Fraction] = []
    for tail in tails:
        falling.append(min(tail, falling[-1]) if falling else min(tail, Fraction(1)))
    return [
        1 - falling[0],
        *(a - b for a, b in pairwise(falling)),
        falling[-1],
    ]
