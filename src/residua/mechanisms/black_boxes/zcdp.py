"""A black box that is `rho`-zCDP: `D_α <= xi + rho α` at every order, in both directions.

Bun and Steinke 2016. The largest such loss is given by its testing region
(`pld/discretise/renyi_region.py`), which is what a zCDP bound says and no more: looser than
Gaussian noise of the same `rho`, tighter than the usual conversions.

With `delta` it is `delta`-approximate zCDP (their definition 8.1): for each pair of neighbours
there are events `E` of the one output and `F` of the other, each of probability at least
`1 - delta`, such that the outputs given `E` and given `F` satisfy the bound, in both directions.
The largest such loss is `R_{0,delta} ⊕ L`, where `L` is the largest one within the bound:

* it is approximate zCDP: let the events be that `R_{0,delta}` reveals nothing;
* nothing is larger: each output is a mixture, `1 - delta` of what it is given its event and `delta`
  of something else. To draw from it, it is enough to know the data set with probability `delta`,
  and to see an output given the event otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.mechanisms import limits
from residua.mechanisms.black_boxes.black_box import BlackBox, compared_with
from residua.mechanisms.mechanism import Side, both
from residua.pld.constructors import (
    approximate_dp,
    from_exact,
    gaussian,
    identity,
    infinite,
)
from residua.pld.discretise.renyi_region import largest
from residua.pld.pld import Pld

_RHO = (1e-8, 100.0)
_LEAST_RHO = 1e-10
"""Beside a larger `xi`, a smaller `rho` than this is rounded: up to it, or down to 0."""


def _spread(first: float, last: float, per_decade: float) -> Floats:
    return np.geomspace(first, last, math.ceil(per_decade * math.log10(last / first)) + 1)


def _orders(rho: float, xi: float) -> Floats:
    """The orders used above: the best one for `delta` is near `sqrt(ln(1/delta) / rho)`, which is
    `10 / sqrt(rho)` at the depth where the curve ends, and no smaller one than about
    `1 / sqrt(rho + xi)` is of use.
    """
    return 1.0 + _spread(1e-3 / math.sqrt(max(rho, xi)), 30.0 / math.sqrt(rho), 35.5)


def _all_orders(rho: float, xi: float) -> tuple[Floats, Floats]:
    """Orders and bounds that imply `D_α <= xi + rho α` at every order for coins.

    `(α-1) D_α` is convex in `α`, so between two orders it stays below its chord; the parabola
    `(α-1)(xi + rho α)` sags below its own chord by at most `rho Δ²/4`, which is taken off. Below
    the first order the chord from `α = 1` asks for `xi + rho`. The largest loss `l` of a coin of
    probability `p` is at most `D_α - ln p / (α-1)`, so that of everything that is followed
    (`p >= e^-103`) stays below `xi + 30 sqrt(rho) + 300 rho`, and past the last order, where the
    bound is above `xi + 1000 sqrt(rho) + rho`, there is nothing left to ask.
    """
    first, root = 1e-4 * min(1.0, 1.0 / math.sqrt(max(rho, xi))), math.sqrt(rho)
    near = _spread(first, 30.0 / root, 51.0)
    orders = 1.0 + np.concatenate([near, np.geomspace(30.0 / root, 1e3 / root, 20)[1:]])
    gaps = np.diff(orders)
    widest = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    bounds = xi + rho * orders - 0.25 * rho * widest * widest / (orders - 1.0)
    bounds[0] = min(bounds[0], xi + rho)
    return orders, np.maximum(bounds * (1.0 - 1e-14), 0.0)


@dataclass(frozen=True)
class Zcdp(BlackBox):
    """Anything with Rényi divergences at most `xi + rho α`, all `α > 1`, but for a `delta`."""

    rho: float
    """The slope of the bound, 0 or more."""
    xi: float = 0.0
    """The bound at `α = 0`, 0 or more; 0 is `rho`-zCDP."""
    delta: float = 0.0
    """The probability, under either data set, of what the bound leaves out."""
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "zcdp"
    pair: ClassVar[str] = "all pairs of coins within the bound"
    reference: ClassVar[str] = "Bun and Steinke 2016, definitions 1.1 and 8.1"

    def __post_init__(self) -> None:
        self._check_declared()
        checks.set_fields(
            self,
            rho=checks.non_negative("rho", self.rho),
            xi=checks.non_negative("xi", self.xi),
            delta=checks.probability("delta", self.delta),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        within = self._above() if side == "above" else self._below()
        return both(relation, within + approximate_dp(0.0, self.delta))

    def _above(self) -> Pld:
        size = self.rho + self.xi
        if self.rho == 0.0:
            return limits.pure_dp(Fraction(self.xi), "above")
        if size > _RHO[1]:
            return infinite()
        if size < _RHO[0]:
            # By Pinsker's inequality no test tells more than sqrt(KL / 2).
            return approximate_dp(0.0, math.sqrt(0.5 * size) * (1.0 + 1e-15))
        rho = max(self.rho, _LEAST_RHO)
        orders = _orders(rho, self.xi)
        bounds = (self.xi + rho * orders) * (1.0 + 1e-15)
        return from_exact(largest(orders, bounds, "above"))

    def _below(self) -> Pld:
        size = self.rho + self.xi
        if self.rho < _LEAST_RHO or (size > _RHO[1] and self.xi > self.rho):
            # `D_α <= xi` at every order is `xi`-DP.
            return limits.pure_dp(Fraction(self.xi), "below")
        if size > _RHO[1]:
            return gaussian(mu=1.0)  # for any rho of 1/2 or more
        if size < _RHO[0]:
            return identity()
        return from_exact(largest(*_all_orders(self.rho, self.xi), "below"))

    def notes(self) -> tuple[str, ...]:
        if not 0.0 < self.rho <= _RHO[1] or self.xi or self.delta:
            return ()
        twin = gaussian(mu=math.sqrt(2.0 * self.rho))
        return compared_with(self, twin, "Gaussian noise of the same rho")
