"""Characteristic functions of weighted points at equally spaced frequencies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from residuum.bounds import Floats
from residuum.pld.special import SINCOS_ULPS, U

_SLICE = 256
"""Points summed at a time: keeps the rounding of the sums short."""


def phase_sums(
    weights: Floats, z: Floats, step: float, count: int
) -> tuple[NDArray[np.complex128], float]:
    """`Σ w_j e^{iωz_j}` at `ω = 0, step, …, (count-1) step`, for positive weights summing to 1.

    The second value bounds the absolute error of sums and of sine and cosine; that of the
    arguments (`4u ω |z|`) is left to the caller. `e^{iωz}` at `ω = (aB + b) step` is a product of
    a coarse and a fine phase, so all frequencies come from one matrix product.
    """
    block = max(1, math.isqrt(count))
    rows = -(-count // block)
    fine = np.arange(block)[:, None] * step * z
    coarse = (np.arange(rows) * block)[:, None] * step * z
    left = (np.cos(coarse) + 1j * np.sin(coarse)) * weights
    right = np.cos(fine) + 1j * np.sin(fine)
    total = np.zeros((rows, block), dtype=np.complex128)
    pieces = range(0, z.size, _SLICE)
    for start in pieces:
        total += left[:, start : start + _SLICE] @ right[:, start : start + _SLICE].T
    wrong = (4.0 * min(z.size, _SLICE) + len(pieces) + 8.0 + 4.0 * SINCOS_ULPS) * U
    return total.ravel()[:count], wrong
