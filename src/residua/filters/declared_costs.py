"""Costs that a black box states itself.

A bound in the filter's own unit is charged as it is written. The largest PLD within the bound would
cost more: rounded up, it has mass at infinity, which no divergence survives.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from residua.filters.amounts import written
from residua.filters.query import Query, loss_of, relation_of
from residua.mechanisms.black_boxes.black_box import BlackBox
from residua.mechanisms.black_boxes.gdp import Gdp
from residua.mechanisms.black_boxes.rdp import Rdp
from residua.mechanisms.black_boxes.zcdp import Zcdp
from residua.mechanisms.composition.composed import Composed
from residua.mechanisms.composition.self_composed import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import identity
from residua.pld.pld import Pld

Amounts = tuple[Fraction, ...]


def stated_gdp(mechanism: Mechanism) -> tuple[Fraction] | None:
    """The `mu²` of a black box that is `mu`-GDP, as the one amount of a Gaussian budget."""
    return (written(mechanism.mu) ** 2,) if isinstance(mechanism, Gdp) else None


def stated_zcdp(mechanism: Mechanism) -> tuple[Fraction, Fraction] | None:
    """The `rho` and the `delta` of a black box that is `delta`-approximate `rho`-zCDP."""
    if isinstance(mechanism, Zcdp) and mechanism.xi == 0.0:
        return written(mechanism.rho), written(mechanism.delta)
    return None


def stated_renyi(mechanism: Mechanism, alpha: float) -> Fraction | None:
    """A black box's bound on `D_α`; it does not decrease in the order."""
    if isinstance(mechanism, Zcdp) and mechanism.delta == 0.0:
        return written(mechanism.xi) + written(mechanism.rho) * written(alpha)
    if isinstance(mechanism, Rdp):
        bounds = zip(mechanism.orders, mechanism.epsilons, strict=True)
        return min((written(eps) for order, eps in bounds if order >= alpha), default=None)
    return None


def split(
    query: Query, relation: str | None, stated: Callable[[Mechanism], Amounts | None]
) -> tuple[Amounts | None, Pld]:
    """What the parts of a query state that they take, all together, and the loss of the others."""
    if isinstance(query, Pld):
        return None, query
    if not _may_state(type(query)):
        return None, loss_of(query, relation)
    parts = [(stated(part), part, n) for part, n in _parts(query)]
    known = [tuple(n * cost for cost in costs) for costs, _, n in parts if costs is not None]
    if not known:
        return None, loss_of(query, relation)
    relation = relation_of(query, relation)
    others = [n * loss_of(part, relation) for costs, part, n in parts if costs is None]
    total = tuple(sum(costs, Fraction(0)) for costs in zip(*known, strict=True))
    return total, sum(others, identity())


@lru_cache(maxsize=256)
def _may_state(kind: type[Mechanism]) -> bool:
    return issubclass(kind, BlackBox | Composed | SelfComposed)


def _parts(query: Mechanism) -> list[tuple[Mechanism, int]]:
    """What a composition is made of, and how often."""
    if isinstance(query, SelfComposed):
        return [(part, n * query.count) for part, n in _parts(query.mechanism)]
    if isinstance(query, Composed):
        return [part for inner in query.mechanisms for part in _parts(inner)]
    return [(query, 1)]
