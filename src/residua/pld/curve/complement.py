"""The complement of a curve to its limit: `W(t) = E[min(1, e^{t-Z}); Z < inf] = 1 - h(e^t)`.

Far below the mean loss `D` is close to 1 and has no digits left for what matters there. The
transform of `W` is `-M(s) / (s(s+1))` on the strip `-1 < Re s < 0`, the same as that of `D` but for
the sign: the line has passed the pole at 0. So the sums of `transform.py` hold as they are,

    (1/T) Σ_k -M(s_k) e^{-s_k t} / (s_k (s_k + 1)) = W(t) + Σ_{j≠0} e^{λjT} W(t + jT),

with `W(t) <= M(r) e^{-rt}` for `-1 <= r <= 0` (as `min(1, e^y) <= e^{-ry}`) against the aliases. A
smoothing Gaussian lowers `W` by as much as it raises `D`, so the two kernels change places: `κ` is
added for the upper bound. The same `M(r) e^{-rt}` alone settles reads where `W` is next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.work_limit import work

LogMoment = Callable[[Floats], tuple[Floats, Floats]]

LOWEST = -0.45
"""Lines are kept right of -1/2, where the closed form of Laplace moments is 0/0."""
_STRIP = -1.0 / (1.0 + np.exp(np.linspace(-3.0, 14.0, 52)))
_SHARES = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4])
_STEPS = np.array([1.0, 2.0, 4.0, 8.0, 12.0])


def chernoff(log_moment: LogMoment, t: Floats, dt: Floats) -> Floats:
    """An upper bound of `W(t)`, each `t >= 0` known up to `±dt`."""
    work(5.0 * t.size * _STRIP.size, 40.0 * t.size * _STRIP.size)
    k, error = log_moment(_STRIP)
    rise = -_STRIP * (t * (1.0 + 4.0 * U) + dt)[:, None]
    least = np.min(k + error + rise + 4.0 * U * np.abs(k), axis=1)
    return np.asarray(np.exp(np.minimum(least, 0.0)) * (1.0 + 2.0 * EXP_ULPS * U) + TINY)


def tilt(log_moment: LogMoment, t: float) -> tuple[float, float]:
    """The minimiser of `K(λ) - λt - ln |λ(λ+1)|` on the strip, and that minimum."""
    grid = _STRIP[_STRIP >= LOWEST]
    for width in (0.35, 0.03):
        scores = log_moment(grid)[0] - grid * t - np.log(-grid) - np.log1p(grid)
        best, least = float(grid[int(np.argmin(scores))]), float(np.min(scores))
        grid = np.maximum(best * np.exp(np.linspace(-width, width, 25)), LOWEST)
    return best, least


def points(lam: float, spread: float) -> Floats:
    """Where to keep moments against the aliases of a line in the strip."""
    left = np.concatenate([lam - (lam + 1.0) * _SHARES, lam - _STEPS / spread])
    right = np.concatenate([lam * (1.0 - _SHARES), lam + _STEPS / spread])
    inside = np.concatenate([left, right])
    return np.concatenate([inside[(inside > -1.0) & (inside < 0.0)], [-1.0, 0.0]])
