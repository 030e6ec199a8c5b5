"""The `(eps, delta)` that a filter is to keep."""

from __future__ import annotations

from typing import Any

from residua import checks


def target(eps: Any, delta: Any) -> tuple[float, float]:
    """Check a target; both must be positive, `R_{eps,delta}` a PLD, and `delta` below 1."""
    e = checks.real("eps", eps, "positive and at most 600")
    checks.require(0.0 < e <= 600.0, "eps", "positive and at most 600", eps)
    checks.require(e >= 2.0**-1000, "eps", "at least 2**-1000", eps)
    d = checks.real("delta", delta, "in (0, 1)")
    checks.require(0.0 < d < 1.0, "delta", "in (0, 1)", delta)
    return e, d
