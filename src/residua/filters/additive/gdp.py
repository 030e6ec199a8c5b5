"""The GDP filter: `mu²` adds up (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023).

A query takes `nu²` for the least `nu` with `L ⪯ G_nu`, and `G_sqrt(mu²-nu²) ⊕ L ⪯ G_mu`.
`gdp_residue.py` takes less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.amounts import Left, State
from residua.filters.costs import gaussian_variance, stated_gdp, without_gaussian
from residua.filters.wording import SQUARES
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import gaussian, pure_dp
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import gdp_parameter

_LEAST = 1e-100
"""Losses below this are raised to it: their squares would underflow."""
_LISTED = (Atoms, GaussianMixture)


def lift_tiny(loss: Pld) -> Pld:
    """A loss above this one without factors so small that their squares underflow."""
    for factor in loss.terms:
        if _is_tiny(factor):
            break
    else:
        return loss
    tiny = {f: n for f, n in loss.terms.items() if _is_tiny(f)}
    kept = Pld(loss.gaussian, {f: n for f, n in loss.terms.items() if f not in tiny})
    return kept + sum(tiny.values()) * pure_dp(_LEAST)


def _is_tiny(factor: Factor) -> bool:
    if isinstance(factor, _LISTED) or factor.eps > 2.0 * _LEAST:
        return False
    return not factor.mass_at_infinity and factor.top < _LEAST


def gdp_cost(loss: Pld) -> Fraction | None:
    """`nu²` of a loss, from above and exact for Gaussian noise; None if there is no `nu`."""
    cost = gaussian_variance(loss)
    if not loss.terms:
        return cost
    loss = lift_tiny(loss)
    nu = gdp_parameter(without_gaussian(loss))
    if not nu < float("inf"):
        return None
    cost += amounts.rounded_up(nu) ** 2
    if loss.gaussian:
        # The whole may fit a smaller Gaussian than its parts do, one by one.
        whole = gdp_parameter(loss)
        if whole < float("inf"):
            cost = min(cost, amounts.rounded_up(whole) ** 2)
    return cost


class Gaussians(Additive):
    """A filter whose budget is `G_mu`; what is left of `mu²` is exact."""

    mu: float

    def __post_init__(self) -> None:
        mu = checks.between("mu", self.mu, 0.0, 1e6)
        checks.require(mu == 0.0 or mu >= 1e-100, "mu", "0 or at least 1e-100", mu)
        checks.set_fields(self, mu=mu)
        super().__post_init__()

    def _amounts(self) -> tuple[Fraction, ...]:
        return (amounts.written(self.mu) ** 2,)

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        return stated_gdp(mechanism)

    @property
    def _units(self) -> tuple[str, ...]:
        return (SQUARES,)

    def _amounts_of(self, left: Pld) -> tuple[Fraction, ...] | None:
        return None if left.terms else (gaussian_variance(left),)

    def remaining_in(self, state: State) -> Pld:
        assert isinstance(state, Left)
        return gaussian(mu=amounts.root_down(state.left[0]))

    def spent_in(self, state: State) -> Pld:
        assert isinstance(state, Left)
        return gaussian(mu=amounts.root_up(self._whole[0] - state.left[0]))

    @property
    def guarantee(self) -> Pld:
        return gaussian(mu=self.mu)


@dataclass(frozen=True)
class GdpFilter(Gaussians):
    """Admits while the squares of GDP parameters sum to at most `mu²`."""

    mu: float

    kind: ClassVar[str] = "gdp"
    fixed_costs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()

    def _costs(self, _left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        cost = gdp_cost(loss)
        return (cost,) if cost is not None else "is not covered by any Gaussian"
