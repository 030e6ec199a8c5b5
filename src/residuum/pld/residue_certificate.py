"""Proofs that `A <= B` everywhere (`excess.py`), so that `G_m ⊕ L ⪯ G_mu`.

**Cells.** `ln A` and `ln B` are convex in `l`. Between two points the first lies below its chord
and the second above its tangents; the difference is largest at an end or where the tangents cross.
Past the last point `ln A` rises with slope at most the largest loss: once the slope of `ln B` is as
large, nothing changes any more. This proves any number of contacts.

**One contact.** Let `g = e_L - e_{G_√c}` be at most 0 outside `[y1, y2]`, and let `W = A - B`, the
integral of `g(y) e^{-y²/2m² + ly}`. At any `k`, `e^{(k-l)y}` lies below its chord through `y1` and
`y2` between them and above it outside. So `W(k)` is at most a combination, with positive
coefficients, of `∫ g_l (y2 - y)` and `∫ g_l (y - y1)`, where negative parts of `g` inside are
dropped:

    y2 W(l) - W'(l) + (y2 - y1) N <= 0   and   W'(l) - y1 W(l) + (y2 - y1) N <= 0

at a single `l` prove `W <= 0` everywhere, `N` being the dropped part. If `L` is symmetric and `g <
0` next to 0, the same holds for the even functions on `y > 0`, with `y tanh(ly)` for `y`: then
`cosh(ky) - α cosh(ly) - β y sinh(ly)` has no more than four zeros (an exponential polynomial of six
terms has at most five, and an even one not an odd number), so it has the signs of that difference.

In `x = e^y`, `e^{y/2} g` is concave between the losses of a finite `L`, so its signs follow from
its values and slopes there, in linear time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from residuum.bounds import Floats
from residuum.pld import gaussian
from residuum.pld.excess import Budget, FiniteExcess, Transform, gaussian_transform
from residuum.pld.special import EXP_ULPS, MILLS_ULPS, U, mills_ratio, normal_density

_MOST_POINTS = 1 << 13
_ROUNDS = 40
_WIDENINGS = 24
_DIRECT = 256
"""Up to that many atoms the excess is summed tent by tent."""


class Failure(NamedTuple):
    """Where a proof failed: at `l`, and whether `A > B` there for all that is known."""

    at: float
    is_violated: bool


# -- cells --------------------------------------------------------------------------------------


def proven_by_cells(
    excess: FiniteExcess,
    m2: float,
    c: float,
    known: Floats,
    budgets: tuple[Budget, Budget] = (gaussian_transform, gaussian_transform),
) -> Failure | None:
    """None if `A <= B` everywhere is proven, else where it is not; `known` are points to try.

    The two budgets are for either sign of `l`, the second one mirrored.
    """
    even = excess.is_symmetric and budgets[0] is budgets[1]
    sides = [excess] if even else [excess, excess.reversed]
    for sign, side, budget in zip((1.0, -1.0), sides, budgets, strict=False):
        failure = _right_half(side, m2, c, sign * known, budget)
        if failure is not None:
            return Failure(sign * failure.at, failure.is_violated)
    return None


def _right_half(
    excess: FiniteExcess, m2: float, c: float, known: Floats, budget: Budget
) -> Failure | None:
    end = _last(excess, m2, c, budget)
    if end is None:
        return Failure(0.0, False)
    grid = end * np.sinh(np.linspace(0.0, 4.0, 33)) / math.sinh(4.0)
    l = np.unique(np.concatenate([grid, known[(known > 0.0) & (known < end)]]))
    a, b = excess.transform(m2, l), budget(m2, c, l)
    for _ in range(_ROUNDS):
        gap = (a.log + a.error) - (b.log - b.error)
        worst = int(np.argmax(gap))
        if gap[worst] > 0.0:
            return Failure(float(l[worst]), True)
        open_cells = _open_cells(l, a, b)
        if open_cells.size == 0:
            return None
        if l.size + open_cells.size > _MOST_POINTS:
            return Failure(float(l[open_cells[0]]), False)
        new = 0.5 * (l[open_cells] + l[open_cells + 1])
        order = np.argsort(np.concatenate([l, new]), kind="stable")
        l = np.concatenate([l, new])[order]
        a = _merged(a, excess.transform(m2, new), order)
        b = _merged(b, budget(m2, c, new), order)
    return Failure(float(l[0]), False)


def _last(excess: FiniteExcess, m2: float, c: float, budget: Budget) -> float | None:
    """An `l` where the slope of `ln B` exceeds the largest loss."""
    top = max(excess.top, 0.0) * (1.0 + 1e-9)
    # The slope is l m² E[1 - e^-w], at most l m² c / (m² + c).
    l = top * (1.0 / m2 + 1.0 / c)
    for _ in range(_WIDENINGS):
        l *= 1.1
        if budget(m2, c, np.array([l])).mean[0] > top:
            return l
    return None


def _open_cells(l: Floats, a: Transform, b: Transform) -> NDArray[np.int64]:
    """The cells where chord above and tangents below do not decide."""
    high, low = a.log + a.error, b.log - b.error
    width = np.diff(l)
    # Slopes of ln B are good to about the error of its logarithm.
    doubt = 1e-11 * (np.abs(b.mean) + np.sqrt(np.maximum(b.spread, 0.0)))
    slope, slope_back = b.mean - doubt, b.mean + doubt
    first, second = slope[:-1] * width, slope_back[1:] * width
    bend = second - first
    safe = np.where(bend > 0.0, bend, 1.0)
    cross = np.clip((low[:-1] - low[1:] + second) / safe, 0.0, 1.0)
    floor = np.maximum(low[:-1] + first * cross, low[1:] - second * (1.0 - cross))
    chord = high[:-1] + (high[1:] - high[:-1]) * cross
    slack = 16.0 * U * (np.abs(high[:-1]) + np.abs(high[1:]) + np.abs(floor))
    return np.flatnonzero(~((chord + slack <= floor) & (bend > 0.0)))


def _merged(old: Transform, new: Transform, order: NDArray[np.int64]) -> Transform:
    return Transform(*(np.concatenate([x, y])[order] for x, y in zip(old, new, strict=True)))


# -- one contact --------------------------------------------------------------------------------


class _Signs(NamedTuple):
    """`g` on `y >= 0`: positive at most on `[first, last]`, and what is negative inside.

    `dips` are rows `(from, to, depth)`; `last < 0` if `g` is nowhere positive.
    """

    first: float
    last: float
    dips: Floats


def proven_by_one_contact(
    excess: FiniteExcess, m2: float, c: float, l: float, a: Transform, b: Transform
) -> bool:
    """Whether the values at `l` prove `A <= B` everywhere."""
    right = _signs(excess, c)
    even = excess.is_symmetric
    left = right if even else _signs(excess.reversed, c)
    if right is None or left is None:
        return False
    if right.last < 0.0 and left.last < 0.0:
        return True
    ratio = float(a.log[0] - b.log[0])
    if not -1.0 < ratio <= 0.0:
        return False
    error = float(a.error[0] + b.error[0]) + 4.0 * U
    w = math.expm1(ratio)
    w_error = 1.1 * error * (1.0 + abs(w))
    size = 2.0 * max(excess.top, -excess.bottom, abs(float(a.mean[0])), abs(float(b.mean[0])))
    slope = float(a.mean[0]) * (1.0 + w) - float(b.mean[0])
    slope_error = 4.0 * size * error * (1.0 + abs(w))
    dropped = _dropped(right.dips, m2, l, float(b.log[0]))
    if even and right.first > 0.0:
        near, far = (y * math.tanh(l * y) for y in (right.first, right.last))
        dropped *= 2.0
        if not (l > 0.0 and near < far):
            return False
    elif left.last >= 0.0 <= right.last and max(left.first, right.first) > 0.0:
        return False
    else:
        dropped += _dropped(left.dips, m2, -l, float(b.log[0]))
        near = -left.last if left.last >= 0.0 else right.first
        far = right.last if right.last >= 0.0 else -left.first
        if even and l == 0.0:
            slope = slope_error = 0.0
    slack = (far - near) * dropped + slope_error + 1e-12 * (abs(near) + abs(far)) * abs(w)
    slack += (abs(near) + abs(far)) * w_error
    return far * w - slope + slack <= 0.0 and slope - near * w + slack <= 0.0


def _dropped(dips: Floats, m2: float, l: float, log_b: float) -> float:
    """An upper bound on the integral of the dips against `e^{-y²/2m² + ly}`, relative to `B`."""
    if dips.size == 0:
        return 0.0
    start, stop, depth = dips.T
    peak = np.clip(l * m2, start, stop)
    exponent = peak * l - (0.5 / m2) * peak * peak - log_b
    sizes = np.exp(np.minimum(exponent + 1e-9 * np.abs(exponent), 700.0))
    return float(np.sum(depth * (stop - start) * sizes)) * (1.0 + 1e-9)


def _signs(excess: FiniteExcess, c: float) -> _Signs | None:
    """The signs of `g` right of 0; None if they remain unclear."""
    y = np.unique(np.concatenate([[0.0], excess.losses[excess.losses > 0.0]]))
    for _ in range(8):
        lo, hi, slope_left, slope_right = _values(excess, c, y)
        gap = np.diff(y)
        x = np.expm1(gap)
        # Tangents at both ends, in units of the left one; where they cross is the highest g can be.
        scale = np.exp(0.5 * gap)
        right_value, right_slope = hi[1:] * scale, slope_left[1:] * scale / (1.0 + x)
        bend = slope_right[:-1] - right_slope
        cross = np.clip(
            (right_value - hi[:-1] - right_slope * x) / np.where(bend > 0.0, bend, 1.0), 0.0, x
        )
        crest = np.minimum(
            hi[:-1] + slope_right[:-1] * cross, right_value - right_slope * (x - cross)
        )
        crest = np.where(bend > 0.0, crest, np.maximum(hi[:-1], right_value))
        ends = np.maximum(hi[:-1], right_value)
        hidden = (ends <= 0.0) & (crest + 1e-9 * np.abs(ends) > 0.0)
        if not hidden.any():
            break
        split = np.flatnonzero(hidden)
        new = y[split] + np.log1p(cross[split])
        if not np.all((new > y[split]) & (new < y[split + 1])):
            return None
        y = np.sort(np.concatenate([y, new]))
    else:
        return None
    positive = np.flatnonzero(hi > 0.0)
    if positive.size == 0:
        return _Signs(0.0, -1.0, np.empty((0, 3)))
    first, last = int(positive[0]), int(positive[-1])
    start, start_dip = (0.0, 0.0) if first == 0 else _edge(excess, c, y[first - 1], y[first])
    # Beyond the largest loss there is only the Gaussian.
    stop, stop_dip = (
        (excess.top, 0.0) if last == y.size - 1 else _edge(excess, c, y[last + 1], y[last])
    )
    inside = slice(first, last + 1)
    places = np.concatenate([[start], y[inside], [stop]])
    depth = np.concatenate([[start_dip], np.maximum(-lo[inside], 0.0), [stop_dip]])
    gap = np.diff(places)
    dips = np.column_stack(
        [places[:-1], places[1:], np.maximum(depth[:-1], depth[1:]) * np.exp(gap)]
    )
    return _Signs(start, stop, dips[dips[:, 2] > 0.0])


def _edge(excess: FiniteExcess, c: float, outside: float, inside: float) -> tuple[float, float]:
    """A point next to where `g` changes sign, still outside, and how deep `g` is there at most."""
    depth = math.inf
    for _ in range(7):
        y = outside + (inside - outside) * np.linspace(0.0, 1.0, 17)
        lo, hi, _, _ = _values(excess, c, np.sort(y))
        if inside < outside:
            lo, hi = lo[::-1], hi[::-1]
        negative = np.flatnonzero(hi <= 0.0)
        at = int(negative[-1]) if negative.size else 0
        outside, inside = float(y[at]), float(y[min(at + 1, 16)])
        depth = max(-float(lo[at]), 0.0)
        if at == 16 or abs(inside - outside) < 1e-14 * (abs(inside) + abs(outside)):
            break
    return outside, depth


def _values(excess: FiniteExcess, c: float, y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Enclosure of `g` at `y >= 0`, and upper/lower slopes: `e^{-y/2} dD/d ln x`, left and right.

    `D = h_L - h_{G_√c}`; the slope to the left is rounded down, the one to the right up.
    """
    z, w = excess.losses, excess.weights
    keep = z > 0.0
    z, w = z[keep], w[keep]
    # Σ √(pq) e^{-z/2} over z >= y and z > y, times e^{y/2}: the slopes of h_L, tilted.
    from_here = np.searchsorted(z, y, side="left")
    beyond = np.searchsorted(z, y, side="right")
    q = w * np.exp(-0.5 * z)
    sums = np.concatenate([np.cumsum(q[::-1])[::-1], [0.0]])
    tilt = np.exp(0.5 * y)
    q_left, q_right = tilt * sums[from_here], tilt * sums[beyond]
    if z.size <= _DIRECT:
        height = 2.0 * np.sinh(0.5 * np.maximum(z - y[:, None], 0.0)) @ w
        wrong = height * (64.0 + z.size) * U
    else:
        p_sums = np.concatenate([np.cumsum((w * np.exp(0.5 * z))[::-1])[::-1], [0.0]])
        high = p_sums[beyond] / tilt
        height = np.maximum(high - q_right, 0.0)
        wrong = (high + q_right) * (64.0 + 2.0 * z.size) * U
    wrong = wrong + excess.weight_error * height
    wrong = wrong + excess.loss_error * (q_left + height) * 1.1
    h, h_error = gaussian._right(y, 0.0, c, 4.0 * U)
    fall = np.exp(-0.5 * y)
    gauss, gauss_error = h * fall, (h_error + 2.0 * EXP_ULPS * U * h) * fall
    error = wrong + gauss_error
    # dh/d ln x of the Gaussian: -x Phi(-(y/√c + √c/2)), tilted.
    root = math.sqrt(c)
    far = y / root + 0.5 * root
    near = np.abs(y / root - 0.5 * root)
    gauss_slope = normal_density(near) * fall * mills_ratio(far)
    drift = (EXP_ULPS + MILLS_ULPS + 32.0 + 8.0 * (near * near + far * far)) * U
    slope_error = gauss_slope * drift + (q_left * (64.0 + z.size)) * U
    slope_error = slope_error + (excess.weight_error + excess.loss_error) * q_left * 1.1
    value = height - gauss
    return (
        value - error,
        value + error,
        gauss_slope - q_left - slope_error,
        gauss_slope - q_right + slope_error,
    )
