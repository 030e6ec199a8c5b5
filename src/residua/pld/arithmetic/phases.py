"""Characteristic functions of weighted points at equally spaced frequencies.

`V_k = Σ w_j e^{ikθ_j}` for `k < N`, weights positive with sum 1, by Gaussian gridding (Dutt and
Rokhlin 1993; Greengard and Lee 2004). The weights are spread onto a
grid of `M` points by `e^{-θ²/(4τ)}` and transformed; the grid's Fourier coefficients are
`Σ_p V_{k+pM} e^{-(k+pM)²τ}` times a constant, so division by `e^{-k²τ}` leaves `V_k` with

* aliases: `|V| <= 1` and `(k - M)² - k² >= M (M - 2N)`, at most `2.1 e^{-τ M (M - 2N)}`;
* the Gaussian cut off `w` grid points away: at most `e^{k²τ}` times its missing share, which is
  below `e^{-π² w² / (M² τ)}` for the normalised kernel.

With `M >= 8N` and `τ = 50/M²` both are below 1e-16 at `w = 15`. Rounding: sums of at most `J`
positive terms in a cell of one of 8 grids, `(J + 8) u`; the transform, `16 log2(M) u` (pocketfft
measures far below); all times `e^{k²τ} <= 2.2`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.work_limit import work

_SPREAD = 50.0
"""`τ M²`: a wider kernel needs more cells, a narrower one a finer grid."""
_REACH = 15
"""Cells on each side of a point that its weight is spread onto."""
_LANES = 8
"""Grids that are filled side by side and then added up: keeps the sums short."""


def phase_sums(
    weights: Floats, z: Floats, step: float, count: int
) -> tuple[NDArray[np.complex128], float]:
    """`Σ w_j e^{iωz_j}` at `ω = 0, step, …, (count-1) step`, for positive weights summing to 1.

    The second value bounds the absolute error of all but the arguments: that (`8u ω |z|`) is left
    to the caller.
    """
    work(150.0 * z.size + 150.0 * count, 1000.0 * z.size + 500.0 * count)
    theta = z * step
    size = _grid_size(8 * count)
    cell = 2.0 * math.pi / size
    place = theta / cell
    nearest = np.rint(place)
    offsets = np.arange(-_REACH, _REACH + 1)
    # In units of a cell, e^{-θ²/(4τ)} with τ = 50/M² is e^{-(π²/50) d²}.
    gaps = (place - nearest)[:, None] - offsets
    gaps *= gaps
    gaps *= -(math.pi**2) / _SPREAD
    spread = np.exp(gaps, out=gaps)
    spread *= weights[:, None]
    # Each lane has a margin on both sides, folded in at the end.
    wide = size + 2 * _REACH
    first = nearest.astype(np.int64) % size + wide * (np.arange(theta.size) % _LANES)
    cells = first[:, None] + np.arange(2 * _REACH + 1)
    lanes = np.bincount(cells.ravel(), spread.ravel(), _LANES * wide)
    padded = lanes.reshape(_LANES, wide).sum(axis=0)
    grid = padded[_REACH:-_REACH]
    grid[-_REACH:] += padded[:_REACH]
    grid[:_REACH] += padded[-_REACH:]
    transformed = np.asarray(np.conj(np.fft.rfft(grid)[:count]), dtype=np.complex128)
    k = np.arange(float(count))
    tau = _SPREAD / size**2
    scale = 1.0 / math.sqrt(math.pi * _SPREAD / math.pi**2)
    values = transformed * (scale * np.exp(tau * k * k))
    terms = theta.size / _LANES + _LANES + 2.0
    wrong = (terms + 16.0 * math.log2(size) + 4.0 * EXP_ULPS + 32.0) * U * 2.5
    return np.asarray(values, dtype=np.complex128), wrong + 1e-15


def _grid_size(least: int) -> int:
    """The next power of two, or three times one."""
    power = 1 << max(least - 1, 1023).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= max(least, 1024) else power
