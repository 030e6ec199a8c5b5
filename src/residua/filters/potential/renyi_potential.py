"""The Rényi potential `φ_ρ(x) = c_α e^{(α-1)ρ} x^{-(α-1)}`, `c_α = (1-1/α)^{α-1} / α`.

It lies above every curve of Rényi divergence `ρ` at the order `α` (`(1-x)_+ <= φ_0(x)`, averaged).
Any budget `B` with `h_B <= φ_ρ`, in both directions, may take the place of what is left when `ρ`
is left: `E_L[φ_{ρ-ρ_L}(x e^{-Z})] <= φ_ρ(x)`, so the potential covers all such choices at once.

`potential_cost` is the least such `ρ`, from above: the supremum over `t` of

    g(t) = t + ln(h_B(e^t) / c_α) / (α-1),

never more than the Rényi divergence.

* Left of `best + ln(c_α)/(α-1)` the bound `h <= 1` gives `g <= best`.
* Right of some `t` so does `h(e^t) <= c_{λ+1} E e^{λZ} e^{-λt}` for a `λ > α - 1`.
* On a cell between, `h` lies below its chord in `x`, and `(A - m y) y^{α-1}` is largest at
  `y = A (α-1) / (m α)` or at an end.
"""

from __future__ import annotations

import math

import numpy as np

from residua.bounds import Floats
from residua.pld.pld import Pld
from residua.work_limit import remembered, work

_WIDTH = 1e-7
_ROUNDS = 60
_CELLS = 64
_SLACK = 1e-12


def log_constant(alpha: float) -> float:
    """`ln c_α`, to a few units in the last place."""
    return (alpha - 1.0) * math.log1p(-1.0 / alpha) - math.log(alpha)


@remembered(maxsize=1024)
def potential_cost(budget: Pld, alpha: float) -> float:
    """The least `ρ` with `h <= φ_ρ` for the budget and its reversal, upper bound (inf if none)."""
    cost = _one_way(budget, alpha)
    return cost if budget.is_symmetric else max(cost, _one_way(budget.reverse(), alpha))


def _one_way(budget: Pld, alpha: float) -> float:
    if budget.is_identity:
        return 0.0
    if budget.mass_at_infinity > 0.0:
        return math.inf
    s = alpha - 1.0
    constant = log_constant(alpha)
    top = budget.renyi(math.inf)
    # A first guess of where the supremum is: the tilted mean, by a difference of log moments.
    divergence = budget.renyi(alpha)
    moment = s * divergence
    if not math.isfinite(moment):
        return math.inf
    spread = 1e-3 * alpha
    centre = ((s + spread) * budget.renyi(alpha + spread) - moment) / spread
    sample = np.linspace(0.0, 2.0 * centre, 65)
    best = float(np.max(_heights(budget, np.minimum(sample, top), s, constant)[1]))
    left = best + constant / s - 1e-9
    right = min(top, _right_end(budget, s, constant, best))
    if not right > left:
        return float(min(best + _SLACK * (1.0 + abs(best) + 1.0 / s), divergence))
    t = np.linspace(left, right, _CELLS)
    h, g = _heights(budget, t, s, constant)
    for _ in range(_ROUNDS):
        best = max(best, float(np.max(g)))
        above = _cell_tops(t[:-1], t[1:], h[:-1], h[1:], s, constant)
        open_ = np.flatnonzero(above > best + _WIDTH * abs(best))
        if not open_.size or t.size > 1 << 14:
            break
        middle = 0.5 * (t[open_] + t[open_ + 1])
        new_h, new_g = _heights(budget, middle, s, constant)
        t, h, g = (
            np.insert(old, open_ + 1, new) for old, new in ((t, middle), (h, new_h), (g, new_g))
        )
    found = max(best, float(np.max(above))) + _SLACK * (1.0 + abs(best) + 1.0 / s)
    return float(min(found, divergence))


def _heights(budget: Pld, t: Floats, s: float, constant: float) -> tuple[Floats, Floats]:
    """`h(e^t)` from above, and `g` of it."""
    h = np.asarray(budget.delta(t))
    with np.errstate(divide="ignore"):
        return h, t + (np.log(h) - constant) / s


def _right_end(budget: Pld, s: float, constant: float, best: float) -> float:
    """A `t` beyond which `g <= best`, by Chernoff's bound at the tilt that serves best."""
    ends = []
    for ratio in (1.1, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0):
        tilt = ratio * s
        moment = tilt * budget.renyi(1.0 + tilt)
        if math.isfinite(moment):
            numerator = log_constant(1.0 + tilt) + moment - constant - s * best
            ends.append(numerator / (tilt - s))
    end = float(min(ends, default=math.inf))
    return end + 1e-9 * (1.0 + abs(end))


def _cell_tops(
    a: Floats, b: Floats, at_a: Floats, at_b: Floats, s: float, constant: float
) -> Floats:
    """Upper bound of `g` on each cell, from the chord of `h` in `x = e^a y`."""
    work(40.0 * a.size)
    width = np.expm1(b - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.maximum(at_a - at_b, 0.0) / width
        level = at_a + slope
        y = np.clip(np.nan_to_num(level * s / (slope * (s + 1.0)), nan=1.0), 1.0, 1.0 + width)
        chord = np.maximum(level - slope * y, at_b)
        return a + np.log(y) + (np.log(chord) - constant) / s
