"""Declared costs: those that are known without a PLD.

A bound of a black box in the filter's own unit is charged as it is written. The largest PLD within
the bound would cost more: rounded up, it has mass at infinity, which no divergence survives. The
same goes for two kinds of integer noise with a cost in closed form:

* discrete Gaussian noise is `Δ²/2σ²`-zCDP (Canonne, Kamath and Steinke 2020, proposition 5);
* the largest loss of discrete Laplace noise is `Δ/b`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from residua.filters.amounts import written
from residua.filters.query import Query, loss_of, relation_of
from residua.mechanisms.black_boxes import BlackBox, Gdp, Rdp, Zcdp
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from residua.pld.constructors import identity
from residua.pld.pld import Pld

Amounts = tuple[Fraction, ...]


def stated_gdp(mechanism: Mechanism) -> tuple[Fraction] | None:
    """The `mu²` of a black box that is `mu`-GDP, as the one amount of a Gaussian budget."""
    return (written(mechanism.mu) ** 2,) if isinstance(mechanism, Gdp) else None


def stated_zcdp(mechanism: Mechanism) -> tuple[Fraction, Fraction] | None:
    """The `rho` and the `delta` of what is known to be `delta`-approximate `rho`-zCDP."""
    if isinstance(mechanism, DiscreteGaussian):
        return _half_square(mechanism), Fraction(0)
    if isinstance(mechanism, Zcdp) and mechanism.xi == 0.0:
        return written(mechanism.rho), written(mechanism.delta)
    return None


def stated_renyi(mechanism: Mechanism, alpha: float) -> Fraction | None:
    """A known bound on `D_α`; that of a black box does not decrease in the order."""
    if isinstance(mechanism, DiscreteGaussian):
        return _half_square(mechanism) * written(alpha)
    if isinstance(mechanism, Zcdp) and mechanism.delta == 0.0:
        return written(mechanism.xi) + written(mechanism.rho) * written(alpha)
    if isinstance(mechanism, Rdp):
        bounds = zip(mechanism.orders, mechanism.epsilons, strict=True)
        return min((written(eps) for order, eps in bounds if order >= alpha), default=None)
    return None


def stated_eps(mechanism: Mechanism) -> Fraction | None:
    """The largest loss of discrete Laplace noise, however many values it has."""
    if isinstance(mechanism, DiscreteLaplace) and mechanism.sensitivity > 1:
        return mechanism.sensitivity / written(mechanism.scale)
    return None


def _half_square(noise: DiscreteGaussian) -> Fraction:
    return (noise.sensitivity / written(noise.sigma)) ** 2 / 2


def split(
    query: Query, relation: str | None, stated: Callable[[Mechanism], Amounts | None]
) -> tuple[Amounts | None, Pld]:
    """The sum of the costs that parts of a query declare, and the loss of the other parts."""
    if isinstance(query, Pld):
        return None, query
    if not _may_state(type(query)):
        return None, loss_of(query, relation)
    parts = [(stated(part), part, n) for part, n in leaves(query)]
    known = [tuple(n * cost for cost in costs) for costs, _, n in parts if costs is not None]
    if not known:
        return None, loss_of(query, relation)
    relation = relation_of(query, relation)
    others = [n * loss_of(part, relation) for costs, part, n in parts if costs is None]
    total = tuple(sum(costs, Fraction(0)) for costs in zip(*known, strict=True))
    return total, sum(others, identity())


@lru_cache(maxsize=256)
def _may_state(kind: type[Mechanism]) -> bool:
    known = BlackBox | DiscreteGaussian | DiscreteLaplace
    return issubclass(kind, known | Composed | SelfComposed)


def leaves(query: Mechanism) -> list[tuple[Mechanism, int]]:
    """The parts of a composition, and how often each occurs."""
    if isinstance(query, SelfComposed):
        return [(part, n * query.count) for part, n in leaves(query.mechanism)]
    if isinstance(query, Composed):
        return [part for inner in query.mechanisms for part in leaves(inner)]
    return [(query, 1)]
