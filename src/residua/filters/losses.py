"""Largest losses, exact where they are parameters that someone wrote."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from residua import checks
from residua.filters.amounts import rounded_up, written
from residua.pld.constructors import pure_dp
from residua.pld.families.atoms import Atoms
from residua.pld.families.bounded_range import BoundedRange
from residua.pld.families.factors import Factor
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse
from residua.pld.pld import Pld, composition
from residua.pld.support.support_ends import largest_loss_bounds


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
    match list(loss.terms.items()):
        case [(RandomizedResponse(eps=eps, delta=0.0), 1)] if loss.gaussian is None:
            return eps
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
