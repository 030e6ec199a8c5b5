"""A black box that is `rho`-zCDP: `D_α <= xi + rho α` at every order, in both directions.

Bun and Steinke 2016. The largest such loss is given by its testing region
(`pld/renyi_region.py`), which is what a zCDP bound says and no more: looser than Gaussian noise
of the same `rho`, tighter than the usual conversions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from residuum import checks
from residuum.bounds import Floats
from residuum.mechanisms.black_box import BlackBox, compared_with
from residuum.mechanisms.mechanism import Side, both
from residuum.pld.constructors import (
    approximate_dp,
    from_exact,
    gaussian,
    identity,
    infinite,
)
from residuum.pld.renyi_region import largest
from residuum.pld.value import Pld

_ORDERS = np.geomspace(1e-3, 30.0, 160)
"""Orders tried, as multiples of `1/sqrt(rho)` above 1: the best one for `delta` is near
`sqrt(ln(1/delta) / rho)`, which is 10 at the depth where the curve ends."""
_RHO = (1e-8, 100.0)


def _all_orders(rho: float, xi: float) -> tuple[Floats, Floats]:
    """Orders and bounds that imply `D_α <= xi + rho α` at every order for coins.

    `(α-1) D_α` is convex in `α`, so between two orders it stays below its chord; the parabola
    `(α-1)(xi + rho α)` sags below its own chord by at most `rho Δ²/4`, which is taken off. Below
    the first order the chord from `α = 1` asks for `xi + rho`; past the last `D_α` has long reached
    the largest loss of anything that is followed.
    """
    root = math.sqrt(max(rho, xi))
    near = np.geomspace(1e-4 * min(1.0, 1.0 / root), 30.0 / root, 280)
    orders = 1.0 + np.concatenate([near, np.geomspace(30.0 / root, 1e3 / root, 20)[1:]])
    gaps = np.diff(orders)
    widest = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    bounds = xi + rho * orders - 0.25 * rho * widest * widest / (orders - 1.0)
    bounds[0] = min(bounds[0], xi + rho)
    return orders, np.maximum(bounds * (1.0 - 1e-14), 0.0)


@dataclass(frozen=True)
class Zcdp(BlackBox):
    """Anything with Rényi divergences at most `xi + rho α` at every order `α > 1`."""

    rho: float
    xi: float = 0.0
    relation: str | None = None

    kind: ClassVar[str] = "zcdp"
    pair: ClassVar[str] = "all pairs of coins within the bound"
    reference: ClassVar[str] = "Bun and Steinke 2016"

    def __post_init__(self) -> None:
        self._check_relation()
        self._set(rho=checks.non_negative("rho", self.rho), xi=checks.non_negative("xi", self.xi))

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        size = self.rho + self.xi
        if size == 0.0:
            return both(relation, identity())
        if size > _RHO[1]:
            return both(relation, infinite() if side == "above" else gaussian(mu=1.0))
        rho = self.rho
        if size < _RHO[0]:
            # By Pinsker's inequality no test tells more than sqrt(KL / 2).
            distance = math.sqrt(0.5 * size) * (1.0 + 1e-15)
            tiny = approximate_dp(0.0, distance) if side == "above" else identity()
            return both(relation, tiny)
        if side == "below":
            return both(relation, from_exact(largest(*_all_orders(rho, self.xi), "below")))
        orders = 1.0 + _ORDERS / math.sqrt(max(rho, self.xi))
        bounds = (self.xi + rho * orders) * (1.0 + 1e-15)
        return both(relation, from_exact(largest(orders, bounds, "above")))

    def notes(self) -> tuple[str, ...]:
        if not 0.0 < self.rho <= _RHO[1] or self.xi:
            return ()
        twin = gaussian(mu=math.sqrt(2.0 * self.rho))
        return compared_with(self, twin, "Gaussian noise of the same rho")
