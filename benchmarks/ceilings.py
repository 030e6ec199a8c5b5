"""How near to the optimum any filter can be on several workloads at once.

A filter that admits a share `f` of every workload in a set also admits what an adaptive analyst
makes of them: begin one, and change to another where the losses so far make that worse. If this
analyst exceeds the budget, no sound filter admits the share `f` of all of them.

The workloads here are one query `W` without end, and, after some numbers `j` of `W`, Gaussian noise
without end, in queries so small that the `j` before them hardly count among them. With
`t = eps - z`, `z` the loss so far, and `v` the `mu²` of the Gaussian noise that fits after `j`
queries, the analyst reaches at least

    U_j(t) = max(E U_{j+1}(t - Z), h_{G_√(f v)}(e^t)),     U_n(t) = (1 - e^t)_+,   n = f · optimum.

`U` decreases in `t`. So it is bounded from below on a lattice if losses are rounded down, and the
largest share with `U_0(eps) <= delta` is an upper bound of what is possible, up to the rounding of
floats in sums of positive numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import log_ndtr

import residua as rz
from residua.bounds import Floats

_SPACING = 2.5e-4
"""Of the lattice of losses."""
_LOWEST, _HIGHEST = -1.0, 2.0
"""Where `U` is kept; below it is at least `1 - e^t`, above at least 0."""
_BINS = 400
"""Outcomes that a query is reduced to, which only makes it weaker."""
_STOPS = 10
"""How many numbers of queries the analyst may change after."""
_HALVINGS = 8
_TARGET = (1.0, 1e-6)
_QUERIES = ((0.712, 0.00263), (0.8, 0.005), (1.0, 0.02), (1.5, 0.02))
"""Noise and sampling rate of subsampled Gaussian noise: from few and large losses to none."""


def ceilings() -> Iterator[str]:
    """The largest share of the optimum that a sound filter can admit of all these workloads."""
    eps, delta = _TARGET
    yield f"({eps:g}, {delta}): subsampled Gaussian noise without end, or Gaussian noise after it"
    yield "sigma  rate     optimum  no filter admits more of all than"
    for sigma, rate in _QUERIES:
        query = rz.subsampled_gaussian(sigma, rate)
        most = _optimum(query, eps, delta)
        share = _largest_share(sigma, rate, query, most)
        yield f"{sigma:<6g} {rate:<8g} {most:<8d} {math.ceil(1000.0 * share) / 1000.0:.3f}"


def _optimum(query: rz.Pld, eps: float, delta: float) -> int:
    """How many copies are proven to fit."""
    low, high = 0, 1
    while _within(high * query, eps, delta):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _within(middle * query, eps, delta) else (low, middle)
    return low


def _within(loss: rz.Pld, eps: float, delta: float) -> bool:
    return max(float(loss.delta(eps)), float(loss.reverse().delta(eps))) <= delta


def _noise_after(query: rz.Pld, count: int, eps: float, delta: float) -> float:
    """The largest `mu²` of Gaussian noise that is proven to fit beside so many queries."""
    low, high = 0.0, eps
    for _ in range(30):
        middle = 0.5 * (low + high)
        fits = _within(count * query + rz.gaussian(mu=math.sqrt(middle)), eps, delta)
        low, high = (middle, high) if fits else (low, middle)
    return low


def _largest_share(sigma: float, rate: float, query: rz.Pld, most: int) -> float:
    """An upper bound of the share of all workloads that a sound filter may admit."""
    eps, delta = _TARGET
    places = np.arange(round(_LOWEST / _SPACING), round(_HIGHEST / _SPACING) + 1)
    t = np.asarray(places * _SPACING, dtype=np.float64)
    here = round((eps - _LOWEST) / _SPACING)
    losses, masses = _outcomes(sigma, rate)
    stops = {most * k // _STOPS for k in range(_STOPS)}
    noise = {count: _noise_after(query, count, eps, delta) for count in stops}

    def reached(share: float) -> float:
        value = np.maximum(-np.expm1(t), 0.0)
        for count in range(int(share * most), -1, -1):
            if count < int(share * most):
                value = _expected(value, losses, masses)
            if noise.get(count):
                value = np.maximum(value, _gaussian_curve(t, share * noise[count]))
        return float(value[here])

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if reached(middle) <= delta else (low, middle)
    return high


def _outcomes(sigma: float, rate: float) -> tuple[list[int], list[float]]:
    """Losses on the lattice, rounded down, and their masses, in the direction of removal."""
    edges = np.linspace(-9.0 * sigma, 1.0 + 9.0 * sigma, _BINS + 1)

    def masses(mean: float) -> Floats:
        logs = log_ndtr((edges - mean) / sigma), log_ndtr((mean - edges) / sigma)
        below, above = np.diff(np.exp(logs[0])), -np.diff(np.exp(logs[1]))
        return np.asarray(np.where(edges[1:] > mean, above, below))

    q = masses(0.0)
    p = (1.0 - rate) * q + rate * masses(1.0)
    kept = (p > 0.0) & (q > 0.0)
    places = np.floor(np.log(p[kept] / q[kept]) / _SPACING).astype(int)
    sums = dict.fromkeys(places.tolist(), 0.0)
    for place, mass in zip(places.tolist(), p[kept].tolist(), strict=True):
        sums[place] += mass
    return list(sums), list(sums.values())


def _expected(value: Floats, losses: list[int], masses: list[float]) -> Floats:
    """`E U(t - Z)`, from below: what leaves the lattice counts as its end."""
    size = value.size
    out = np.zeros(size)
    for place, mass in zip(losses, masses, strict=True):
        if place >= size:
            out += mass * value[0]
        elif place >= 0:
            out[place:] += mass * value[: size - place]
            out[:place] += mass * value[0]
        else:
            out[:place] += mass * value[-place:]
    return out


def _gaussian_curve(t: Floats, v: float) -> Floats:
    mu = math.sqrt(v)
    return np.asarray(
        np.exp(log_ndtr(0.5 * mu - t / mu)) - np.exp(t + log_ndtr(-0.5 * mu - t / mu))
    )
