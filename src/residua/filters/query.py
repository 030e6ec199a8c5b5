"""Queries to a filter: PLDs, or mechanisms that know their PLDs.

One direction is enough. A mechanism's loss in the direction `add` is that of `(Q, P)` where
`remove` is that of `(P, Q)`: a PLD that dominates one dominates, reversed, the other. Our budgets
are symmetric and are checked on all of `x > 0`, so a check of either direction covers both.
Quantities that are *not* symmetric (Rényi divergences, largest losses) are computed from both ends
where they are used.
"""

from __future__ import annotations

from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.mechanisms.black_boxes import ApproximateDp, PureDp
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import Gaussian, Laplace
from residua.mechanisms.relations import ADD_REMOVE
from residua.mechanisms.sampled import SubsampledGaussian
from residua.mechanisms.selection import ExponentialMechanism
from residua.pld.families import symmetric
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import BoundedRange, RandomizedResponse
from residua.pld.pld import Pld
from residua.work_limit import remembered

Query = Pld | Mechanism


def as_query(value: Any, name: str = "query") -> Query:
    """Check that an argument is a query."""
    if not isinstance(value, Query):
        raise ArgumentTypeError(f"{name} must be a Pld or a mechanism, got {checks.shown(value)}")
    return value


def as_list(value: Any, name: str) -> tuple[Query, ...]:
    """Check that an argument is a list of queries; it may be empty."""
    return tuple(as_query(one, name) for one in checks.items(name, value, "a list of queries"))


def loss_of(query: Query, relation: str | None = None) -> Pld:
    """The PLD of a query in one direction; a mechanism's under the given relation."""
    return query if isinstance(query, Pld) else _loss(query, relation)


@remembered(maxsize=1024)
def _loss(mechanism: Mechanism, relation: str | None) -> Pld:
    return mechanism.pld(relation=relation_of(mechanism, relation))


def directions(loss: Pld) -> tuple[Pld, ...]:
    """A loss, and its reversal where that is another."""
    return (loss,) if loss.is_symmetric else (loss, loss.reverse())


def relation_of(mechanism: Mechanism, relation: str | None) -> str:
    """The relation that is meant: add-remove unless another is named.

    One budget keeps one relation, so a mechanism that has no pair for add-remove must be asked for
    under a relation that is named.
    """
    if relation is None and ADD_REMOVE not in mechanism.supported:
        raise ArgumentError(
            f"relation must be named for {mechanism.kind}, which has a pair for"
            f" {' and '.join(mechanism.supported) or 'none'} only, got None"
        )
    return mechanism.relation_or_first(ADD_REMOVE if relation is None else relation)


def describe(query: Query) -> str:
    """A query in a few words, ready to be pasted back."""
    text = repr(query)
    return text if len(text) <= 200 else text[:199] + "…"


def as_mechanism(query: Query) -> Mechanism:
    """The description of a query; a PLD has one if it is made of Gaussians, Laplaces and `R`."""
    if isinstance(query, Mechanism):
        return query
    if query.is_identity:
        return PureDp(0.0)
    parts: list[Mechanism] = []
    for d, s, n in query.gaussian.parts if query.gaussian else ():
        parts.append(_repeat(Gaussian(sigma=s, sensitivity=d), n))
    for factor, n in query.terms.items():
        made = _factor_mechanism(factor)
        if made is None:
            raise ArgumentError(f"query must be a mechanism to be stored, got {describe(query)}")
        parts.append(_repeat(made, n))
    return parts[0] if len(parts) == 1 else Composed(tuple(parts))


def plain_pld(value: Pld) -> dict[str, Any]:
    """A PLD as JSON data: the mechanism that has it, or that it is a PLD."""
    if value.gaussian and not value.terms and len(value.gaussian.parts) == 1:
        ((sensitivity, sigma, times),) = value.gaussian.parts
        if times == 1:  # What most budgets have left, without making a mechanism of it.
            return {"kind": Gaussian.kind, "sigma": sigma, "sensitivity": sensitivity}
    try:
        return as_mechanism(value).to_dict()
    except ArgumentError:
        return {"kind": "pld"}


def mechanism_if_known(query: Query) -> Query:
    """A query by its description, where it has one: what is written down reads back the same."""
    try:
        return as_mechanism(query)
    except ArgumentError:
        return query


def _repeat(part: Mechanism, n: int) -> Mechanism:
    return part if n == 1 else SelfComposed(part, n)


def _factor_mechanism(factor: Factor) -> Mechanism | None:
    if isinstance(factor, RandomizedResponse):
        return ApproximateDp(factor.eps, factor.delta) if factor.delta else PureDp(factor.eps)
    if isinstance(factor, symmetric.Laplace):
        return Laplace(factor.scale, factor.sensitivity)
    if isinstance(factor, BoundedRange) and factor.atomic == 0.0:
        return ExponentialMechanism(factor.eps)
    if isinstance(factor, Atoms) and len(factor.p) == 1 and factor.is_symmetric:
        return ApproximateDp(0.0, float(factor.mass_at_infinity))
    if isinstance(factor, GaussianMixture) and factor.q == () and len(factor.p) == 1:
        # Poisson sampling seen from the side of the sampled record: the direction `remove`.
        ((shift, weight),) = factor.p
        if factor.p_rest == factor.q_rest == 0.0 < shift:
            return SubsampledGaussian(factor.sigma, weight, shift)
    return None
