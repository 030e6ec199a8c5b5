"""Sums over the nodes of a line: `Σ_k Re(w_k e^{-iω_k t})`, `ω_k = k step`, at many `t`.

Few: every phase by itself. Many: `k = aB + b` makes the phase a product `e^{-iaB step t}` times
`e^{-ib step t}`, so that a matrix product takes the place of most sines and cosines.

The same again makes each of the two, if they are long: four phases of about `N^(1/4)` values.

Error, beside that of the arguments (relative `2u` of each part, so at most `2u ω t` together): with
`A`, `B` about `√N` for `N` nodes, and sines and cosines off by `e u`,

    (4√2 e + 6 + √2 · 2A + 2B + 8) u Σ|w|

from four phases, two products of two, complex products of `A` terms, and real sums of `2B`. With
`A, B <= √N + 1` and `e <= 10` that is below `(2e + 1.5 N + 24) u Σ|w|` for `N >= 64`: the plain
sum's, and what the caller charges. Two phases alone, for fewer, have `2√2 e` in place of
`4√2 e + 6`, which is below it for `N >= 16`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.work_limit import work

_BATCH = 1 << 21
_FEWEST = 16
"""Nodes from which on the bound above holds."""
_SHORT = 8
"""Phases that are not made of others: all there are of 64 nodes."""
_WORTH_IT = 1 << 13
"""Phases from which on the matrix product is the quicker way."""

Weights = NDArray[np.complex128]


def line_sums(weights: Sequence[Weights], t: Floats, step: float) -> Floats:
    """One row of sums for each list of weights, all of one length, and one column for each `t`."""
    count = weights[0].size
    if count < _FEWEST or t.size * count < _WORTH_IT:
        return plain_sums(weights, t, step)
    fine = math.isqrt(count - 1) + 1
    coarse = -(-count // fine)
    phases = t.size * (fine + coarse)
    products = len(weights) * t.size * count
    work(4.0 * phases + 0.4 * products, 48.0 * min(phases, _BATCH) + 32.0 * count)
    # Side by side, for one product: row `a` has the weights of all its `b`, list after list.
    tables = np.zeros((len(weights), coarse * fine), dtype=np.complex128)
    tables[:, :count] = weights
    tables = tables.reshape(-1, coarse, fine).transpose(1, 0, 2).reshape(coarse, -1)
    sums = np.empty((len(weights), t.size))
    rows = max(1, _BATCH // (coarse + fine))
    for start in range(0, t.size, rows):
        part = slice(start, start + rows)
        left, right = _phases(t[part], fine * step, coarse), _phases(t[part], step, fine)
        inner = (left @ tables).reshape(-1, len(weights), fine)
        sums[:, part] = np.einsum("ij,ikj->ki", right.real, inner.real)
        sums[:, part] -= np.einsum("ij,ikj->ki", right.imag, inner.imag)
    return sums


def plain_sums(weights: Sequence[Weights], t: Floats, step: float) -> Floats:
    """The same, phase by phase."""
    count = weights[0].size
    work(8.0 * t.size * count, 32.0 * min(t.size * count, _BATCH))
    omega = np.arange(float(count)) * step
    sums = np.empty((len(weights), t.size))
    rows = max(1, _BATCH // count)
    for start in range(0, t.size, rows):
        part = slice(start, start + rows)
        argument = t[part, None] * omega
        cosine, sine = np.cos(argument), np.sin(argument)
        for i, row in enumerate(weights):
            sums[i, part] = cosine @ row.real + sine @ row.imag
    return sums


def _phases(t: Floats, step: float, count: int) -> Weights:
    """`e^{-ik step t}` for `k = 0, …, count - 1`, one row for each `t`; many as products of few."""
    if count <= _SHORT:
        return _turns(t, np.arange(float(count)) * step)
    fine = math.isqrt(count - 1) + 1
    coarse = -(-count // fine)
    slow = _turns(t, np.arange(float(coarse)) * fine * step)
    fast = _turns(t, np.arange(float(fine)) * step)
    return (slow[:, :, None] * fast[:, None, :]).reshape(t.size, -1)[:, :count]


def _turns(t: Floats, omega: Floats) -> Weights:
    """`e^{-iωt}`, one row for each `t`."""
    argument = t[:, None] * omega
    made = np.empty(argument.shape, dtype=np.complex128)
    made.real, made.imag = np.cos(argument), -np.sin(argument)
    return made
