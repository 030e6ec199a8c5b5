"""Privacy loss by size: the profile of a symmetric PLD, and the two PLDs it lies between.

Cut `|Z|` at `0 = e_0 < e_1 < … < e_n = ∞` and let `p_i = Pr[e_{i-1} <= |Z| < e_i]`. A symmetric PLD
lies above the generalised randomized response that draws `i` with probability `p_i` and runs
`RR_{e_{i-1}}` (rounded down), and below the one that runs `RR_{e_i}` (rounded up): given `i`, the
loss has a ratio of at least `e^{e_{i-1}}` and at most `e^{e_i}` on one half of the outcomes and its
inverse on the other. Symmetry is used; for others it fails.

For `x = e^t >= 1` the mass `Pr[|Z| >= t]` is `h(x) + (1+x) |h'(x-)|`, and a convex curve's slope
lies between those of chords to either side. Where a mass is known as an interval, the pessimistic
PLD takes the upper end of every tail and the optimistic one the lower.

**How much of each size** a natural filter can let through in `k` rounds (`largest_total`), and how
often it then occurs whatever the analyst does (`overflow`): steps 1 and 2 of
`docs/proofs/additive-profile.md`. With `H(m)` the curve of `m` copies of `RR_e` at `e^eps`,
Jensen's inequality for the greatest convex minorant of `H`, and `Pr[m >= 1] >= 1 - e^-s`, each
bound the total `s`; `U_n(s) = (1+w)^{-(n-1)} e^{sw} / (e w)`, for any `w > 0`, bounds `n` draws.
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
from residua.bounds import LARGEST_EPS, Floats, Interval, float_down, float_up
from residua.errors import ArgumentError
from residua.pld.arithmetic.exact import Side, from_masses, ratio_of
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.constructors import from_exact, pure_dp
from residua.pld.families.atoms import Atoms
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.pld import Pld, query
from residua.work_limit import work


def heights(e: float, eps: float, rounds: int, delta: float = 1.0) -> Floats:
    """`H(0), H(1), …`: lower bounds of the curve of `m` times `RR_e` at `e^eps`, up to `rounds`.

    Ends early where it is high: it does not decrease, so the last value bounds the rest. For the
    convex minorant where it passes `delta`, high is `delta + rounds H(m)` with the first `m` above
    `delta`: no chord to a later point is as flat as the one to that.
    """
    first = int(eps / e)
    values = [0.0] * (min(first, rounds) + 1)
    query = pure_dp(e)
    enough = 0.5
    for m in range(len(values), rounds + 1):
        values.append(max(float((m * query).delta_bounds(eps).lo), values[-1]))
        if values[-1] > delta >= values[-2]:
            enough = min(enough, delta + rounds * values[-1])
        if values[-1] > enough:
            break
    return np.array(values)


def largest_total(e: float, eps: float, delta: float, rounds: int) -> float:
    """The largest total probability of losses of size `e` or more, upper bound.

    Args:
        e: a size of loss, positive.
        eps: that of the promise which the queries, composed, keep.
        delta: that of the same promise.
        rounds: the most queries there are.

    Returns:
        An upper bound on the sum over the queries of `Pr[|Z| >= e]`, at most `rounds`.
    """
    e, eps = checks.positive("e", e), checks.positive("eps", eps)
    delta, rounds = checks.probability("delta", delta), checks.count("rounds", rounds)
    known = heights(e, eps, rounds, delta)
    total = _by_jensen(known, delta, rounds)
    if known.size > 1 and known[1] > delta:
        total = min(total, -math.log1p(-delta / float(known[1])))
    # Both here and in `overflow` a relative 1e-9 covers the roundings.
    return min(total * (1.0 + 1e-9), float(rounds))


def _by_jensen(known: Floats, delta: float, rounds: int) -> float:
    """The largest `s` where the convex minorant of `H` is at most `delta`."""
    m, h = np.arange(known.size, dtype=np.float64), known
    if known.size <= rounds:
        m, h = np.append(m, float(rounds)), np.append(h, known[-1])
    if float(h[-1]) <= delta:
        return float(rounds)
    # Lower hull of the points: for each start the least slope, from left to right.
    at = 0
    while True:
        slopes = (h[at + 1 :] - h[at]) / (m[at + 1 :] - m[at])
        step = int(np.argmin(slopes))
        following = at + 1 + step
        if float(h[following]) > delta:
            slope = float(slopes[step]) * (1.0 - 1e-12)
            return float(m[at]) + (delta - float(h[at])) / slope
        at = following


def overflow(total: float, draws: int) -> float:
    """The probability of more than `draws` draws, for any strategy of this total, upper bound.

    Args:
        total: what the probabilities of the draws sum to, at most; they may be chosen adaptively.
        draws: how many draws are allowed.

    Returns:
        An upper bound of the probability that there are more, at most 1.
    """
    total, draws = checks.non_negative("total", total), checks.count("draws", draws)
    n = draws + 1
    if total >= n:
        return 1.0
    if n == 1:
        return total
    # The best `w`, where s w² + (s - n) w = 1; any other would do.
    gap = n - total
    w = (gap + math.sqrt(gap * gap + 4.0 * total)) / (2.0 * total)
    exponent = total * w - (n - 1) * math.log1p(w) - 1.0 - math.log(w)
    return min(1.0, total, math.exp(exponent) * (1.0 + 1e-9))


CHORDS = np.geomspace(1e-7, 1e-2, 11)
"""Lengths of chords, as shares of the size at which a slope is bounded."""


@dataclass(frozen=True)
class Discretisation:
    """`optimistic ⪯ L ⪯ pessimistic`; `profile` is the pessimistic one's, size by size."""

    points: tuple[float, ...]
    profile: tuple[float, ...]
    optimistic: Pld
    pessimistic: Pld


def check_points(points: Any) -> tuple[float, ...]:
    """Check sizes to cut losses at: positive, increasing and at most 600."""
    cuts = checks.numbers("points", points)
    increasing = all(a < b for a, b in pairwise((0.0, *cuts)))
    checks.require(increasing, "points", "positive and increasing", points)
    checks.require(cuts[-1] <= LARGEST_EPS, "points", f"at most {LARGEST_EPS:g}", cuts[-1])
    return cuts


def discretise(loss: Pld, points: Any) -> Discretisation:
    """Cut a symmetric PLD by size, and give the two PLDs between which it lies.

    Args:
        loss: a symmetric PLD.
        points: where to cut, positive and increasing; infinity is added.

    Raises:
        ArgumentError: the PLD is not symmetric, or points are out of order or out of range.
    """
    query("loss", loss)
    if not loss.is_symmetric:
        raise ArgumentError(f"loss must be a symmetric PLD, got {loss!r}")
    cuts = check_points(points)
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
        good = size == math.inf or 0.0 <= size <= LARGEST_EPS
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
    checks.require(size <= LARGEST_EPS, "size", "at most 600", size)
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
    work(4000.0 * len(exact))
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
    t = np.concatenate([[size], size - CHORDS * size, size + CHORDS * size])
    h = loss.delta_bounds(t, accuracy=1e-9)
    lo, hi = np.asarray(h.lo), np.asarray(h.hi)
    n = CHORDS.size
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
    decreasing: list[Fraction] = []
    for tail in tails:
        decreasing.append(min(tail, decreasing[-1]) if decreasing else min(tail, Fraction(1)))
    return [
        1 - decreasing[0],
        *(a - b for a, b in pairwise(decreasing)),
        decreasing[-1],
    ]
