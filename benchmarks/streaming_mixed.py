"""A stream of Gaussian, Laplace and randomized response in turn, with a read after each."""

from __future__ import annotations

import numpy as np

from benchmarks import stream
from benchmarks.queries import Gaussian, Laplace, RandomizedResponse
from benchmarks.rows import Row

ROUNDS = 70
EPS = 4.0


def fresh(repeat: int) -> stream.Stream:
    rng = np.random.default_rng([2, repeat])
    queries: list[Gaussian | Laplace | RandomizedResponse] = []
    for _ in range(ROUNDS):
        queries.append(Gaussian(rng.uniform(10.0, 30.0)))
        queries.append(Laplace(rng.uniform(10.0, 30.0)))
        queries.append(RandomizedResponse(rng.uniform(0.03, 0.1)))
    return tuple(queries)


def run(repeats: int) -> list[Row]:
    name = "Gaussian, Laplace, randomized response"
    return stream.rows(name, fresh, EPS, speedups=(3.0, 10.0), repeats=repeats)
