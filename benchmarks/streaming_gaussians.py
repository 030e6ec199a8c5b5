"""A stream of different Gaussians with a read after each."""

from __future__ import annotations

import numpy as np

from benchmarks import stream
from benchmarks.queries import Gaussian
from benchmarks.rows import Row

STEPS = 240
EPS = 4.0


def fresh(repeat: int) -> stream.Stream:
    rng = np.random.default_rng([1, repeat])
    return tuple(Gaussian(sigma) for sigma in rng.uniform(10.0, 30.0, STEPS).tolist())


def run(repeats: int) -> list[Row]:
    return stream.rows("different Gaussians", fresh, EPS, speedups=(10.0, 30.0), repeats=repeats)
