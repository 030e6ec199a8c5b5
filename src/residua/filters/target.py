"""The `(eps, delta)` that a filter must keep, and how much of it one query needs by itself."""

from __future__ import annotations

import math
from typing import Any

from residua import checks
from residua.filters import amounts
from residua.pld.constructors import gaussian
from residua.pld.pld import Pld

_HALVINGS = 60
"""How often an interval is halved at most: then its ends are next to each other, or next to 0."""


def target(eps: Any, delta: Any) -> tuple[float, float]:
    """Check a target; both must be positive, `R_{eps,delta}` a PLD, and `delta` below 1."""
    e = checks.real("eps", eps, "positive and at most 600")
    checks.require(0.0 < e <= 600.0, "eps", "positive and at most 600", eps)
    checks.require(e >= 2.0**-1000, "eps", "at least 2**-1000", eps)
    d = checks.real("delta", delta, "in (0, 1)")
    checks.require(0.0 < d < 1.0, "delta", "in (0, 1)", delta)
    return e, d


def moderate_target(eps: Any, delta: Any) -> tuple[float, float]:
    """Check a target within which whole compositions can be worked out."""
    e = checks.real("eps", eps, "between 0.001 and 100")
    checks.require(1e-3 <= e <= 100.0, "eps", "between 0.001 and 100", eps)
    d = checks.real("delta", delta, "at least 1e-30 and below 1")
    checks.require(1e-30 <= d < 1.0, "delta", "at least 1e-30 and below 1", delta)
    return e, d


def gaussian_bracket(eps: float, delta: float, width: float = 0.0) -> tuple[float, float]:
    """Ends around the largest `mu` with `G_mu` within `(eps, delta)`; the lower one is proven.

    `G_mu` is symmetric, so one direction is enough. Their distance is at most `width` times the
    upper end, or what sixty halvings leave.
    """

    def fits(mu: float) -> bool:
        return float(gaussian(mu=mu).delta(eps)) <= delta

    low, high = 0.0, 1.0
    while fits(high):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        if high - low <= width * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, high


def needed_alone(loss: Pld, delta: float) -> float:
    """The `eps` that a loss needs by itself at this `delta`, in its worse direction."""
    ends = (loss,) if loss.is_symmetric else (loss, loss.reverse())
    return max(float(one.epsilon(delta)) for one in ends)


def alone_words(eps: float, delta: float) -> str:
    """The same in words."""
    if not eps < math.inf:
        return f"no eps covers it at delta {delta:g}"
    return f"by itself it needs eps {amounts.shown(eps, up=True)} at delta {delta:g}"
