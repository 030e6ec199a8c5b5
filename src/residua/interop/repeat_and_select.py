"""Running a mechanism a random number of times and keeping the best run.

Papernot and Steinke 2022 (Hyperparameter tuning with Rényi differential privacy). With
`D_λ <= ε(λ)` for one run and a number `K` of runs of mean `m`:

* truncated negative binomial of shape `η` and parameter `γ` (theorem 2; `η = 1` is geometric,
  `η = 0` logarithmic), for any `λ' > 1`

      ε(λ) + (1+η) ((1 - 1/λ') ε(λ') + ln(1/γ) / λ') + ln(m) / (λ-1)

* Poisson (theorem 6), where one run is `(ln(1 + 1/(λ-1)), δ)`-DP

      ε(λ) + m δ + ln(m) / (λ-1)

Both are bounds of the Rényi divergence at the order `λ`, and become a black box with that curve.
`γ` is found from the mean by bisection in decimals and taken from below, `ε` and `δ` are proven
upper bounds in the worse direction, and sums are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from residua import checks
from residua.bounds import float_up
from residua.errors import ArgumentError
from residua.mechanisms.black_boxes import CURVE_ORDERS, LARGEST_DIVERGENCE, Rdp
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld

SLACK = Decimal("1e-40")
"""Covers the roundings of logarithms and of sums, in decimals of sixty digits."""


def repeat_and_select(inner: Mechanism, relation: str, mean: Any, shape: Any) -> Mechanism:
    """The black box of running a mechanism a random number of times and keeping the best run.

    Args:
        inner: the mechanism.
        relation: the neighbouring relation.
        mean: of the number of runs, 1 or more.
        shape: of its distribution; infinite for Poisson.
    """
    mean = checks.satisfying("mean", mean, lambda m: 1 <= m < math.inf, "at least 1 and finite")
    shape = checks.satisfying("shape", shape, lambda s: s >= 0.0, "non-negative")
    losses = list(
        dict.fromkeys(
            one for loss in inner.plds(relation).values() for one in (loss, loss.reverse())
        )
    )
    renyi = {order: max(float(loss.renyi(order)) for loss in losses) for order in CURVE_ORDERS}
    curve = {order: eps for order, eps in renyi.items() if eps <= LARGEST_DIVERGENCE}
    if not curve:
        raise ArgumentError(
            f"event must have a finite Rényi divergence to be repeated, got {inner!r}"
        )
    with localcontext(Context(prec=60)):
        added = (
            _poisson(losses, mean) if shape == math.inf else _negative_binomial(curve, mean, shape)
        )
        log_mean = Decimal(mean).ln()
        bounds = {
            order: (Decimal(eps) + added(order) + log_mean / (Decimal(order) - 1)) * (1 + SLACK)
            for order, eps in curve.items()
        }
    kept = {order: _up(eps) for order, eps in bounds.items() if eps <= LARGEST_DIVERGENCE}
    if not kept:
        raise ArgumentError(f"mean must leave a finite bound, got {mean!r}")
    return Rdp(tuple(kept), tuple(kept.values()), relation=relation)


def _negative_binomial(
    curve: dict[float, float], mean: float, shape: float
) -> Callable[[float], Decimal]:
    log_gamma = _log_gamma(mean, shape)
    constant = (1 + Decimal(shape)) * min(
        (1 - 1 / Decimal(order)) * Decimal(eps) - log_gamma / Decimal(order)
        for order, eps in curve.items()
    )
    return lambda _: constant


def _poisson(losses: list[Pld], mean: float) -> Callable[[float], Decimal]:
    def added(order: float) -> Decimal:
        eps = math.log1p(1.0 / (order - 1.0)) * (1.0 - 1e-14)
        return Decimal(mean) * Decimal(max(float(loss.delta(eps)) for loss in losses))

    return added


def _log_gamma(mean: float, shape: float) -> Decimal:
    """`ln γ` from below: the mean decreases in `γ`."""
    if mean == 1.0:
        return Decimal(0)
    target, low, high = Decimal(mean), Decimal(-2000), Decimal(0)
    with localcontext(Context(prec=60, Emin=-(10**8), Emax=10**8)):
        if _mean(low, shape) < target:
            raise ArgumentError(f"mean must be at most e^{-low}, got {mean!r}")
        for _ in range(150):  # 2000 / 2^150 is below SLACK
            middle = (low + high) / 2
            low, high = (low, middle) if _mean(middle, shape) < target else (middle, high)
        return low - SLACK


def _mean(log_gamma: Decimal, shape: float) -> Decimal:
    gamma = log_gamma.exp()
    if shape == 0.0:
        return (1 / gamma - 1) / -log_gamma
    power = (log_gamma * Decimal(shape)).exp()
    return Decimal(shape) * (1 - gamma) / (gamma * (1 - power))


def _up(value: Decimal) -> float:
    """A float at least `value`, whose own terms are known to forty digits."""
    return float_up(Fraction(Context(prec=17, rounding=ROUND_CEILING).create_decimal(value)))
