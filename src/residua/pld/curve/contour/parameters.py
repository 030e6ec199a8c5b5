"""Which line to sum on: the tilt, the period, how many nodes, and whether to smooth.

Nothing here is proven and nothing needs to be: what a choice costs is charged by `transform.py`.
"""

from __future__ import annotations

import math

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import BATCH
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.curve import chernoff
from residua.pld.curve.contour.moments import ContourLine, Moments, log_kernel_peak
from residua.pld.curve.contour.transform import FEWEST, Contour, truncation
from residua.pld.families.normal_mixture import LATTICE

_WORK, _CHEAP = 2.0**31, 1.0 / 16.0
"""Nodes of a contour times quadrature points of a mixture, at most: a fraction of a second; and the
share of it that is spent on more digits than the accuracy asks for."""
_RELATIVE = 1e-7
"""Relative cost of a smoothing Gaussian in `D`, at most, where there is a Gaussian, atoms apart."""
_FINER = (np.linspace(-0.25, 0.25, 25), np.linspace(-0.02, 0.02, 25))
_CLOSE = 2.0
"""A line left of 0 is worth it when it scores this much lower."""


def choose_line(
    moments: Moments,
    t: float,
    accuracy: float,
    sharpness: float = 1.0,
    skeleton: Moments | None = None,
    room: float = 1.0,
) -> Contour:
    """A contour fit for reading `D` near `t`.

    `accuracy` is the width in `eps` that a smoothing Gaussian may cost where one is needed (next to
    a heavy atom the cost is `0.4 τ` instead of `τ² (λ+1)`: `sharpness` above 1 shrinks `τ`).
    `room` above 1 leaves space for more queries to be composed in later. Given a
    `skeleton`, and where a smoothing Gaussian is needed or the tilt huge, the contour is that of
    the composition without its atoms; a Gaussian then asks for a relative width.
    """
    resolution = min(1e-9, 1e-6 * accuracy) / sharpness
    lam, spread = _tilt(moments, t, both=skeleton is None and not moments.mixtures)
    points = _points(lam, spread)
    at = np.concatenate([[lam], points])
    k, e = moments.log_moment(at)
    log_c = float(k[0]) - lam * t
    # Errors are compared with D / C, about 1 / (λ (λ+1) σ sqrt(2π)) at the saddle, less
    # away from it, and 1 / C where D is close to 1.
    saddle = -math.log((lam + 1.0) * (abs(lam) * spread + 1.0) * 3.0)
    floor = math.log(resolution) + min(saddle, -log_c)
    tau = 0.0
    step = 2.0 * math.pi / (1.05 * room * _period(t, lam, points, k, floor))
    variance = moments.variance
    wanted = _smooth_edge(moments, lam, spread, floor, step) / step
    most = moments.affordable_count(lam, 1.0 / step, _WORK)
    if moments.mixtures and wanted > most / 4.0:
        # As far as the accuracy asks, or as is cheap.
        enough = math.log(0.1 * accuracy * (lam + 1.0) / sharpness) + min(saddle, -log_c)
        least = _smooth_edge(moments, lam, spread, max(enough, floor), step) / step
        wanted = max(least, moments.affordable_count(lam, 1.0 / step, _CHEAP * _WORK))
    if wanted > min(most, BATCH / 8):
        if skeleton is not None and variance > 0.0:
            accuracy = min(accuracy, _RELATIVE / lam)
        tau = math.sqrt(0.5 * accuracy / (lam + 1.0)) / sharpness
        smallest = math.sqrt(-2.0 * floor) / (min(most, BATCH) * step)
        tau = max(tau, min(smallest, 1.0))
        variance += tau * tau
        wanted = _gaussian_edge(variance, tau, floor, step) / step
    count = int(min(max(wanted, FEWEST), BATCH)) + 2
    line = ContourLine(lam, step, count, tau, points)
    values, errors = moments.nodes(line, tau * tau)
    k = k + 0.5 * tau * tau * at * (at + 1.0)
    e = e + np.abs(k) * (8.0 * U)
    variance *= 1.0 - moments.variance_error - 8.0 * U
    log_m, log_m_error = float(k[0]), float(e[0])
    if skeleton is None or (tau == 0.0 and log_m_error < _RELATIVE):
        fall = float(moments.log_decay(lam, np.array([line.edge]))[0])
        fall -= 0.5 * tau * tau * line.edge * line.edge * (1.0 - 8.0 * U)
        tails = truncation(line, variance, fall)
        return Contour(line, values, errors, log_m, log_m_error, tails, t, k[1:] + e[1:])
    atomic, atomic_errors = skeleton.nodes(line, tau * tau)
    share, share_error = skeleton.log_moment(at[:1])
    weight, weight_error = moments.atomic_weight
    ratio = math.exp(float(share[0]) + 0.5 * tau * tau * lam * (lam + 1.0) + weight - log_m)
    ratio_error = float(share_error[0]) + weight_error + 2.0 * log_m_error + 8.0 * EXP_ULPS * U
    wrong = np.abs(values) * np.expm1(np.minimum(errors, 100.0))
    wrong += ratio * np.abs(atomic) * np.expm1(np.minimum(atomic_errors + ratio_error, 100.0))
    wrong += 4.0 * U * (np.abs(values) + ratio * np.abs(atomic))
    values = values - ratio * atomic
    # What is left without the atoms may fall later than the whole; Gaussians are in both.
    tails = truncation(line, variance, -0.5 * variance * line.edge * line.edge * (1.0 - 8.0 * U))
    return Contour(line, values, errors, log_m, log_m_error, tails, t, k[1:] + e[1:], wrong)


def _points(lam: float, spread: float) -> Floats:
    """Where to keep moments against the aliases of a line."""
    if lam < 0.0:
        points = chernoff.complement_points(lam, spread)
    else:
        shares = chernoff.SHARES
        scaled = lam * np.concatenate([shares, 1.0 + shares, [2.0, 3.0, 5.0]])
        points = np.concatenate([scaled, lam + np.array([1.0, 2.0, 4.0, 8.0, 12.0, 20.0]) / spread])
        points = points[points > 0.0]
    return np.unique(points[points != lam])


def _period(t: float, lam: float, points: Floats, k: Floats, floor: float) -> float:
    """The period with which aliases on either side are below the floor."""
    log_c = float(k[0]) - lam * t
    logs = k[1:] - points * t + log_kernel_peak(points) - log_c - floor
    needed = np.maximum(logs, 1.0) / np.abs(points - lam)
    left = float(needed[points < lam].min())
    if lam > 0.0:
        left = min(left, max(-log_c - floor, 1.0) / lam)
    return max(float(needed[points > lam].min()), left)


def _gaussian_edge(variance: float, tau: float, floor: float, step: float) -> float:
    """Where `e^{-c edge²/2} (1/edge² + τ²) (step + 1/(c edge))` has come down to the floor."""
    depth = 2.0 - floor
    for _ in range(2):  # fixed-point steps, the last from below
        edge = math.sqrt(2.0 * depth / variance)
        beyond = (1.0 / (edge * edge) + tau * tau) * (step + 1.0 / (variance * edge))
        depth = max(1.0, 2.0 - floor + math.log(beyond))
    return math.sqrt(2.0 * depth / variance)


def _smooth_edge(moments: Moments, lam: float, spread: float, floor: float, step: float) -> float:
    """Where nothing beyond matters even without smoothing; inf if that is out of reach."""
    best = _gaussian_edge(moments.variance, 0.0, floor, step) if moments.variance else math.inf
    if not moments.has_density:
        return best
    low = 2.0 / spread
    high = min(best, BATCH * step)
    for _ in range(2):
        edges = np.geomspace(low, max(high, 2.0 * low), 14)
        enough = np.flatnonzero(moments.log_decay(lam, edges) - np.log(edges) <= floor - 2.0)
        if enough.size == 0:
            break
        i = int(enough[0])
        best = min(best, float(edges[i]))
        if i == 0:
            break
        low, high = float(edges[i - 1]), float(edges[i])
    return best


def _tilt(moments: Moments, t: float, both: bool) -> tuple[float, float]:
    """The minimiser of `K(λ) - λt - ln λ(λ+1)`, kept off zero, and the spread there.

    It is below 0, for the complement, if `both` sides are open and that one is better.
    """

    def score(at: Floats) -> Floats:
        return np.asarray(moments.rough_log_moment(at) - at * t - np.log(at) - np.log1p(at))

    # Past the largest loss of everything else a narrow Gaussian needs tilts of the order of 1/σ.
    most = 1e6 if moments.variance == 0.0 else max(1e6, min(30.0 / moments.variance**0.5, 1e15))
    grid = LATTICE if most == 1e6 else np.geomspace(1e-5, most, 100)
    # The score is flat about its minimum, and moments of mixtures are expensive.
    finer = (np.linspace(-0.3, 0.3, 7),) if moments.mixtures else _FINER
    for steps in (*finer, np.zeros(1)):
        scores = score(grid)
        best, least = float(grid[int(np.argmin(scores))]), float(np.min(scores))
        grid = best * np.exp(steps)
    spread = _spread(moments, best)
    # Close to the origin a larger tilt costs little and keeps the period short.
    if 1.5 / spread > best:
        if both:
            other, lowest = chernoff.complement_tilt(moments.log_moment, t)
            if lowest < least - _CLOSE:
                return other, _spread(moments, other)
        larger = best * (1.5 / spread / best) ** np.linspace(0.0, 1.0, 9)
        larger = np.minimum(larger, max(best, most))
        close = np.flatnonzero(score(larger) <= least + 2.0)
        best = float(larger[close[-1]]) if close.size else best
        spread = _spread(moments, best)
    return best, spread


def _spread(moments: Moments, lam: float) -> float:
    """The standard deviation of the loss tilted by `λ`, roughly."""
    h = 0.05 * abs(lam)
    k, _ = moments.log_moment(np.array([lam - h, lam, lam + h]))
    return max(math.sqrt(max(float(k[0] - 2.0 * k[1] + k[2]), 0.0)) / h, 1e-12)
