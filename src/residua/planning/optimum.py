"""The non-adaptive optimum, which filters are compared with.

The most queries `t` of a workload with `L1 ⊕ … ⊕ Lt ⪯ R_{eps,delta}`, that is with
`h(e^eps) <= delta` for the composition and for its reversal. No filter that keeps the promise
admits more of that sequence. Longer prefixes lose more, so `t` is found by bisection.
"""

from __future__ import annotations

from typing import Any

from residua import checks
from residua.filters.counting import MOST
from residua.planning.workload import Workload
from residua.pld.pld import Pld


def checked_budget(eps: Any, delta: Any) -> tuple[float, float]:
    """A budget with an optimum: `eps` in (0, 600], `delta` in (0, 1)."""
    eps = checks.real("eps", eps, "positive and at most 600")
    checks.require(0.0 < eps <= 600.0, "eps", "positive and at most 600", eps)
    delta = checks.real("delta", delta, "in (0, 1)")
    checks.require(0.0 < delta < 1.0, "delta", "in (0, 1)", delta)
    return eps, delta


def optimum(
    eps: float, delta: float, workload: Workload, *, most: int = MOST, relation: str | None = None
) -> int:
    """The most queries of the workload within `(eps, delta)`, looking at all of them at once.

    Never less than the truth: the next one is proven to be too many, unless the workload ends
    or `most` is reached.
    """
    end = most if workload.longest is None else min(most, workload.longest)

    def within(count: int) -> bool:
        return not exceeds(workload.composed(count, relation), eps, delta)

    low, high = 0, 1
    while high < end and within(high):
        low, high = high, 2 * high
    if high >= end:
        if within(end):
            return end
        high = end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def exceeds(loss: Pld, eps: float, delta: float) -> bool:
    """Whether a loss is proven not to be within `(eps, delta)`."""
    ends = (loss,) if loss.is_symmetric else (loss, loss.reverse())
    return any(float(one.delta_bounds(eps).lo) > delta for one in ends)
