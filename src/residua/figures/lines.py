"""Curves as lines of few points, for pictures.

A tradeoff curve is drawn from the hockey-stick curve: `τ(α) = sup_x (1 - h(x) - x α)`, and 0
where that is negative. The sup over finitely many `x`, with `h` from above, is a lower bound of
the curve, and exact where these hold the kinks of a finite PLD. Lines are then thinned: points that
lie on the chord of their neighbours, as far as an eye can tell, are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats
from residua.pld.curve.reads import kinks

if TYPE_CHECKING:
    from residua.pld.pld import Pld

__all__ = ["delta_line", "thinned", "tradeoff_line"]

_ALPHA = np.linspace(0.0, 1.0, 501)
_T = np.linspace(-14.0, 14.0, 1401)
_MANY = 4096


def tradeoff_line(pld: Pld) -> tuple[Floats, Floats]:
    """Type I errors in [0, 1] and least type II errors, from below, for a symmetric PLD."""
    t = np.unique(np.concatenate([_T, kinks(pld, _MANY)]))
    x = np.exp(t)
    least = 1.0 - np.asarray(pld.hockey_stick(x))
    beta = np.array([max(0.0, float(np.max(least - x * alpha))) for alpha in _ALPHA])
    return thinned(_ALPHA, beta)


def delta_line(pld: Pld, eps: Floats) -> Floats:
    """`delta(eps)` from above, at the points given."""
    return np.asarray(pld.delta(eps), dtype=np.float64)


def thinned(x: Floats, y: Floats, share: float = 4e-4) -> tuple[Floats, Floats]:
    """The line without the points that are within a share of its height of what is left of it."""
    height = float(np.ptp(y)) or 1.0
    keep = np.zeros(x.size, dtype=bool)
    keep[[0, -1]] = True
    open_ = [(0, x.size - 1)]
    while open_:
        first, last = open_.pop()
        if last - first < 2:
            continue
        inner = slice(first + 1, last)
        chord = np.interp(x[inner], x[[first, last]], y[[first, last]])
        miss = np.abs(y[inner] - chord)
        worst = int(np.argmax(miss))
        if miss[worst] > share * height:
            middle = first + 1 + worst
            keep[middle] = True
            open_ += [(first, middle), (middle, last)]
    return x[keep], y[keep]
