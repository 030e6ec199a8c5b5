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

from residuum.pld.exact import ExactAtoms, region
from residuum.pld.rational import Side, exp_of

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
    points = []
    for i in range(2 * reach + 2):
        # The test x <= m catches P up to m, and Q (shifted right) up to m - k.
        j = i - shift
        p_low, p_high = _ratio(low[i], total_most), _ratio(high[i], total_least)
        q_low = _ratio(low[j], total_most) if j >= 0 else Fraction(0)
        q_high = _ratio(high[max(j, 0)], total_least)
        points.append((q_low, p_high) if side == "above" else (q_high, p_low))
    for j in range(2 * reach + 2 - shift, 2 * reach + 2):
        # Past the end of P only Q still grows.
        q_low, q_high = _ratio(low[j], total_most), _ratio(high[j], total_least)
        points.append(
            (q_low, Fraction(1)) if side == "above" else (q_high, _ratio(low[-1], total_most))
        )
    if side == "above":
        whole = [(_floor(q * grid), min(_ceil(p * grid), grid)) for q, p in points]
        whole = [(0, max(p for q, p in whole if q == 0)), *((q, p) for q, p in whole if q > 0)]
        return region(whole, grid, grid)
    whole = [(min(_ceil(q * grid), grid), _floor(p * grid)) for q, p in points]
    inner = [(q, max(p, q)) for q, p in whole]
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


def _ratio(part: int, whole: int) -> Fraction:
    return min(Fraction(part, whole), Fraction(1))


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
