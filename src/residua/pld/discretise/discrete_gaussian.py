"""The discrete Gaussian on the integers, shifted by an integer: an exact testing region.

`P(x) ∝ ρ^{x²}` with `ρ = e^{-1/(2σ²)}`, against the same shifted by `k` (Canonne, Kamath and
Steinke 2020). The loss falls in `x`, so the best tests are thresholds `x <= m`. Weights are worked
out in integers over 2^480, `w_{x+1} = w_x ρ^{2x+1}`, each at most `4 (x+2)²` units too small; sums
of them bound the vertices of the testing region, which is then rounded outward (`above`) or inward
to 2^-400. Tails lighter than that become mass at infinity.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

from residua.pld.arithmetic.exact import ExactAtoms, region
from residua.pld.arithmetic.rational import Side, exp_of
from residua.work_limit import work

_BITS = 480
_GRID_BITS = 400
_DEPTH = 2.0 * 280.0
"""Twice the log of the lightest weight kept, `e^-280` or 2^-400."""
LARGEST_SIGMA = 2000.0
LARGEST_SHIFT = 10_000


def discrete_gaussian(sigma: float, shift: int, side: Side) -> ExactAtoms:
    """A finite PLD above or below the discrete Gaussian against itself shifted by `shift >= 1`.

    Meant for `sigma` and `shift` up to the largest named above: all values are written out.
    """
    reach = int(sigma * _DEPTH**0.5) + 2
    work(4000.0 * reach, 2000.0 * reach)
    least = _weights(sigma, reach)
    slack = [4 * (x + 2) ** 2 for x in range(reach + 1)]
    most = [w + e for w, e in zip(least, slack, strict=True)]
    # Beyond `reach` the weights fall faster than geometrically, by at least ρ^{2 reach}.
    outside = 4 * most[-1] + (1 << 40)
    total_least = 2 * sum(least) - least[0]
    total_most = 2 * sum(most) - most[0] + 2 * outside
    # P(x <= m) for m = -reach-1, …, reach, below and above, as numerators.
    mirrored = [*reversed(range(1, reach + 1)), *range(reach + 1)]
    low = list(accumulate((least[x] for x in mirrored), initial=0))
    high = list(accumulate((most[x] for x in mirrored), initial=outside))
    grid = 1 << _GRID_BITS
    floors = [(v << _GRID_BITS) // total_most for v in low]
    ceilings = [-((-min(v, total_least) << _GRID_BITS) // total_least) for v in high]
    # The test x <= m catches P up to m, and Q (shifted right) up to m - k; past the end of P only Q
    # still grows.
    end = 2 * reach + 2
    past = range(max(end - shift, 0), end)
    if side == "above":
        points = [(floors[i - shift] if i >= shift else 0, ceilings[i]) for i in range(end)]
        points += [(floors[j], grid) for j in past]
        whole = [(0, max(p for q, p in points if q == 0)), *((q, p) for q, p in points if q > 0)]
        return region(whole, grid, grid)
    points = [(ceilings[max(i - shift, 0)], floors[i]) for i in range(end)]
    points += [(ceilings[j], floors[-1]) for j in past]
    inner = [(q, max(p, q)) for q, p in points]
    return region([(0, 0), *inner, (grid, grid)], grid, grid)


def _weights(sigma: float, reach: int) -> list[int]:
    """`ρ^{x²}` for `x = 0, …, reach`, over 2^480, rounded down."""
    one = 1 << _BITS
    rho = _floor(exp_of(-1 / (2 * Fraction(sigma) ** 2), "below") * one)
    square = rho * rho >> _BITS
    weights, step = [one], rho
    for _ in range(reach):
        weights.append(weights[-1] * step >> _BITS)
        step = step * square >> _BITS
    return weights


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator
