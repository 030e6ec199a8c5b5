"""Random finite PLDs for the order and lattice benchmarks; building them is not counted."""

from __future__ import annotations

import numpy as np

import residua as rz

ATOMS = 10_000

Pair = tuple[rz.Pld, rz.Pld]


def vectors(rng: np.random.Generator, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Two probability vectors whose log ratios are about normal with that spread."""
    p = rng.exponential(size=ATOMS)
    q = p * np.exp(spread * rng.standard_normal(ATOMS))
    return p / p.sum(), q / q.sum()


def crossing(repeat: int) -> Pair:
    """Two PLDs drawn alike: their curves cross, neither dominates."""
    rng = np.random.default_rng([4, repeat])
    return rz.from_pair(*vectors(rng, 1.0)), rz.from_pair(*vectors(rng, 1.0))


def ordered(repeat: int) -> Pair:
    """The first below the second: the same pair with a tenth of `p` redrawn from `q`."""
    rng = np.random.default_rng([5, repeat])
    p, q = vectors(rng, 1.0)
    return rz.from_pair(0.9 * p + 0.1 * q, q), rz.from_pair(p, q)


def touching(repeat: int) -> Pair:
    """The first below the second with curves that coincide over long stretches."""
    one, other = crossing(1_000_000 + repeat)
    return one, one | other
