"""Workloads outside the suite: other sizes, other orders, other seeds.

`python -m benchmarks.utility --held-out` runs them. They ask for what the suite does not: large
queries after small ones, small after large, subsampled training after histograms. Constants are set
on the suite; these only decided between a few variants.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from residua.mechanisms.black_boxes.pure_dp import PureDp
from residua.mechanisms.composition.self_composed import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise.gaussian import Gaussian
from residua.mechanisms.noise.laplace import Laplace
from residua.mechanisms.sampled.subsampled_gaussian import SubsampledGaussian
from residua.planning.workload import Run, Workload

_SIZES = (0.012, 0.025, 0.04, 0.06, 0.09, 0.15)
_ALWAYS = 10**6


def held_out() -> tuple[Workload, ...]:
    """All of them."""
    sizes = [
        made
        for size in _SIZES
        for made in (PureDp(size), Laplace(round(1 / size, 3)), Gaussian(sigma=round(1 / size, 3)))
    ]
    coarse = [
        PureDp(0.01),
        Laplace(70.0),
        Gaussian(sigma=50.0),
        Gaussian(sigma=90.0),
        PureDp(0.016),
    ]
    bag = [*[Laplace(30.0)] * 3, *[Gaussian(sigma=45.0)] * 4, *[PureDp(0.04)] * 2]
    report = (
        Run(Laplace(60.0), 8),
        Run(Gaussian(sigma=25.0)),
        Run(Laplace(60.0), 8),
        Run(PureDp(0.08)),
    )
    training = tuple(Run(_block(sigma, 0.02), 3) for sigma in (1.4, 1.25, 1.05, 0.95))
    return (
        _drawn("mixed, other sizes", sizes, 11),
        _drawn("mixed, coarse", coarse, 5, 0.5),
        _drawn("explorer, other kinds", [*bag, Gaussian(sigma=12.0), Laplace(8.0)], 5, 0.6, 200),
        Workload("monthly report", report, True),
        Workload("small, then large", (Run(PureDp(0.02), 5), Run(PureDp(0.3), _ALWAYS))),
        Workload("large, then small", (Run(PureDp(0.3)), Run(Laplace(40.0), _ALWAYS))),
        Workload(
            "Gaussians, then larger",
            (Run(Gaussian(sigma=40.0), 30), Run(Gaussian(sigma=12.0), _ALWAYS)),
        ),
        Workload(
            "responses and Gaussians", (Run(PureDp(0.15)), Run(Gaussian(sigma=25.0), 3)), True
        ),
        Workload("DP-SGD, less noise each time", training, True),
        Workload(
            "histograms, then DP-SGD", (Run(Gaussian(sigma=40.0), 6), Run(_block(1.2), _ALWAYS))
        ),
        Workload("Laplace 25", (Run(Laplace(25.0)),), True),
    )


def _drawn(
    name: str, kinds: Sequence[Mechanism], seed: int, burst: float = 0.0, count: int = 600
) -> Workload:
    draw = Random(seed).random
    asked: list[Run] = []
    while len(asked) < count:
        times = 1
        while draw() < burst:
            times += 1
        asked.append(Run(kinds[int(draw() * len(kinds))], times))
    return Workload(name, tuple(asked), True, tuple(Run(kind) for kind in kinds))


def _block(sigma: float, rate: float = 0.01) -> Mechanism:
    return SelfComposed(SubsampledGaussian(sigma, rate), 10)
