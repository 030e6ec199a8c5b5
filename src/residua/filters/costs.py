"""Costs of losses: largest losses, Gaussian variances, Rényi divergences and masses at infinity.

All are from above and in both directions, and exact where they are parameters that someone wrote.

**Declared costs** are known without a PLD. A bound of a black box in the filter's own unit is
charged as it is written. The largest PLD within the bound would cost more: rounded up, it has mass
at infinity, which no divergence survives. The same goes for two kinds of integer noise with a cost
in closed form:

* discrete Gaussian noise is `Δ²/2σ²`-zCDP (Canonne, Kamath and Steinke 2020, proposition 5);
* the largest loss of discrete Laplace noise is `Δ/b`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from residua import checks
from residua.filters.amounts import rounded_up, written
from residua.filters.query import Query, directions, loss_of, relation_of
from residua.mechanisms.black_boxes import BlackBox, Gdp, Rdp, Zcdp
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from residua.pld.constructors import identity, pure_dp
from residua.pld.curve.renyi import renyi_bounds
from residua.pld.curve.support_ends import largest_loss_bounds
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor
from residua.pld.families.symmetric import BoundedRange, Laplace, RandomizedResponse
from residua.pld.pld import Pld, composition
from residua.pld.residue.gdp_parameter import zcdp_parameter
from residua.work_limit import remembered


def largest_eps(value: Any) -> float:
    """Check an `eps` that a filter is to keep: `R_eps` must be a PLD."""
    eps = checks.between("eps", value, 0.0, 600.0)
    checks.require(eps == 0.0 or eps >= 2.0**-1000, "eps", "0 or at least 2**-1000", value)
    return eps


def largest_loss(loss: Pld) -> Fraction | None:
    """The largest finite `|Z|`, from above; None where finite losses are unbounded.

    Losses of a composition add up, in each direction.
    """
    if loss.gaussian:
        return None
    forth, back = Fraction(0), Fraction(0)
    for factor, n in loss.terms.items():
        top = _top(factor)
        bottom = top if factor.is_symmetric else _top(factor.reverse())
        if top is None or bottom is None:
            return None
        forth, back = forth + n * top, back + n * bottom
    return max(forth, back, Fraction(0))


def _top(factor: Factor) -> Fraction | None:
    if isinstance(factor, RandomizedResponse | BoundedRange):
        return written(factor.eps)
    if isinstance(factor, Laplace):
        return written(factor.sensitivity) / written(factor.scale)
    if factor.atom_count == 0:
        return None
    high = largest_loss_bounds(Pld(None, {factor: 1}))[1]
    return rounded_up(high) if math.isfinite(high) else None


def response_eps(loss: Pld) -> float | None:
    """The `eps` of a loss that is `R_eps` with `eps` as it was given; None for any other loss."""
    if loss.is_identity:
        return 0.0
    point = response_point(loss)
    return point[0] if point is not None and point[1] == 0.0 else None


def response_point(loss: Pld) -> tuple[float, float] | None:
    """`(eps, delta)` of a loss that is `R_{eps,delta}` as it was given; None for any other loss."""
    match list(loss.terms.items()):
        case [(RandomizedResponse(eps=eps, delta=delta), 1)] if loss.gaussian is None:
            return eps, delta
    return None


def is_only_delta(factor: Factor) -> bool:
    """Whether a factor is `R_{0,delta}` as someone wrote it, with a float `delta`."""
    mass = factor.mass_at_infinity
    single = isinstance(factor, Atoms) and factor.atom_count == 1 and factor.is_symmetric
    return single and mass == Fraction(float(mass))


def may_lose_everything(loss: Pld) -> bool:
    """Whether there is mass at plus or minus infinity."""
    return loss.mass_at_infinity > 0.0 or loss.mass_at_minus_infinity > 0.0


def missing_mass(loss: Pld) -> Fraction:
    """The larger of the masses at plus and minus infinity, from above, added up over factors."""
    total = Fraction(0)
    for factor, n in loss.terms.items():
        if isinstance(factor, RandomizedResponse):
            total += n * written(factor.delta)
        elif is_only_delta(factor):
            total += n * written(float(factor.mass_at_infinity))
        else:
            total += n * max(factor.mass_at_infinity, factor.mass_at_minus_infinity)
    return total


def without_infinity(loss: Pld) -> Pld | None:
    """`L°` with `L = R_{0,d} ⊕ L°`, factor by factor; None where a factor does not split."""
    kept = [Pld(loss.gaussian, {})]
    for factor, n in loss.terms.items():
        if not factor.mass_at_infinity and not factor.mass_at_minus_infinity:
            kept.append(Pld(None, {factor: n}))
        elif isinstance(factor, RandomizedResponse):
            kept.append(n * pure_dp(factor.eps))
        elif not (isinstance(factor, Atoms) and factor.atom_count == 1 and factor.is_symmetric):
            return None
    return composition(kept)


def gaussian_variance(loss: Pld) -> Fraction:
    """`mu²` of the Gaussian part, for the parameters as they are written."""
    return Fraction(0) if loss.gaussian is None else _of_parts(tuple(loss.gaussian.parts))


# By the parts: equal PLDs may have been written differently.
@lru_cache(maxsize=1024)
def _of_parts(parts: tuple[tuple[float, float, int], ...]) -> Fraction:
    return sum((n * (written(d) / written(s)) ** 2 for d, s, n in parts), Fraction(0))


def without_gaussian(loss: Pld) -> Pld:
    """The rest of a loss beside its Gaussian part."""
    return Pld(None, loss.terms) if loss.gaussian else loss


def renyi_cost(loss: Pld, alpha: float) -> Fraction | None:
    """`D_α` of a loss, in the worse direction; None if infinite."""
    return renyi_costs(loss, (alpha,))[0]


def renyi_costs(loss: Pld, alphas: tuple[float, ...]) -> tuple[Fraction | None, ...]:
    """The same at several orders."""
    variance = gaussian_variance(loss)
    costs = [variance * written(alpha) / 2 if variance else Fraction(0) for alpha in alphas]
    if not loss.terms:
        return tuple(costs)
    rests = _renyi(without_gaussian(loss), alphas)
    both = zip(costs, rests, strict=True)
    return tuple(None if rest is None else cost + rest for cost, rest in both)


# Not of the Gaussian part: equal PLDs may have been written differently.
@remembered(maxsize=4096)
def _renyi(rest: Pld, alphas: tuple[float, ...]) -> tuple[Fraction | None, ...]:
    orders = np.array(alphas)
    bounds = [renyi_bounds(each, orders) for each in directions(rest)]
    lows, highs = (np.max([getattr(b, end) for b in bounds], axis=0) for end in ("lo", "hi"))
    costs: list[Fraction | None] = []
    for alpha, low, high in zip(alphas, lows.tolist(), highs.tolist(), strict=True):
        cost = high
        if math.isfinite(high) and high > low * (1.0 + 1e-6):
            # Wide bounds: quotients have no digits left for tiny losses; `α rho` has.
            cost = min(high, float(np.nextafter(alpha * zcdp_parameter(rest), np.inf)))
        costs.append(rounded_up(cost) if math.isfinite(high) else None)
    return tuple(costs)


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
