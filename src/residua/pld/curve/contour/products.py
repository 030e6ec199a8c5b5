"""Products and powers of node values, each with a bound on its relative error.

A value that is lost in its own error, or too small to matter, is replaced by a bound on its size.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import U
from residua.work_limit import work

_LOST = 1.2
"""Relative error of a value that is only a bound: the truth is within twice its size."""
_FROZEN = 1e-200
_FLOOR_LOG = 650.0
COMPLEX_PRODUCT = 3.0 * U
"""Relative error of one complex product (sqrt(5) u, Brent, Percival and Zimmermann 2007)."""


def powers(
    v: NDArray[np.complex128], e: Floats, counts: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """`v^n` row by row and its relative error; a value lost in its own error becomes a bound."""
    work(v.size * (6.0 + 3.0 * math.log2(float(counts.max()))))
    size = np.abs(v)
    if not (counts != 1.0).any():
        relative = e / np.maximum(size, _FROZEN) * (1.0 + 4.0 * U)
        if float(relative.max()) < 0.5 and float(size.min()) > _FROZEN:
            return v, relative
        lost = (relative >= 0.5) | (size <= _FROZEN)
        return np.where(lost, size + e + _FROZEN + 0j, v), np.where(lost, _LOST, relative)
    reach = size + e
    relative = counts * (e / np.maximum(size, 1e-300)) * (1.0 + 4.0 * U)
    lost = (size <= 2.0 * e) | (counts * np.log(reach) < -600.0)
    relative = relative + counts * COMPLEX_PRODUCT
    v = _integer_power(v, counts.astype(np.int64).ravel())
    if lost.any():
        bound = np.exp(np.maximum(counts * np.log(reach) + 1e-6, -_FLOOR_LOG))
        v = np.where(lost, bound + 0j, v)
        relative = np.where(lost, _LOST, relative)
    return v, relative


def multiply(
    value: NDArray[np.complex128], error: Floats, v: NDArray[np.complex128], relative: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """One more factor. Values below 1e-200 are frozen at a bound: no factor exceeds 1."""
    work(8.0 * v.size)
    product = value * v
    total = error + relative + COMPLEX_PRODUCT
    if np.abs(product).min() < _FROZEN:
        frozen = np.abs(value) < _FROZEN
        product = np.where(frozen, value, product)
        total = np.where(frozen, error, total)
        small = ~frozen & (np.abs(product) < _FROZEN)
        logs = np.log(np.maximum(np.abs(product), 1e-300)) + total
        bound = np.exp(np.clip(logs, -_FLOOR_LOG, 0.0))
        product = np.where(small, bound + 0j, product)
        total = np.where(small, _LOST, total)
    return product, total


def _integer_power(v: NDArray[np.complex128], counts: NDArray[np.int64]) -> NDArray[np.complex128]:
    """Square and multiply, one exponent a row: relative error `(n - 1)` complex products."""
    result = np.ones_like(v)
    base = v
    left = counts.copy()
    while True:
        odd = (left & 1).astype(bool)
        if odd.any():
            result = np.where(odd[:, None], result * base, result)
        left >>= 1
        if not left.any():
            return result
        base = base * base
