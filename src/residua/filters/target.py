"""The `(eps, delta)` that a filter must keep: its range, and the Rényi budgets that keep it.

**Conversion** (Canonne, Kamath and Steinke 2020, proposition 12). `D_α <= rho` gives
`delta(eps) <= e^{(α-1)(rho-eps)} (1-1/α)^{α-1} / α`. Solved for `rho`,

    rho = eps + (ln(α delta) - (α-1) ln(1-1/α)) / (α-1),

and for zCDP (`rho α` in place of `rho`) the best order is found by search: any order is valid, so
only the last evaluation must be proven. Logarithms are taken in decimals of forty digits; of each
term its 1e-30th part is taken off, and the result is rounded down to twenty digits.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from residua import checks
from residua.filters import amounts
from residua.filters.query import directions
from residua.pld.constructors import gaussian
from residua.pld.pld import Pld
from residua.work_limit import remembered


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


def largest_mu(eps: float, delta: float) -> float:
    """A `mu` with `G_mu` within `(eps, delta)`, proven, and about the largest one."""
    return gaussian_bracket(eps, delta)[0]


@remembered(maxsize=256)
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
    for _ in range(60):  # Then the ends are next to each other, or next to 0.
        if high - low <= width * high:
            break
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, high


def needed_alone(loss: Pld, delta: float) -> float:
    """The `eps` that a loss needs by itself at this `delta`, in its worse direction."""
    return max(float(each.epsilon(delta)) for each in directions(loss))


def alone_words(eps: float, delta: float) -> str:
    """The same in words."""
    if not eps < math.inf:
        return f"no eps covers it at delta {delta:g}"
    return f"by itself it needs eps {amounts.shown(eps, up=True)} at delta {delta:g}"


_RESULT = Context(prec=20, rounding=ROUND_FLOOR)
"""The digits of a result; on the way to it there are forty."""
_SLACK = Decimal("1e-30")
"""A division by `α - 1 >= 1e-9` may cost nine of the forty digits."""


@remembered(maxsize=256)
def renyi_budget(alpha: Fraction, eps: Fraction, delta: Fraction) -> Fraction:
    """The largest `rho` for which `D_α <= rho` implies `(eps, delta)`-DP, rounded down.

    By this conversion; 0 where it allows nothing.
    """
    with localcontext() as context:
        context.prec = 40
        a, e, d = (Decimal(v.numerator) / Decimal(v.denominator) for v in (alpha, eps, delta))
        first, second = (a * d).ln() / (a - 1), (1 - 1 / a).ln()
        # The terms may cancel: what is rounded is their size, not that of the difference.
        rho = e + first - second - (e + abs(first) + abs(second)) * _SLACK
    if rho <= 0:
        return Fraction(0)
    return Fraction(_RESULT.create_decimal(rho))


@remembered(maxsize=256)
def best_order(eps: Fraction, delta: Fraction) -> Fraction:
    """The order with the largest `rho / α`, which is best for zCDP."""
    e, d = float(eps), float(delta)
    low, high = 1e-6, 1e9
    for _ in range(6):
        a = 1.0 + np.geomspace(low, high, 400)
        value = e + (np.log(a * d) - (a - 1.0) * np.log1p(-1.0 / a)) / (a - 1.0)
        k = int(np.argmax(value / a))
        low, high = a[max(k - 2, 0)] - 1.0, a[min(k + 2, a.size - 1)] - 1.0
    return Fraction(f"{a[k]:.10g}")


@remembered(maxsize=256)
def order_for(loss: Pld, eps: float, delta: float) -> float:
    """About the order at which Rényi accounting within `(eps, delta)` admits most copies."""
    a = 1.0 + np.geomspace(0.1, 1e5, 120)
    room = eps + (np.log(a * delta) - (a - 1.0) * np.log1p(-1.0 / a)) / (a - 1.0)
    costs = np.max([np.asarray(each.renyi(a)) for each in directions(loss)], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = np.nan_to_num(np.where(room > 0.0, room / costs, 0.0), posinf=0.0)
    return float(f"{a[int(np.argmax(counts))]:.6g}")


def zcdp_budget(eps: Fraction, delta: Fraction) -> Fraction:
    """The largest `rho` (but 1e-9) for which `rho`-zCDP implies `(eps, delta)`-DP."""
    alpha = best_order(eps, delta)
    rho = renyi_budget(alpha, eps, delta) / alpha
    return Fraction(_RESULT.divide(Decimal(rho.numerator), Decimal(rho.denominator)))
