"""One point of a contour's curve, in scalars: what a stream asks for after every query.

The bounds are those of `Contour.curve`, which is the twin of this for arrays. With so few nodes
as a stream's contour has, most of the time there goes into arrays of one element.
"""

from __future__ import annotations

import math

import numpy as np

from residuum.bounds import Floats
from residuum.pld.contour import Contour
from residuum.pld.line import Line
from residuum.pld.special import EXP_ULPS, TINY, U

_LARGEST = 700.0
_LOST = (0.0, 1.0)


def is_plain(made: Contour) -> bool:
    """Whether `at` reads it: right of 0, without a phantom, nothing taken out."""
    return made.line.tau == 0.0 and made.line.lam > 0.0 and made.absolute is None


def at(made: Contour, t: float) -> tuple[float, float]:
    """Enclosure of `D(t)` at one exact `t >= 0`, of a plain contour."""
    line = made.line
    real, imaginary = line.turned(t)
    total = float(made.values.real @ real) - float(made.values.imag @ imaginary)
    (wrong, turning), _ = made._rounding
    wrong = (wrong + turning * 3.0 * U * t) * 1.01
    log_c = made.log_m - line.lam * t
    log_c_error = made.log_m_error + (abs(made.log_m) + 3.0 * line.lam * t) * U
    if not (log_c <= _LARGEST and log_c_error < 1.0):
        return _LOST
    c, c_error = math.exp(log_c), math.expm1(log_c_error) + (EXP_ULPS + 4.0) * U
    upper = c * (1.0 + c_error) * max(total + wrong + made.tails[0], 0.0) + TINY
    lower = c * max(1.0 - c_error, 0.0) * max(total - wrong - made.tails[1], 0.0)
    lower -= aliases(line, made.point_moments, t) + TINY
    if not (math.isfinite(upper) and math.isfinite(lower)):
        return _LOST
    upper = min(upper, 1.0)
    return float(min(max(lower, 0.0), upper)), float(upper)


def aliases(line: Line, moments: Floats, t: float) -> float:
    """Upper bound on `Σ_{j≠0} e^{λjT} D(t + jT)`, from `moments` at the line's points."""
    right, left = line.alias_sides
    logs = moments - line.points * (t * (1.0 - 4.0 * U)) + np.abs(moments) * (4.0 * U)
    above, below = (_exp(float((logs + gaps).min())) for gaps in (right, left))
    return (above + min(below, line.alias_gaps[2])) * (1.0 + 1e-12)


def _exp(x: float) -> float:
    return math.exp(x) if x <= _LARGEST else math.inf
