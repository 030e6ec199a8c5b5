"""Node values of different Laplaces and responses, many nodes at a time (`many_atoms.py`).

With `s = λ + iω`, `h = s/(2s+1)`, `q = 1 + 1/s`,

    M(s) / M(λ) = e^{iωe} h (q + d e^{-2iωe}) / b,       d = e^{-(2λ+1)e},  b = M(λ) e^{-λe}

for a Laplace, and the same with `h = q = 1` for a response. So the factors `e^{iωe}` are taken
together as one, of the sum of all `e`, powers of `h` a few at a time, and each query's own phase
is an outer product: node `k = aB + c` has `e^{-2iωe} = e^{-2ie aB step} e^{-2ie c step}`, a few
hundred sines for all nodes.

Errors, in units of `u`. No factor exceeds 1 in modulus, so that absolute errors add up. With
sines and cosines off by `S`, exponentials by `X` and `Y` (`exp`, `expm1`):

* the phase `e^{-2iωe}`: `e` is off by 1 and each argument by 2 more, together `6ωe`; two sines and
  cosines, `2√2 S`; their product 3;
* `d`: `X`, and its exponent by 4 relative, at most 2 in all since `x e^{-x} < 1/2`; `h` and `q`:
  16 each, relative (`2s+1` and `s` are off by 2, a complex division by 12 at most);
* so `h (q + d z)` by 34 of `|hq| <= 1`, of `|hd| <= 1/2` (1 for a response) by
  `16 + X + 2 + 3 + 2√2 S + 6ωe + 6`, and by 8 for sum and products, over `b >= 1/2` (for a response
  `b = 1 + d >= 1`), and `b` by `Y + 8` relative: altogether below
  `2 (34 + 27 + X + 3S + 6ωe + 8) + Y + 8 = 146 + 2X + 6S + Y + 12ωe`;
* one more product and the one by powers of `1/b`: 6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, EXPM1_ULPS, SINCOS_ULPS, U
from residua.pld.curve.contour.nodes import Line
from residua.pld.families.factors import Factor, Terms, largest_loss
from residua.pld.families.laplace import Laplace
from residua.work_limit import work

BLOCK = 128
"""Nodes of the fine phase; counts of nodes are multiples of it."""
FARTHEST = 1e7
"""Largest argument of sines and cosines (`ulp_bounds.py`)."""
STEP = (152.0 + 2.0 * EXP_ULPS + 6.0 * SINCOS_ULPS + EXPM1_ULPS) * U
TURN = 12.0 * U
"""Absolute error of one factor's value, and what `ωe` adds to it."""
_OFTEN = 16
"""Factors after which nodes are looked at."""
_SPAN = 48 * BLOCK
"""Nodes worked on at a time, which stay close to the processor."""

Nodes = NDArray[np.complex128]


def shares(line: Line) -> tuple[Nodes, Nodes]:
    """`h` and `q` at the nodes."""
    s = np.asarray(line.lam + 1j * line.omega, dtype=np.complex128)
    return s / (2.0 * s + 1.0), 1.0 + 1.0 / s


def products(
    line: Line,
    common: tuple[Nodes, Nodes],
    values: Nodes,
    terms: Terms,
    wrong: tuple[float, float],
    enough: float,
) -> tuple[Nodes, float]:
    """Values times those of more factors, each turned back by its largest loss.

    `common` are the `shares` of the line, and the result is off by at most `wrong`, of which the
    second is times `ω`. Nodes that come to matter so little that all of them are below `enough`,
    relative to `C`, are left out: the second number is what they come to at most.
    """
    work(2.0 * len(terms) * line.count + 300.0 * len(terms), 16.0 * len(terms) * BLOCK * 4)
    kinds = [(n, *_weights(f, line.lam)) for f, n in terms.items()]
    e = np.array([largest_loss(factor) for factor in terms])
    fine, coarse = turns(line, -2.0 * e)
    left = coarse.view(np.float64).reshape(e.size, -1, 2)
    left *= np.array([d for _, _, d, _ in kinds])[:, None, None]
    # A complex outer product is a real one with `(x, ix)` as two rows.
    right = np.stack([fine, 1j * fine], axis=1).view(np.float64)
    enough *= min(1.0, _SPAN / line.count)
    made, spare = np.empty_like(values), np.empty(_SPAN, dtype=np.complex128)
    lost = 0.0
    for start in range(0, line.count, _SPAN):
        here = slice(start, min(start + _SPAN, line.count))
        rows = slice(here.start // BLOCK, here.stop // BLOCK)
        h, q = (share[here] for share in common)
        old, part, value = values[here], made[here], spare[: here.stop - here.start]
        table = value.view(np.float64).reshape(-1, 2 * BLOCK)
        scale, laplaces = 1.0, 0
        for place, (n, is_laplace, _, share) in enumerate(kinds, 1):
            np.matmul(left[place - 1, rows], right[place - 1], out=table)
            value += q if is_laplace else 1.0
            if n > 1:
                value *= share
                value[:] = _power(value * h if is_laplace else value, n)
            else:
                scale, laplaces = scale * share, laplaces + is_laplace
            np.multiply(old, value, out=part)
            old = part
            if place % _OFTEN == 0 or place == len(kinds):
                if laplaces:
                    part *= _power(h, laplaces)
                part *= scale
                scale, laplaces = 1.0, 0
                if place < len(kinds) and start:
                    most = np.abs(part) + (wrong[0] + wrong[1] * line.omega[here])
                    size = float(most @ line.lower_kernel_size[here])
                    if size * (1.0 + 1e-9) < enough:
                        part[:], lost = 0.0, lost + size * (1.0 + 1e-9)
                        break
    return made, lost


def turns(line: Line, z: Floats) -> tuple[Nodes, Nodes]:
    """`e^{iωz}` at the first nodes, and at every first one of a block; a row for each `z`."""
    fine = np.arange(float(BLOCK)) * line.step
    coarse = np.arange(0.0, float(line.count), BLOCK) * line.step
    return _phases(z[:, None] * fine), _phases(z[:, None] * coarse)


def _phases(argument: Floats) -> Nodes:
    made = np.empty(argument.shape, dtype=np.complex128)
    made.real, made.imag = np.cos(argument), np.sin(argument)
    return made


def _weights(factor: Factor, lam: float) -> tuple[bool, float, float]:
    """Whether it is a Laplace, `d`, and `1/b`."""
    rate, e = 2.0 * lam + 1.0, largest_loss(factor)
    d = math.exp(-rate * e)
    if not isinstance(factor, Laplace):
        return False, d, 1.0 / (1.0 + d)
    return True, d, 1.0 / (1.0 + lam * math.expm1(-rate * e) / rate)


def _power(value: Nodes, n: int) -> Nodes:
    """`value^n`, relative error `3(n - 1)u`."""
    result = None
    while True:
        if n & 1:
            result = value if result is None else result * value
        n >>= 1
        if n == 0 and result is not None:
            return result
        value = value * value
