"""Filters of zCDP (Bun and Steinke 2016; Whitehouse et al. 2023): `rho` adds up.

`D_α <= rho α` at every order, and each order by itself is a free filter.

The approximate filter keeps an `(eps, delta)` budget through `rho` and `delta`. `delta_conversion`
is set aside for turning zCDP into `(eps, delta)`; the rest of `delta` pays for what queries lose
with small probability. There are two conversions:

* `whitehouse`: the fully adaptive advanced composition of Whitehouse et al. 2023. A query that is
  `(eps_i, delta_i)`-DP takes `eps_i²/2`, Gaussian noise `mu²/2`, and the budget is the largest
  `rho` with `rho + 2 sqrt(rho ln(1/d')) <= eps`.
* `best` (the default): a query takes its zCDP parameter (`R_eps` has `eps tanh(eps/2)`), and the
  budget is the largest `rho` that the conversion of `target.py` allows at the best order.

A black box that is `delta_i`-approximate `rho_i`-zCDP (Bun and Steinke 2016) takes `rho_i` and
`delta_i`, which add up under full adaptivity (Whitehouse et al. 2023).

A factor `R_{0,d}` splits off a symmetric query only: elsewhere what is left need not be a PLD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.budgets import ZcdpBudget
from residua.filters.costs import (
    gaussian_variance,
    largest_loss,
    missing_mass,
    stated_zcdp,
    without_gaussian,
    without_infinity,
)
from residua.filters.target import target, zcdp_budget
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import zcdp_parameter
from residua.work_limit import remembered_property


def zcdp_cost(loss: Pld) -> Fraction | None:
    """The least `rho` of a loss, from above and exact for Gaussian noise; None if infinite."""
    cost = gaussian_variance(loss) / 2
    if loss.terms:
        rho = zcdp_parameter(without_gaussian(loss))
        if not math.isfinite(rho):
            return None
        cost += amounts.rounded_up(rho)
    return cost


@dataclass(frozen=True)
class ZcdpFilter(Additive):
    """Admits while zCDP parameters sum to at most `rho`."""

    rho: float

    kind: ClassVar[str] = "zcdp"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.set_fields(self, rho=checks.between("rho", self.rho, 0.0, 1e6))
        super().__post_init__()

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        cost = stated_zcdp(mechanism)
        # No rho covers a delta: its loss says so.
        return None if cost is None or cost[1] else cost[:1]

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        cost = zcdp_cost(loss)
        if cost is None:
            return "may reveal everything, which no rho covers"
        return (cost,)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("rho",)

    def _budget(self, numbers: tuple[float, ...]) -> ZcdpBudget:
        return ZcdpBudget(*numbers)

    @property
    def guarantee(self) -> Pld:
        return ZcdpBudget(self.rho).pld


@dataclass(frozen=True)
class ApproximateZcdpFilter(Additive):
    """Admits while zCDP parameters and deltas stay within what `(eps, delta)` allows."""

    eps: float
    delta: float
    delta_conversion: float | None = None
    conversion: str = "best"

    kind: ClassVar[str] = "approximate_zcdp"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps, delta = target(self.eps, self.delta)
        if self.delta_conversion is None:
            aside = delta
        else:
            aside = checks.real("delta_conversion", self.delta_conversion, "in (0, delta]")
            checks.require(0.0 < aside <= delta, "delta_conversion", "in (0, delta]", aside)
        checks.one_of("conversion", self.conversion, ("best", "whitehouse"))
        checks.set_fields(self, eps=eps, delta=delta, delta_conversion=aside)
        super().__post_init__()

    @property
    def _aside(self) -> float:
        assert self.delta_conversion is not None
        return self.delta_conversion

    @remembered_property
    def rho(self) -> Fraction:
        """The whole of `rho`: the most that the conversion allows, rounded down."""
        if self.conversion == "whitehouse":
            return _whitehouse(amounts.written(self.eps), amounts.written(self._aside))
        return zcdp_budget(amounts.written(self.eps), amounts.written(self._aside))

    def _amounts(self) -> tuple[Fraction, ...]:
        return self.rho, amounts.written(self.delta) - amounts.written(self._aside)

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        return stated_zcdp(mechanism)

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        kept = without_infinity(loss)
        if kept is None:
            return "has mass at infinity that does not split off"
        if self.conversion == "whitehouse":
            largest = largest_loss(without_gaussian(kept))
            rho = None if largest is None else largest**2 / 2 + gaussian_variance(kept) / 2
        else:
            rho = zcdp_cost(kept)
        if rho is None:
            return "has no finite zCDP parameter"
        return rho, missing_mass(loss)

    @property
    def _units(self) -> tuple[str, ...]:
        return ("rho", "delta")

    def _budget(self, numbers: tuple[float, ...]) -> ZcdpBudget:
        return ZcdpBudget(*numbers)

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)


def _whitehouse(eps: Fraction, aside: Fraction) -> Fraction:
    """The largest `rho` with `rho + 2 sqrt(rho ln(1/d')) <= eps`, rounded down: a root."""
    with localcontext() as context:
        context.prec = 50
        level = -(Decimal(aside.numerator) / Decimal(aside.denominator)).ln()
        whole = Decimal(eps.numerator) / Decimal(eps.denominator)
        # (sqrt(l + eps) - sqrt(l))², without its cancellation.
        root = whole / ((level + whole).sqrt() + level.sqrt())
        return Fraction(root * root * (1 - Decimal(10) ** -40))
