"""One quadrature for all `l`: places and weights with `A(l) ≈ Σ W e^{-y²/2m² + ly}`.

Between two losses the excess of atoms `(p, q)` is a combination of `e^{y/2}` and `e^{-y/2}`. On
`y > 0` let, over the atoms beyond `y`, with `w = √(pq)`,

    e(y) = Σ w 2 sinh((z-y)/2),     f(y) = Σ w 2 cosh((z-y)/2) = -2 e'(y).

From a loss down to the next, `e' = e cosh + f sinh` and `f' = f cosh + e sinh` of half the gap,
sums of positive terms; each tent alone is then off by at most `3u` a step and 32u for as often as
it grows by a factor (at most 40 times from its first step, and half the range). Each gap is cut
into panels for Gauss–Legendre.

*Error of a panel* of length `h`. A rule of `N` nodes is exact up to degree `2N - 1`; with `M` the
largest modulus on the ellipse of parameter `ρ` Chebyshev's coefficients are at most `2M ρ^-k`, so
it is wrong by at most `(64/15) M ρ^{-2N} / (1 - ρ^-2)` on `(-1, 1)`. With semi-axes `a`, `b` of the
ellipse, `R = h/2 + a` and `s` the slope of the exponent in the middle, `M` is at most

    max(cosh(R/2), 4 sinh(R/2) / h) e^{s a + b²/2m²}

times the mean of `e` and the exponential in the middle, and that over the panel is at least
`e^{-sh/2 - h²/8m²}` of that in the middle. So for `h` at most `r` times the smallest of `m/2`, 1
and `3/s` the relative error is a function of `r`, and the shorter, the fewer nodes will do.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from residua.bounds import LARGEST_EPS, Floats
from residua.pld.arithmetic import MANY
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS
from residua.work_limit import work

QUADRATURE = 2e-13
"""Relative error of each panel, at most."""
_ORDERS = range(4, 13)
_ELLIPSES = np.geomspace(2.0, 1e5, 80)


class Nodes(NamedTuple):
    """Places, logarithms of weights, and what is summed over them.

    The columns: the share of the weight that counts (1, or less where weights of atoms have
    either sign), the same times `y` and `y²`, then 1 and `f / 2e`, both of absolute values.
    """

    places: Floats
    logs: Floats
    columns: Floats
    reach: float
    ulps: float


def longest_panel(m2: float, steepest: float) -> int:
    """The binary exponent of a length that panels may have under slopes up to `steepest`."""
    allowed = min(0.5 * math.sqrt(m2), 1.0, 3.0 / max(steepest, 1e-300))
    return math.frexp(allowed)[1] - 1


@lru_cache(maxsize=64)
def order(halvings: int) -> int:
    """How many nodes a panel of `2^-halvings` of what is allowed needs."""
    h = 0.5**halvings
    a, b = (0.25 * h * (_ELLIPSES + side / _ELLIPSES) for side in (1.0, -1.0))
    reach = 0.5 * h + a
    with np.errstate(over="ignore"):
        ratio = np.maximum(np.cosh(0.5 * reach), 4.0 * np.sinh(0.5 * reach) / h)
        # s = 3 and m = 2 in these units, and e grows most where the length allowed is 1.
        most = np.log(ratio) + 3.0 * (a + 0.5 * h) + (b * b + 0.25 * h * h) / 8.0
    for nodes in _ORDERS:
        log = most - 2.0 * nodes * np.log(_ELLIPSES) - np.log1p(-(_ELLIPSES**-2.0))
        if float(log.min()) + math.log(64.0 / 30.0) <= math.log(QUADRATURE):
            return nodes
    return _ORDERS[-1] + 1


def quadrature(weights: Floats, losses: Floats, exponent: int) -> Nodes | None:
    """Nodes for panels of length up to `2^exponent`; None where that would be too many."""
    parts = []
    for sign in (1.0, -1.0):
        z = sign * losses
        kept = z > 0.0
        if kept.any():
            step = 1 if sign > 0.0 else -1
            made = _side(z[kept][::step], weights[kept][::step], exponent)
            if made is None:
                return None
            parts.append((sign, made))
    if not parts:
        return None
    y = np.concatenate([sign * made[0] for sign, made in parts])
    joined = (np.concatenate([made[i] for _, made in parts]) for i in (1, 2, 3))
    value, share, slope = joined
    counts = value > 0.0
    y, value, share, slope = y[counts], value[counts], share[counts], slope[counts]
    if not 0 < y.size <= 4 * MANY:
        return None
    logs = np.log(value)
    reach = float(np.abs(y).max())
    ulps = 3.0 * losses.size + 1300.0 + 16.0 * reach + EXP_ULPS + y.size
    ulps += (EXP_ULPS + 8.0) * float(np.abs(logs).max()) + 128.0
    columns = np.column_stack([share, share * y, share * y * y, np.ones(y.size), slope])
    return Nodes(y, logs, columns, reach, ulps)


def _side(z: Floats, w: Floats, exponent: int) -> tuple[Floats, ...] | None:
    """Places, weights, shares and slopes of one side, at ascending distances."""
    gaps = np.diff(z, prepend=0.0)
    longest = math.ldexp(1.0, exponent)
    counts = np.ceil(gaps / longest)
    if not float(z[-1]) <= LARGEST_EPS or not float(counts.sum()) <= 4 * MANY:
        return None
    panels = np.maximum(counts, 1.0).astype(np.int64)
    size = np.repeat(gaps / panels, panels)
    widest = float(size.max())
    if widest == 0.0:
        return None
    rule = _rule(order(min(max(0, exponent - math.frexp(widest)[1]), 40)))
    if rule is None:
        return None
    first = np.cumsum(panels) - panels
    number = np.arange(size.size) - np.repeat(first, panels)
    work(60.0 * number.size * rule[0].size + 200.0 * z.size, 100.0 * number.size * rule[0].size)
    x = (number[:, None] + rule[0]) * size[:, None]
    y = np.repeat(z, panels)[:, None] - x
    sinh, rise = _half(x)
    e, f = (np.repeat(values, panels)[:, None] for values in ladder(gaps, np.abs(w)))
    value = e + (e * rise + f * sinh)
    slope = 0.5 * (f + (f * rise + e * sinh)) / np.where(value > 0.0, value, 1.0)
    share = np.ones_like(value)
    if (w < 0.0).any():
        e, f = (np.repeat(values, panels)[:, None] for values in ladder(gaps, w))
        share = (e + (e * rise + f * sinh)) / np.where(value > 0.0, value, 1.0)
    weight = value * (rule[1] * size[:, None])
    return tuple(column.ravel() for column in (y, weight, share, slope))


def ladder(gaps: Floats, w: Floats) -> tuple[Floats, Floats]:
    """`e` and `f` next below each loss, from the last down."""
    sinh, rise = (values.tolist() for values in _half(gaps))
    steps = zip(sinh[::-1], rise[::-1], (2.0 * w).tolist()[::-1], strict=True)
    es, fs = [], []
    e = f = 0.0
    for s, c, jump in steps:
        f += jump
        es.append(e)
        fs.append(f)
        e, f = e + (e * c + f * s), f + (f * c + e * s)
    return np.array(es[::-1]), np.array(fs[::-1])


def _half(x: Floats) -> tuple[Floats, Floats]:
    """`sinh(x/2)` and `cosh(x/2) - 1`."""
    t = np.expm1(0.5 * x)
    part = t / (1.0 + t)
    return 0.5 * (t + part), 0.5 * t * part


@lru_cache(maxsize=len(_ORDERS))
def _rule(nodes: int) -> tuple[Floats, Floats] | None:
    """Nodes and weights on (0, 1)."""
    if nodes not in _ORDERS:
        return None
    x, w = np.polynomial.legendre.leggauss(nodes)
    return 0.5 * (x + 1.0), 0.5 * w
