"""Where a curve comes down to a level: a Chernoff bound, which is proven, and a guess below it.

With `K` the log moment and `s² = K''(λ)`, a Gaussian with the tilted law's variance gives at
`t = K'(λ)`

    D(t) ~ e^{K(λ) - λt} (B(λs) - B((λ+1)s)),      B(x) = e^{x²/2} (1 - Φ(x)),

exact if the loss is Gaussian. Derivatives are differences of `K(λ)/λ`, which bends little.

The complement of a curve to its limit: `W(t) = E[min(1, e^{t-Z}); Z < inf] = 1 - h(e^t)`.

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
from typing import TYPE_CHECKING

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, SQRT_TWO_PI, TINY, U, mills_ratio
from residua.pld.curve.contour.moments import log_kernel_peak
from residua.pld.families.normal_mixture import LATTICE
from residua.work_limit import work

if TYPE_CHECKING:
    from residua.pld.curve.evaluate import Evaluator

ORDERS = np.geomspace(1e-4, 1e5, 73)
"""Where Chernoff's bound is tried."""


def start(evaluator: Evaluator, level: float) -> tuple[float, float]:
    """A guess at the `t` with `D(t) = level` (0: anywhere), and a proven `t` beyond it."""
    top = max(evaluator._top, 0.0)
    if not level > 0.0:
        return 0.5 * top if np.isfinite(top) else 0.0, top
    moments = evaluator._moments
    if moments.mixtures:
        # Their moments are expensive: the rough ones serve, and the best orders are tried again.
        k, orders = moments.rough_log_moment(LATTICE), LATTICE
        rough = (k - np.log(level)) / orders
        best = int(np.argmin(np.where(np.isfinite(rough), rough, np.inf)))
        tried = orders[max(best - 1, 0) : best + 2]
        value, error = moments.log_moment(tried)
    else:
        value, error = moments.log_moment(ORDERS)
        k, orders, tried = value, ORDERS, ORDERS
    reach = float(np.min((value + error - np.log(level)) / tried))
    far = min(max(reach, 0.0) * (1.0 + 16.0 * U), top)
    if not (np.isfinite(far) and far > 0.0):
        return 0.0, far
    return _guess(orders, k, level, far), far


def heights(t: Floats, orders: Floats, above: Floats) -> Floats:
    """`D(t) <= A(r) M(r) e^{-rt}` (`transform.py`), from upper bounds of `ln M` at some `r`."""
    work(6.0 * t.size * orders.size, 40.0 * t.size * orders.size)
    logs = above + log_kernel_peak(orders) + 1e-12
    fall = np.multiply.outer(t, orders)
    least = np.min(logs - fall + 8.0 * U * (np.abs(logs) + np.abs(fall)), axis=1)
    return np.asarray(np.exp(np.minimum(least, 0.0)) * (1.0 + 4.0 * EXP_ULPS * U))


def _guess(orders: Floats, k: Floats, level: float, far: float) -> float:
    with np.errstate(all="ignore"):
        each = k / orders
        rise = np.gradient(each, orders)
        bend = np.gradient(rise, orders)
        t = each + orders * rise
        spread = np.sqrt(np.maximum(2.0 * rise + orders * bend, 0.0))
        x, y = orders * spread, (orders + 1.0) * spread
        height = k - orders * t + np.log((mills_ratio(x) - mills_ratio(y)) / SQRT_TWO_PI)
    known = np.isfinite(height) & np.isfinite(t) & (spread > 0.0)
    if not known.any():
        return 0.95 * far
    # A curve falls; what does not is noise at the smallest tilts, or too rough at the largest.
    t, height = np.maximum.accumulate(t[known]), np.minimum.accumulate(height[known])
    wanted = np.log(level)
    if wanted < height[-1]:
        return 0.95 * far
    if wanted >= height[0]:
        return 0.0  # It is below the mean, if the curve is above the level at all.
    found = float(np.interp(-wanted, -height, t))
    return max(found, 0.0) if found < far else 0.95 * far


LogMoment = Callable[[Floats], tuple[Floats, Floats]]

LOWEST = -0.45
"""Lines are kept right of -1/2, where the closed form of Laplace moments is 0/0."""
_STRIP = -1.0 / (1.0 + np.exp(np.linspace(-3.0, 14.0, 52)))
SHARES = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4])
_STEPS = np.array([1.0, 2.0, 4.0, 8.0, 12.0])


def complement_bound(log_moment: LogMoment, t: Floats, dt: Floats) -> Floats:
    """An upper bound of `W(t)`, each `t >= 0` known up to `±dt`."""
    work(5.0 * t.size * _STRIP.size, 40.0 * t.size * _STRIP.size)
    k, error = log_moment(_STRIP)
    rise = -_STRIP * (t * (1.0 + 4.0 * U) + dt)[:, None]
    least = np.min(k + error + rise + 4.0 * U * np.abs(k), axis=1)
    return np.asarray(np.exp(np.minimum(least, 0.0)) * (1.0 + 2.0 * EXP_ULPS * U) + TINY)


def complement_tilt(log_moment: LogMoment, t: float) -> tuple[float, float]:
    """The minimiser of `K(λ) - λt - ln |λ(λ+1)|` on the strip, and that minimum."""
    grid = _STRIP[_STRIP >= LOWEST]
    for width in (0.35, 0.03):
        scores = log_moment(grid)[0] - grid * t - np.log(-grid) - np.log1p(grid)
        best, least = float(grid[int(np.argmin(scores))]), float(np.min(scores))
        grid = np.maximum(best * np.exp(np.linspace(-width, width, 25)), LOWEST)
    return best, least


def complement_points(lam: float, spread: float) -> Floats:
    """Where to keep moments against the aliases of a line in the strip."""
    left = np.concatenate([lam - (lam + 1.0) * SHARES, lam - _STEPS / spread])
    right = np.concatenate([lam * (1.0 - SHARES), lam + _STEPS / spread])
    inside = np.concatenate([left, right])
    return np.concatenate([inside[(inside > -1.0) & (inside < 0.0)], [-1.0, 0.0]])
