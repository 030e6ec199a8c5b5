"""Constructors of PLDs.

What a float denotes: exactly itself. `gaussian(sigma=3.0)` is `G_mu` with `mu` the rational
1/3; `pure_dp(0.1)` has losses plus and minus the binary fraction nearest to 0.1. Atoms are
dyadic pairs `(p, q)`, normalised exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import LARGEST_EPS, LEAST_EPS, Floats, float_down
from residua.errors import ArgumentError, ArgumentTypeError
from residua.pld.arithmetic.exact import (
    ExactAtoms,
    canonical,
    from_vertices,
    integers,
    tilted,
    upper_hull,
)
from residua.pld.families.atoms import SHOWN, WORKED_OUT, Atoms, atoms_from_exact, atoms_from_floats
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian import Gaussian
from residua.pld.families.gaussian_mixture import GaussianMixture, subsampled
from residua.pld.families.symmetric import BoundedRange, Laplace, RandomizedResponse
from residua.pld.pld import Pld
from residua.sizes import LONGEST_PROVABLE_LIST

TOLERANCE = 1e-9
"""How far from 1 given masses may sum (they are then normalised exactly), and how far a given curve
may bend the wrong way (it is then rounded to the safe side)."""
TILT_TOLERANCE = 1e-12
"""How far from 1 `E e^-Z` may be and still denote 1 (no mass at -inf)."""
MIXTURE_RANGE = (1e-12, 20.0)
"""Of `sensitivity / sigma`: beyond, a sampled record is as good as seen (all but 1e-22)."""
LEAST_RATE = 1e-100
"""Of sampling: a smaller one is rejected, or rounded."""


def identity() -> Pld:
    """`Id`: no privacy loss, the least PLD."""
    return Pld(None, {})


def infinite() -> Pld:
    """`inf`: everything is revealed, the greatest PLD."""
    return Pld(None, {atoms_from_exact(ExactAtoms((), (), 1, 1)): 1})


@checks.keyword_only("mu or sigma", "gaussian(mu={}) or gaussian(sigma={})")
def gaussian(
    *, mu: float | None = None, sigma: float | None = None, sensitivity: float | None = None
) -> Pld:
    """`G_mu`: Gaussian noise, `mu = sensitivity / sigma` (sensitivity 1 unless given).

    Give `mu` or `sigma` by name: a positional number could mean either, and raises `TypeError`.
    """
    if (mu is None) == (sigma is None):
        raise ArgumentTypeError(
            f"gaussian takes either mu or sigma (with sensitivity), got mu={mu!r}, sigma={sigma!r}"
        )
    if mu is not None:
        if sensitivity is not None:
            raise ArgumentTypeError(
                f"sensitivity applies to sigma, not to mu, got sensitivity={sensitivity!r}"
            )
        top, bottom, name, value = checks.non_negative("mu", mu), 1.0, "mu", mu
    else:
        bottom = checks.positive("sigma", sigma)
        top = 1.0 if sensitivity is None else checks.non_negative("sensitivity", sensitivity)
        name, value = "sensitivity / sigma", top / bottom
    if top == 0.0:
        return identity()
    ratio = top / bottom
    checks.require(
        LEAST_RATE <= ratio <= 1.0 / LEAST_RATE, name, "0 or between 1e-100 and 1e100", value
    )
    return Pld(Gaussian(((top, bottom, 1),)), {})


def pure_dp(eps: float) -> Pld:
    """`R_eps`: the largest PLD that is `eps`-DP (randomized response)."""
    return approximate_dp(eps, 0.0)


def approximate_dp(eps: float, delta: float) -> Pld:
    """`R_{eps,delta}`: the largest PLD that is `(eps, delta)`-DP."""
    eps = checks.non_negative("eps", eps)
    delta = checks.probability("delta", delta)
    checks.require(
        eps == 0.0 or LEAST_EPS <= eps <= LARGEST_EPS, "eps", "0 or between 2**-1000 and 600", eps
    )
    if delta == 1.0:
        return infinite()
    if eps == 0.0:
        if delta == 0.0:
            return identity()
        den = Fraction(delta).denominator
        kept = den - Fraction(delta).numerator
        return _single(atoms_from_exact(ExactAtoms((kept,), (kept,), den, den)))
    return _single(RandomizedResponse(eps, delta))


def laplace(scale: float, sensitivity: float = 1.0) -> Pld:
    """Laplace noise of the given scale on a query of the given sensitivity."""
    scale = checks.positive("scale", scale)
    sensitivity = checks.non_negative("sensitivity", sensitivity)
    if sensitivity == 0.0:
        return identity()
    ratio = sensitivity / scale
    checks.require(
        LEAST_EPS <= ratio <= LARGEST_EPS,
        "sensitivity / scale",
        "0 or between 2**-1000 and 600",
        ratio,
    )
    return _single(Laplace(scale, sensitivity))


def bounded_range(eps: float, *, atomic: float = 0.0) -> Pld:
    """The largest PLD of range `eps`: the exponential mechanism.

    `atomic` mixes in randomized response of the same `eps`, with that weight.
    """
    eps = checks.non_negative("eps", eps)
    atomic = checks.probability("atomic", atomic)
    checks.require(
        eps == 0.0 or LEAST_EPS <= eps <= LARGEST_EPS, "eps", "0 or between 2**-1000 and 600", eps
    )
    if eps == 0.0:
        return identity()
    return pure_dp(eps) if atomic == 1.0 else _single(BoundedRange(eps, atomic))


def subsampled_gaussian(
    sigma: float, sampling_rate: float, direction: str = "remove", *, sensitivity: float = 1.0
) -> Pld:
    """Gaussian noise on a Poisson sample.

    `remove`: `(1-q) N(0, σ²) + q N(sensitivity, σ²)` against `N(0, σ²)`; `add`: the reversal;
    `replace`: against `(1-q) N(0, σ²) + q N(-sensitivity, σ²)`, one record exchanged for another.
    `sensitivity / sigma` is at most 20: beyond, use `fully_revealing_sampled`, which dominates.
    """
    sigma = checks.positive("sigma", sigma)
    rate = checks.probability("sampling_rate", sampling_rate)
    sensitivity = checks.non_negative("sensitivity", sensitivity)
    checks.one_of("direction", direction, ("remove", "add", "replace"))
    if rate == 0.0 or sensitivity == 0.0:
        return identity()
    if rate == 1.0:
        distance = 2.0 * sensitivity if direction == "replace" else sensitivity
        return gaussian(sigma=sigma, sensitivity=distance)
    checks.require(rate >= LEAST_RATE, "sampling_rate", "0 or at least 1e-100", rate)
    _require_mixture(sensitivity, sigma)
    return _single(subsampled(sigma, sensitivity, rate, direction))


def mixture_of_gaussians(
    sigma: float, sensitivities: Any, probabilities: Any, direction: str = "remove"
) -> Pld:
    """`Σ p_i N(s_i, σ²)` against `N(0, σ²)` (`remove`), or the reversal (`add`).

    The probabilities sum to 1 within 1e-9; the largest sensitivity takes what the others leave.
    """
    sigma = checks.positive("sigma", sigma)
    checks.one_of("direction", direction, ("remove", "add"))
    shifts = _masses("sensitivities", sensitivities)
    weights = _probabilities("probabilities", probabilities)
    checks.require_same_length("sensitivities", shifts, "probabilities", weights)
    total = _require_sum("probabilities", weights)
    merged: dict[float, Fraction] = {}
    for a, w in zip(shifts.tolist(), weights.tolist(), strict=True):
        if w > 0.0:
            merged[a + 0.0] = merged.get(a + 0.0, Fraction(0)) + Fraction(w)
    if len(merged) == 1:
        return gaussian(sigma=sigma, sensitivity=next(iter(merged)))
    _require_mixture(max(merged), sigma)
    # Weights rounded down leave the rest to the largest sensitivity: the safe side.
    order = sorted(merged)
    others = [(a, float_down(merged[a])) for a in order[:-1]]
    rest = 1 - sum((Fraction(w) for _, w in others), Fraction(0))
    checks.require(rest > 0, "probabilities", "normalised to sum to 1", total)
    if order[0] == 0.0 and len(others) == 1 and Fraction(float(rest)) == rest:
        return subsampled_gaussian(sigma, float(rest), direction, sensitivity=order[-1])
    made = GaussianMixture(sigma, order[-1], tuple(others), 0.0, ())
    return _single(made if direction == "remove" else made.reverse())


def fully_revealing_sampled(rate: float, direction: str = "remove") -> Pld:
    """Sampling a mechanism that reveals everything; dominates every sampled one."""
    if direction == "replace":
        return approximate_dp(0.0, rate)
    kept = 1 - Fraction(rate)
    exact = ExactAtoms((kept.numerator,), (1,), kept.denominator, 1)
    return from_exact(exact if direction == "remove" else exact.reverse())


def with_sigma(mixture: GaussianMixture, sigma: float) -> Pld:
    """The same mixture of Gaussians with another noise."""
    shifts = [shift for shift, _ in (*mixture.p, *mixture.q)]
    ends = (*shifts, mixture.p_rest, mixture.q_rest)
    _require_mixture(max(ends) - min(ends), checks.positive("sigma", sigma))
    return _single(replace(mixture, sigma=sigma))


def _require_mixture(sensitivity: float, sigma: float) -> None:
    ratio = sensitivity / sigma
    low, high = MIXTURE_RANGE
    checks.require(
        low <= ratio <= high, "sensitivity / sigma", f"0 or between {low:g} and {high:g}", ratio
    )


def from_atoms(losses: Any, masses: Any, mass_at_infinity: float = 0.0) -> Pld:
    """A finite PLD from losses and their masses under `P`.

    Masses must sum to `1 - mass_at_infinity` within 1e-9 and are then normalised exactly;
    equal losses are merged. `E e^-Z` must not exceed 1; within 1e-12 of 1 it denotes 1.
    """
    z = checks.vector("losses", losses, "finite numbers")
    z = checks.array_satisfying("losses", z, np.isfinite, "finite numbers")
    p = _masses("masses", masses)
    at_infinity = checks.probability("mass_at_infinity", mass_at_infinity)
    checks.require_same_length("losses", z, "masses", p)
    _require_sum("masses", p, at_infinity)
    z, p = _merged(z[p > 0], p[p > 0])
    if p.size == 0 or at_infinity == 1.0:
        return infinite()
    if p.size == 1 and z[0] == 0.0 and at_infinity == 0.0:
        return identity()
    with np.errstate(over="ignore", under="ignore"):
        if p.size <= LONGEST_PROVABLE_LIST:
            q = np.array([tilted(*each) for each in zip(p.tolist(), z.tolist(), strict=True)])
        else:
            q = p * np.exp(-z)
    tilt = math.fsum(q) if np.all(np.isfinite(q)) else math.inf
    checks.require(
        tilt <= 1.0 + TILT_TOLERANCE, "E[e^-Z]", "at most 1 for losses and masses of a PLD", tilt
    )
    _require_normal("masses", p, z)
    _require_normal("masses times e^-loss", q, z)
    q_total = Fraction(1) if abs(tilt - 1.0) <= TILT_TOLERANCE else None
    made = _single(atoms_from_floats(p, q, 1 - Fraction(at_infinity), q_total))
    more = (at_infinity,) if at_infinity else ()
    return _written_as(made, "from_atoms", z, p, *more)


def from_pair(p: Any, q: Any) -> Pld:
    """The PLD of two probability vectors; each sums to 1 within 1e-9, then exactly."""
    vectors = []
    for name, given in (("p", p), ("q", q)):
        v = _masses(name, given)
        _require_sum(name, v)
        _require_normal(name, v[v > 0], v[v > 0])
        vectors.append(v)
    a, b = vectors
    checks.require_same_length("p", a, "q", b)
    p_ints, _ = integers(a)
    q_ints, _ = integers(b)
    p_den, q_den = sum(p_ints), sum(q_ints)
    both = (a > 0) & (b > 0)
    if a.size <= WORKED_OUT or not both.any():
        made = from_exact(canonical(p_ints, q_ints, p_den, q_den))
        return _written_as(made, "from_pair", a, b)
    p_kept = sum(i for i, kept in zip(p_ints, both, strict=True) if kept)
    q_kept = sum(i for i, kept in zip(q_ints, both, strict=True) if kept)
    totals = Fraction(p_kept, p_den), Fraction(q_kept, q_den)
    return _single(atoms_from_floats(a[both], b[both], *totals))


def from_exact(exact: ExactAtoms) -> Pld:
    """The PLD of exact atoms."""
    if len(exact) == 0:
        return infinite()
    if len(exact) == 1 and exact.p_inf == 0 and exact.q_inf == 0:
        return identity()
    return _single(atoms_from_exact(exact))


def from_tradeoff(alphas: Any, betas: Any) -> Pld:
    """The PLD of a piecewise-linear tradeoff curve through the given points.

    `alphas` increase from 0; the curve must be convex, decreasing and below `1 - alpha`
    (within 1e-9: the lower convex envelope is taken, the safe side), and end at `beta = 0`.
    """
    a, b = _probabilities("alphas", alphas), _probabilities("betas", betas)
    checks.require_same_length("alphas", a, "betas", b)
    order = np.lexsort((-b, a))
    a, b = a[order], b[order]
    checks.require(a[0] == 0.0, "alphas", "0 at the start of the curve", float(a[0]))
    checks.require(b[-1] == 0.0, "betas", "0 at the end of the curve", float(b[-1]))
    worst = float(np.max(b - (1.0 - a)))
    checks.require(worst <= TOLERANCE, "betas", "at most 1 - alphas", f"{worst!r} above")
    worst = float(np.max(np.diff(b), initial=0.0))
    checks.require(worst <= TOLERANCE, "betas", "decreasing in alphas", f"a rise of {worst!r}")
    p_ints, q_ints, den = _dyadic(a, b)
    # Testing region: (Q tail, P tail) = (beta, 1 - alpha), read from the right end.
    points = [(q, den - p) for p, q in zip(p_ints, q_ints, strict=True)][::-1]
    # Where the curve has reached 0 it stays there: only the first such point is a vertex.
    points = [max(point for point in points if point[0] == 0), *(p for p in points if p[0] > 0)]
    points.append((q_ints[0], den))
    hull = upper_hull(sorted(points))
    _require_close(points, hull, den, "betas", "convex in alphas")
    hull = [(min(q, p), p) for q, p in hull]
    return _written_as(from_exact(from_vertices(hull, den, den)), "from_tradeoff", a, b)


def from_hockey_stick(xs: Any, values: Any) -> Pld:
    """The PLD of the piecewise-linear hockey-stick curve through the given points.

    The curve starts at `(0, 1)` and stays constant after the last point (mass at infinity).
    It must be convex, decreasing and at least `1 - x`. Where it misses that by up to 1e-9 it is
    raised (by a share of mass at infinity), so that no given value is understated by more than
    its own rounding. Up to 64 points the result is exact; with more, slopes are rounded up by
    2^-400 at most.
    """
    x, v = checks.vector("xs", xs, "positive numbers"), _probabilities("values", values)
    checks.require_same_length("xs", x, "values", v)
    x = checks.array_satisfying("xs", x, lambda a: (a > 0) & (a < np.inf), "positive and finite")
    order = np.lexsort((v, x))
    x, v = x[order], v[order]
    twice = np.flatnonzero(np.diff(x) == 0.0)
    if twice.size:
        checks.require(bool(np.all(v[twice] == v[twice + 1])), "xs", "distinct", float(x[twice[0]]))
        x, v = np.delete(x, twice), np.delete(v, twice)
    worst = float(np.max((1.0 - x) - v, initial=0.0))
    checks.require(worst <= TOLERANCE, "values", "at least 1 - xs", f"{worst!r} below")
    worst = float(np.max(np.diff(v), initial=0.0))
    checks.require(worst <= TOLERANCE, "values", "decreasing in xs", f"a rise of {worst!r}")
    from residua.pld.discretise.finite import region_above

    places = [Fraction(a) for a in x.tolist()]
    heights = [
        max(Fraction(h), 1 - a, Fraction(0)) for a, h in zip(places, v.tolist(), strict=True)
    ]
    # Where the values rise, they are raised to what follows: the safe side.
    heights = list(accumulate(reversed(heights), max))[::-1]
    made = from_exact(region_above(places, heights, x.size <= WORKED_OUT, TOLERANCE))
    return _written_as(made, "from_hockey_stick", x, v)


def _masses(name: str, given: Any) -> Floats:
    v = checks.vector(name, given, "non-negative numbers")
    return checks.array_satisfying(
        name, v, lambda a: (a >= 0) & (a < np.inf), "non-negative and finite"
    )


def _probabilities(name: str, given: Any) -> Floats:
    v = checks.vector(name, given, "numbers in [0, 1]")
    return checks.array_satisfying(name, v, lambda a: (a >= 0) & (a <= 1), "in [0, 1]")


def _require_sum(name: str, masses: Floats, more: float = 0.0) -> float:
    """The sum of masses and one more, which must be 1 but for `TOLERANCE`."""
    total = math.fsum(masses) + more
    good = abs(total - 1.0) <= TOLERANCE
    checks.require(good, name, "normalised to sum to 1 within 1e-9", total)
    return total


def _single(factor: Factor) -> Pld:
    return Pld(None, {factor: 1})


def _written_as(pld: Pld, name: str, *arguments: Floats | float) -> Pld:
    """Remember how a short list was written, so that its `repr` pastes back exactly."""
    for factor in pld.terms:
        if isinstance(factor, Atoms) and factor.atom_count:
            shown = [v if isinstance(v, float) else v.tolist() for v in arguments]
            if all(isinstance(v, float) or len(v) <= SHOWN for v in shown):
                factor.__dict__["written"] = f"{name}({', '.join(map(repr, shown))})"
    return pld


def _merged(z: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Sort by loss and add up the masses of equal losses."""
    losses, where = np.unique(z, return_inverse=True)
    return losses, np.asarray(np.bincount(where, weights=p, minlength=losses.size), dtype=float)


def _dyadic(a: Floats, b: Floats) -> tuple[list[int], list[int], int]:
    """Two float vectors as integers over one power of two (their common denominator)."""
    ints, shift = integers(np.concatenate([a, b, [1.0]]))
    return ints[: a.size], ints[a.size : -1], 1 << shift


def _require_close(
    points: list[tuple[int, int]], hull: list[tuple[int, int]], den: int, name: str, shape: str
) -> None:
    """Raise if a point lies further below the hull than rounding explains."""
    kept = iter(hull)
    left = right = next(kept)
    for q, p in points:
        while right[0] < q:
            left, right = right, next(kept)
        if right[0] == left[0]:
            top = Fraction(max(left[1], right[1]))
        else:
            top = left[1] + Fraction((right[1] - left[1]) * (q - left[0]), right[0] - left[0])
        gap = float((top - p) / den)
        checks.require(gap <= TOLERANCE, name, shape, f"a point {gap!r} off")


def _require_normal(name: str, masses: Floats, shown: Floats) -> None:
    small = masses < LEAST_EPS
    if np.any(small):
        raise ArgumentError(
            f"{name} must be 0 or at least 2**-1000 (put smaller ones at infinity), "
            f"got {float(masses[small][0])!r} at {float(shown[small][0])!r}"
        )
