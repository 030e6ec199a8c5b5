"""A dominating finite loss on a lattice, for compositions that are not finite.

Splitting an atom `(p, q)` at `z` between two points `a < z < b` so that both masses are kept gives
a loss above (the atom is recovered by merging them). With weights `√(pq)` the shares are
`sinh((b-z)/2) / sinh((b-a)/2)` and `sinh((z-a)/2) / sinh((b-a)/2)`. A density is split cell by cell
in the same way. On a lattice of spacing `d` each factor's variance grows by `d²/6` or so, its cost
by as much; composition is then a convolution of positive numbers.

A tilted law that is constant, `k`, on a cell `[a, b]` gives `2k tanh((b-a)/4)` to each end.

How much that is too much: since `e_{L ⊕ M} = e_L + T_L * e_M` with the tilted law `T_L` of mass at
most 1, excesses of compositions differ by no more than the sum over factors of `∫ (e_L' - e_L)`,
which is four times the difference of the masses of the tilted laws. At `l = 0` the transform
differs by no more than that either.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import MANY
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, ROUNDING, U
from residua.pld.pld import Pld
from residua.pld.residue.excess import FiniteExcess
from residua.pld.residue.finite import LOG_LEAST, finite_excess, symmetrised
from residua.pld.residue.symmetric_family import CentralLaw, central_law, renyi_cost, tilted
from residua.work_limit import work

_LOSS = 3e-7
"""What the lattice may add to the cost, relative, if the work allows."""
_WORK = 2e8
"""Multiplications that all convolutions together may take, about a fifth of a second."""


class LatticeExcess(NamedTuple):
    """The excess of a finite loss above, and a bound on `∫ (e_L' - e_L)`, what it has too much."""

    excess: FiniteExcess
    surplus: float


def lattice_excess(pld: Pld) -> LatticeExcess | None:
    """A dominating finite loss; None where the losses are not bounded, or too small to carry."""
    parts: list[tuple[_Part, int]] = []
    for factor, n in pld.terms.items():
        one = Pld(None, {factor: 1})
        part = central_law(one) or finite_excess(one)
        if part is None:
            return None
        parts.append((part, n))
    reach = sum(n * _reach(part) for part, n in parts)
    rough = sum(n * _rough_cost(part) for part, n in parts)
    count = sum(n for _, n in parts)
    spacing = math.sqrt(6.0 * _LOSS * rough / count)
    points = 2.0 * reach / spacing
    # Doubling up to the last convolution costs about a third of the square of its length.
    work = points * points / 3.0 if count > 1 else points
    spacing *= max(1.0, math.sqrt(work / _WORK), points / (2 * MANY))
    total: tuple[Floats, int] | None = None
    wrong = loss = surplus = 0.0
    for part, n in parts:
        law, start, error, drift = _on_lattice(part, spacing)
        surplus += n * (4.0 * abs(_mass(part) - float(law.sum())) + 4.0 * error + 256.0 * U)
        powered, length = _power(law, start, n)
        wrong += n * (error + ROUNDING)
        loss += n * drift
        wrong += 2.0 * powered.size * U * (1 + n.bit_length())
        total = (powered, length) if total is None else _convolved(total, (powered, length))
    if total is None:
        return None
    wrong += total[0].size * U * len(parts)
    z = np.arange(float(total[1]), float(total[1] + total[0].size)) * spacing
    if not float(total[0].min()) > math.exp(LOG_LEAST):
        return None
    made = FiniteExcess(total[0], z, 1.1 * wrong, loss + 2.0 * U * float(np.max(np.abs(z))))
    return LatticeExcess(symmetrised(made) if pld.is_symmetric else made, 1.01 * surplus)


_Part = CentralLaw | FiniteExcess


def _reach(part: _Part) -> float:
    """The largest absolute value of a loss."""
    return part.eps if isinstance(part, CentralLaw) else max(part.top, -part.bottom)


def _rough_cost(part: _Part) -> float:
    if isinstance(part, CentralLaw):
        return renyi_cost(part)
    return max(-8.0 * math.log1p(-min(part.missing, 0.99)), 1e-300)


def _mass(part: _Part) -> float:
    """`E e^{-Z/2}`, to the errors that `_on_lattice` states."""
    if not isinstance(part, CentralLaw):
        return float(part.weights.sum())
    ends, flat = tilted(part)
    return 2.0 * (ends + part.eps * flat)


def _on_lattice(part: _Part, d: float) -> tuple[Floats, int, float, float]:
    """Weights, the index of the first point, relative error of weights, absolute of losses."""
    if isinstance(part, CentralLaw):
        return *_family_on_lattice(part, d), (EXP_ULPS + 64.0) * U, 4.0 * U * part.eps
    made, start = _atoms_on_lattice(part.losses, part.weights, d)
    return made, start, part.weight_error + 32.0 * U, part.loss_error + 4.0 * U * _reach(part)


def _atoms_on_lattice(z: Floats, weights: Floats, d: float) -> tuple[Floats, int]:
    at = np.floor(z / d).astype(np.int64)
    start = int(at[0])
    share = z - at * d
    whole = math.sinh(0.5 * d)
    upper = weights * np.sinh(0.5 * np.clip(share, 0.0, d)) / whole
    lower = weights * np.sinh(0.5 * np.clip(d - share, 0.0, d)) / whole
    size = int(at[-1]) - start + 2
    made = np.bincount(at - start, lower, size) + np.bincount(at - start + 1, upper, size)
    return made.astype(np.float64), start


def _family_on_lattice(law: CentralLaw, d: float) -> tuple[Floats, int]:
    e, (atom, density) = law.eps, tilted(law)
    # Cells of length d, the last of which ends at or beyond e: a density up to there is above.
    cells = math.ceil(e / d)
    ends, start = _atoms_on_lattice(np.array([-e, e]), np.array([atom, atom]), d)
    made = np.zeros(2 * cells + 1)
    made += density * 4.0 * math.tanh(0.25 * d)
    made[0] = made[-1] = density * 2.0 * math.tanh(0.25 * d)
    # The last cells are only partly filled.
    part = e - (cells - 1) * d
    inner, outer = _partial_cell(part, d)
    for edge, inside in ((0, 1), (-1, -2)):
        made[edge] = density * outer
        made[inside] += density * (inner - 2.0 * math.tanh(0.25 * d))
    shift = start + cells
    size = max(made.size + max(-shift, 0), ends.size + max(shift, 0))
    total = np.zeros(size)
    first = min(start, -cells)
    total[-cells - first : -cells - first + made.size] += made
    total[start - first : start - first + ends.size] += ends
    return total, first


def _partial_cell(part: float, d: float) -> tuple[float, float]:
    """Shares of a unit density on `[0, part]` of the cell `[0, d]`, for its two ends."""
    whole = math.sinh(0.5 * d)
    outer = 4.0 * math.sinh(0.25 * part) ** 2 / whole
    # ∫ sinh((d - x)/2) dx over (0, part) = 2 (cosh(d/2) - cosh((d - part)/2)).
    inner = 4.0 * math.sinh(0.25 * (2.0 * d - part)) * math.sinh(0.25 * part) / whole
    return inner, outer


def _convolved(a: tuple[Floats, int], b: tuple[Floats, int]) -> tuple[Floats, int]:
    work(0.2 * a[0].size * b[0].size)
    return np.convolve(a[0], b[0]), a[1] + b[1]


def _power(law: Floats, start: int, n: int) -> tuple[Floats, int]:
    """The `n`-fold convolution, by doubling."""
    result: tuple[Floats, int] | None = None
    square = (law, start)
    while n:
        if n & 1:
            result = square if result is None else _convolved(result, square)
        n >>= 1
        if n:
            square = _convolved(square, square)
    assert result is not None
    return result
