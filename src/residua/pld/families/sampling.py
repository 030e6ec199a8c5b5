"""The curve of a sampled loss from that of the whole one, with its errors.

A record is sampled at rate `q`, and `(A, C)` is the pair with and without it. With
`P = (1-q) C + q A` against `C`, and the reverse (Balle, Barthe and Gaboardi 2018, theorem 2, with
equality for a pair),

    h(x) = q h_{A,C}(1 + (x-1)/q)                x >= 1 - q
    h_rev(x) = q x y h_{C,A}(1/y)                y = 1 - (1 - 1/x)/q > 0, else 0
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U

Curve = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Enclosure of a curve at `e^t`, each `t` known up to an error."""

_COARSE = 0.125
"""Errors of `t` beyond this share of the rate are charged to the curve, whose slope is below 1."""


def inner_argument(t: Floats, dt: Floats, rate: float) -> tuple[Floats, Floats]:
    """`ln(1 + (e^t - 1)/q)` and its absolute error, `t >= 0` known up to `±dt`."""
    with np.errstate(over="ignore"):
        y = np.expm1(t) / rate
    inner = np.where(np.isfinite(y), np.log1p(y), t - np.log(rate))
    # The derivative x / (x - 1 + q) decreases.
    early = -np.maximum(t - dt, -0.2 * rate)
    drift = dt / (rate * np.exp(early) - np.expm1(early)) * 1.01
    share = -np.expm1(-inner)
    return inner, drift + ((EXP_ULPS + 4.0) * inner + (EXP_ULPS + 4.0) * share) * U


def sampled(inner: Curve, rate: float, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
    """Enclosure of the curve of `(1-q) C + q A` against `C`, `t >= 0`, from that of `(A, C)`."""
    dt = np.broadcast_to(np.asarray(dt, dtype=np.float64), t.shape)
    coarse = dt > _COARSE * rate
    lo, hi = inner(*inner_argument(t, np.where(coarse, 0.0, dt), rate))
    extra = np.where(coarse, 1.01 * dt, 0.0)
    return (
        np.maximum(rate * lo * (1.0 - 4.0 * U) - extra - TINY, 0.0),
        rate * hi * (1.0 + 4.0 * U) + extra + TINY * (hi > 0.0),
    )


def sampled_reversed(
    inner: Curve, rate: float, t: Floats, dt: Floats | float
) -> tuple[Floats, Floats]:
    """Enclosure of the curve of `C` against `(1-q) C + q A`, `t >= 0`, from that of `(C, A)`."""
    fall = np.expm1(-t)
    y = 1.0 + fall / rate
    y_error = (EXP_ULPS + 4.0) * U * np.abs(fall) / rate + 1.01 * dt / rate + U
    clear = y > 8.0 * y_error
    safe = np.where(clear, y, 1.0)
    uncertainty = np.where(clear, y_error / safe, 0.0) * 1.2
    argument = -np.log1p(np.where(clear, fall / rate, 0.0))
    lo, hi = inner(argument, uncertainty + EXP_ULPS * U * np.abs(argument) + TINY)
    x = rate * np.exp(np.minimum(t, 700.0))
    wrong = uncertainty + 1.01 * dt + (EXP_ULPS + 6.0) * U
    most = x * np.maximum(y + y_error, 0.0) * (1.0 + wrong)
    # What is above 0 stays so where the product underflows.
    hi = np.where(clear, x * safe * hi * (1.0 + wrong) + TINY * (hi > 0.0), most + TINY)
    return (
        np.where(clear, np.maximum(x * safe * lo * (1.0 - wrong) - TINY, 0.0), 0.0),
        np.where(y + y_error > 0.0, hi, 0.0),
    )
