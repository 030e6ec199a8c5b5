"""From a filter and what a spend says about losses to its pricing.

Losses come as a column `nu` (Gaussian), a column `eps` (pure DP), a column `sensitivity` with one
shared Gaussian or Laplace mechanism that it scales, or no column at all with one shared query of
any kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.additive.base import exact_costs
from residua.filters.additive.pure import PureFilter
from residua.filters.additive.zcdp import ZcdpFilter
from residua.filters.declared_costs import split, stated_gdp
from residua.filters.divergence import gaussian_variance
from residua.filters.query import Query, as_query, described, relation_of
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.individual.pricing.budgets import IndividualFilter, largest_eps, units_of
from residua.individual.pricing.levels import Flags, Levels, default_levels, given_levels, quotient
from residua.individual.pricing.pricing import (
    Fixed,
    FixedByLevel,
    Linear,
    Pricing,
    Square,
    Staircase,
    StaircaseByLevel,
)
from residua.individual.pricing.residue_curve import LARGEST_EPS
from residua.individual.pricing.residue_table import (
    EMPTY,
    ResidueTable,
    response_table,
    shared_table,
)
from residua.individual.pricing.units import MOST, Units
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise.gaussian import Gaussian
from residua.mechanisms.noise.laplace import Laplace
from residua.mechanisms.relations import ADD_REMOVE
from residua.pld.constructors import laplace, pure_dp

COLUMNS = ("nu", "eps", "sensitivity")


def check_request(column: str | None, mechanism: Any, levels: Any) -> None:
    """Check that a loss column, a mechanism and levels go together."""
    if column in ("nu", "eps") and mechanism is not None:
        raise ArgumentError(f"mechanism goes with a column sensitivity or none, got {column}")
    if column is None and mechanism is None:
        names = ", ".join(COLUMNS)
        raise ArgumentError(f"losses must have one of the columns {names}, or a mechanism be given")
    if column == "sensitivity" and mechanism is None:
        raise ArgumentError("a column sensitivity needs the mechanism that it scales, got None")
    if levels is not None and column not in ("eps", "sensitivity"):
        raise ArgumentError(f"levels go with a column eps or sensitivity, got {column}")
    if mechanism is not None:
        as_query(mechanism, "mechanism")
        if isinstance(mechanism, Mechanism):
            relation_of(mechanism, ADD_REMOVE)


def quote(
    filter: IndividualFilter,
    column: str | None,
    mechanism: Query | None,
    levels: Any = None,
    used: Flags | None = None,
) -> Pricing:
    """The pricing of a spend; an error where no subject could ever pay it.

    `used` says which levels occur: only their tables are worked out. No charge depends on it.
    """
    check_request(column, mechanism, levels)
    if column is None:
        assert mechanism is not None
        return _shared(filter, mechanism)
    if column == "nu":
        return _gaussian(filter, 1.0, "a column nu")
    if column == "eps":
        return _by_level(filter, 1.0, False, levels, used)
    if isinstance(mechanism, Gaussian):
        _plain_sensitivity(mechanism)
        return _gaussian(filter, mechanism.sigma, described(mechanism))
    if isinstance(mechanism, Laplace):
        _plain_sensitivity(mechanism)
        return _by_level(filter, mechanism.scale, True, levels, used)
    raise ArgumentTypeError(
        "mechanism must be mechanisms.Gaussian or mechanisms.Laplace to be scaled by a column"
        f" sensitivity, got {described(as_query(mechanism, 'mechanism'))}"
    )


def _plain_sensitivity(mechanism: Gaussian | Laplace) -> None:
    if mechanism.sensitivity != 1.0:
        raise ArgumentError(
            "mechanism must have sensitivity 1.0, which the column sensitivity replaces, got"
            f" {described(mechanism)}"
        )


def _gaussian(filter: IndividualFilter, sigma: float, what: str) -> Pricing:
    if isinstance(filter, PureFilter):
        raise ArgumentError(f"{what} is Gaussian noise, which no eps of {filter!r} covers")
    return Square(units_of(filter), sigma, isinstance(filter, ZcdpFilter))


def levels_of(filter: IndividualFilter, mechanism: Query | None, levels: Any) -> Levels | None:
    """What a column `eps` or `sensitivity` is rounded up onto; None where it is not."""
    if isinstance(filter, PureFilter) or isinstance(mechanism, Gaussian):
        return None
    scale = mechanism.scale if isinstance(mechanism, Laplace) else 1.0
    if levels is None:
        return Levels(default_levels(largest_eps(filter)), scale)
    # Rounded as losses are, and so a sensitivity that is a level stays on it.
    return Levels(quotient(given_levels(levels), scale), scale)


def _by_level(
    filter: IndividualFilter, scale: float, is_laplace: bool, given: Any, used: Flags | None
) -> Pricing:
    units = units_of(filter)
    if isinstance(filter, PureFilter):
        if given is not None:
            raise ArgumentError(f"levels are not needed, {filter!r} charges every eps as it is")
        return Linear(units, scale)
    levels = levels_of(filter, Laplace(scale) if is_laplace else None, given)
    assert levels is not None
    wanted = np.ones(levels.values.size, dtype=np.bool_) if used is None else used
    # Levels that fit no budget of this capacity need no prices.
    wanted = wanted[: levels.values.size] & (levels.values <= largest_eps(filter))
    each = list(zip(levels.values.tolist(), wanted.tolist(), strict=True))
    if not isinstance(filter, GdpResidueFilter):
        costs = [
            _fixed_cost(filter, _response(eps, is_laplace)) if on else None for eps, on in each
        ]
        column = np.array([*(MOST if c is None else min(c, MOST) for c in costs), MOST])
        return FixedByLevel(units, levels, column.astype(np.int64))
    return StaircaseByLevel.of(
        units, levels, [_staircase(eps, is_laplace, units) if on else EMPTY for eps, on in each]
    )


def _staircase(eps: float, is_laplace: bool, units: Units) -> ResidueTable:
    if eps <= LARGEST_EPS:
        return response_table(eps, is_laplace, units)
    return shared_table(_response(eps, is_laplace), units)


def _response(eps: float, is_laplace: bool) -> Any:
    return laplace(scale=1.0, sensitivity=eps) if is_laplace else pure_dp(eps)


def _fixed_cost(filter: IndividualFilter, query: Query) -> int | None:
    """What a query takes in units, whatever is left; None if no amount would do."""
    prices = exact_costs(filter, query, ADD_REMOVE)
    return None if isinstance(prices, str) else units_of(filter).up(prices[0])


def _shared(filter: IndividualFilter, query: Query) -> Pricing:
    units = units_of(filter)
    if not isinstance(filter, GdpResidueFilter):
        prices = exact_costs(filter, query, ADD_REMOVE)
        if isinstance(prices, str):
            raise ArgumentError(f"mechanism must be one that some budget covers: {prices}")
        return Fixed(units, min(units.up(prices[0]), MOST))
    stated, loss = split(query, ADD_REMOVE, stated_gdp)
    fixed = stated[0] if stated else amounts.written(0.0)
    if not loss.terms:
        return Fixed(units, min(units.up(fixed + gaussian_variance(loss)), MOST))
    if stated:
        raise ArgumentError(
            "mechanism must not mix a stated Gaussian bound with other queries, got"
            f" {described(query)}: spend them one after the other"
        )
    return Staircase(units, shared_table(loss, units))
