"""The kinds of factor that a PLD is composed of, besides its Gaussian part."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

from residua.bounds import Floats
from residua.pld.families import gaussian
from residua.pld.families.atoms import Atoms
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import BoundedRange, Laplace, RandomizedResponse

Factor = RandomizedResponse | Laplace | BoundedRange | GaussianMixture | Atoms
Terms = Mapping[Factor, int]


def canonical_key(factor: Factor) -> tuple[object, ...]:
    """A sort key that is a function of the factor's value: the kind, then its parameters."""
    match factor:
        case RandomizedResponse(eps, delta):
            return 0, eps, delta
        case Laplace(scale, sensitivity):
            return 1, scale, sensitivity
        case BoundedRange(eps, atomic):
            return 2, eps, atomic
        case GaussianMixture(sigma, p_rest, p, q_rest, q):
            return 3, sigma, p_rest, p, q_rest, q
        case Atoms():
            return 4, *factor.bits


FEW_KINDS = 16
"""Largest losses of at most this many kinds of query are summed exactly."""
MOST_BITS = 100_000
"""Exact products of masses longer than this are not worked out."""


def survival(masses: Iterable[tuple[Fraction, int]]) -> Fraction | None:
    """`Π (1 - m)^n`, the mass on finite losses, exactly, unless that is too long."""
    lossy = [(m, n) for m, n in masses if m > 0]
    if sum(n * m.denominator.bit_length() for m, n in lossy) > MOST_BITS:
        return None
    return math.prod(((1 - m) ** n for m, n in lossy), start=Fraction(1))


def curve_at_all_t(factor: Factor, t: Floats, dt: Floats) -> tuple[Floats, Floats]:
    """Enclosure of the finite part of a factor's curve for any real `t` known up to `±dt`."""
    back = factor.reverse()
    left = t < 0.0
    lo, hi = factor.curve(np.abs(t), dt)
    if not left.any():
        return lo, hi
    if back is not factor and back != factor:
        low, high = back.curve(np.abs(t), dt)
        lo, hi = np.where(left, low, lo), np.where(left, high, hi)
    return gaussian.from_reversed(t, dt, lo, hi, left)


def largest_loss(factor: Factor) -> float:
    """The largest finite loss, within `u` of it or above it."""
    if isinstance(factor, Atoms):
        return factor.top
    return factor.top_bounds[1] if isinstance(factor, GaussianMixture) else factor.eps
