"""Reads of the curve; here, those for packages that choose the points themselves.

`Pld.delta_bounds` and its relatives answer one question about a whole curve. Code that replaces a
curve by one on its own grid needs the right half at points that are known up to an error, where the
curve has come down to a given height, and where the kinks of a finite PLD are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats

if TYPE_CHECKING:
    from residua.pld.pld import Pld


def right_half(pld: Pld, t: Floats, dt: Floats | float, accuracy: float) -> tuple[Floats, Floats]:
    """Proven lower and upper bounds of `h(e^t)` for `t >= 0`.

    Args:
        pld: the PLD; its reversal has the left half, `h(e^-t) = 1 - e^-t + e^-t h_rev(e^t)`.
        t: the points, none negative.
        dt: each point is known up to `±dt`, and the bounds hold for all of these.
        accuracy: the width of the bounds, in `eps`, where it is not smaller anyway.
    """
    return pld._evaluator.right(t, dt, accuracy)


def reach(pld: Pld, level: float) -> float:
    """A `t >= 0` beyond which the finite losses add at most `level` to `h(e^t)`.

    By Chernoff's bound, so not the least one; infinite for a level of 0.
    """
    return pld._evaluator.reach(level)


def kinks(pld: Pld, most: float) -> Floats:
    """The finite losses of a finite PLD, where its curve has kinks, in floats.

    Empty unless the PLD is finite and has at most `most` atoms.
    """
    if not pld.is_finite or pld.is_infinite or pld._evaluator._table_size > most:
        return np.empty(0)
    return pld._evaluator._table.z
