"""Queries that both sides can build, so that each is timed on exactly the same work.

dp_accounting's randomized response keeps the input with probability `1 - p` and otherwise
answers uniformly; two buckets with `p = 2 / (1 + e^eps)` make it our `pure_dp(eps)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import residuum as rz

try:
    from dp_accounting.pld import privacy_loss_distribution as peer_pld
except ImportError as missing:
    raise SystemExit(
        "the benchmarks compare with dp-accounting, which is not installed: "
        "pip install 'residuum[bench]'"
    ) from missing

GRIDS = (1e-3, 1e-4)


def peer_name(grid: float) -> str:
    return f"dp_accounting, grid {grid:g}"


@dataclass(frozen=True)
class Gaussian:
    sigma: float

    def ours(self) -> rz.Pld:
        return rz.gaussian(sigma=self.sigma)

    def theirs(self, grid: float) -> Any:
        return peer_pld.from_gaussian_mechanism(self.sigma, value_discretization_interval=grid)


@dataclass(frozen=True)
class Laplace:
    scale: float

    def ours(self) -> rz.Pld:
        return rz.laplace(scale=self.scale)

    def theirs(self, grid: float) -> Any:
        return peer_pld.from_laplace_mechanism(self.scale, value_discretization_interval=grid)


@dataclass(frozen=True)
class RandomizedResponse:
    eps: float

    def ours(self) -> rz.Pld:
        return rz.pure_dp(self.eps)

    def theirs(self, grid: float) -> Any:
        noise = 2.0 / (1.0 + math.exp(self.eps))
        return peer_pld.from_randomized_response(noise, 2, value_discretization_interval=grid)


@dataclass(frozen=True)
class SubsampledGaussian:
    """Both directions: the peer keeps a PLD of each, and so do we."""

    sigma: float
    rate: float

    def ours(self) -> tuple[rz.Pld, rz.Pld]:
        plds = rz.mechanisms.SubsampledGaussian(self.sigma, self.rate).plds()
        return plds["remove"], plds["add"]

    def theirs(self, grid: float) -> Any:
        return peer_pld.from_gaussian_mechanism(
            self.sigma, value_discretization_interval=grid, sampling_prob=self.rate
        )


Query = Gaussian | Laplace | RandomizedResponse
