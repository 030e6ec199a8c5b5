"""The kinds of factor that a PLD is composed of, besides its Gaussian part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from residuum.bounds import Floats
from residuum.pld.families import gaussian
from residuum.pld.families.atoms import Atoms
from residuum.pld.families.bounded_range import BoundedRange
from residuum.pld.families.gaussian_mixture import GaussianMixture
from residuum.pld.families.laplace import Laplace
from residuum.pld.families.randomized_response import RandomizedResponse

Factor = RandomizedResponse | Laplace | BoundedRange | GaussianMixture | Atoms
Rational = RandomizedResponse | Laplace | BoundedRange
"""Factors whose largest loss is a rational."""
Terms = Mapping[Factor, int]


def whole_curve(factor: Factor, t: Floats, dt: Floats) -> tuple[Floats, Floats]:
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
