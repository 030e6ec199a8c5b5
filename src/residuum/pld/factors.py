"""The kinds of factor that a PLD is composed of, besides its Gaussian part."""

from __future__ import annotations

from collections.abc import Mapping

from residuum.pld.atoms import Atoms
from residuum.pld.bounded_range import BoundedRange
from residuum.pld.gaussian_mixture import GaussianMixture
from residuum.pld.laplace import Laplace
from residuum.pld.randomized_response import RandomizedResponse

Factor = RandomizedResponse | Laplace | BoundedRange | GaussianMixture | Atoms
Rational = RandomizedResponse | Laplace | BoundedRange
"""Factors whose largest loss is a rational."""
Terms = Mapping[Factor, int]
