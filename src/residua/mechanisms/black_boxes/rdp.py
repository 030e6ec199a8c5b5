"""A black box with a Rényi curve: `D_α <= epsilons[i]` at `orders[i]`, in both directions.

Mironov 2017. The largest such loss is given by its testing region
(`pld/discretise/renyi_region.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from residua import checks
from residua.errors import ArgumentError
from residua.mechanisms.black_boxes.black_box import BlackBox
from residua.mechanisms.mechanism import Side, both
from residua.pld.constructors import from_exact, identity
from residua.pld.discretise.renyi_region import largest
from residua.pld.pld import Pld


@dataclass(frozen=True)
class Rdp(BlackBox):
    """Anything with Rényi divergence at most `epsilons[i]` at the order `orders[i] > 1`."""

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    relation: str | None = None
    unit: str | None = None

    kind: ClassVar[str] = "rdp"
    pair: ClassVar[str] = "all pairs of coins within the curve"
    reference: ClassVar[str] = "Mironov 2017"

    def __post_init__(self) -> None:
        self._check_declared()
        orders = checks.numbers("orders", self.orders)
        epsilons = checks.numbers("epsilons", self.epsilons)
        for order in orders:
            checks.require(1.0 + 1e-9 <= order <= 1e9, "orders", "between 1 + 1e-9 and 1e9", order)
        for eps in epsilons:
            checks.require(0.0 <= eps <= 1e6, "epsilons", "between 0 and 1e6", eps)
        if len(orders) != len(epsilons):
            raise ArgumentError(
                f"epsilons must have the length of orders ({len(orders)}), got {len(epsilons)}"
            )
        checks.set_fields(self, orders=orders, epsilons=epsilons)

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        if 0.0 in self.epsilons:
            return both(relation, identity())
        exact = largest(np.array(self.orders), np.array(self.epsilons), side)
        return both(relation, from_exact(exact))
