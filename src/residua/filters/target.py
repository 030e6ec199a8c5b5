"""The `(eps, delta)` that a filter is to keep, and what one query needs of it by itself."""

from __future__ import annotations

import math
from typing import Any

from residua import checks
from residua.filters import amounts
from residua.pld.pld import Pld


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
    e, d = target(eps, delta)
    checks.require(1e-3 <= e <= 100.0, "eps", "between 0.001 and 100", eps)
    checks.require(d >= 1e-30, "delta", "at least 1e-30 and below 1", delta)
    return e, d


def needed_alone(loss: Pld, delta: float) -> float:
    """The `eps` that a loss needs by itself at this `delta`, in its worse direction."""
    ends = (loss,) if loss.is_symmetric else (loss, loss.reverse())
    return max(float(one.epsilon(delta)) for one in ends)


def alone_words(eps: float, delta: float) -> str:
    """The same in words."""
    if not eps < math.inf:
        return f"no eps covers it at delta {delta:g}"
    return f"by itself it needs eps {amounts.shown(eps, up=True)} at delta {delta:g}"
