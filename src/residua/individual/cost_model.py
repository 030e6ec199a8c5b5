"""From a filter and what a spend says about losses to its pricing.

Filters that can be kept one per subject are those whose state is one number: pure, zCDP, GDP and
GDP-residue. Capacities may differ between subjects and are at most the filter's own, which is what
an unknown subject starts with.

Losses come as a column `nu` (Gaussian), a column `eps` (pure DP), a column `sensitivity` with one
shared Gaussian or Laplace mechanism that it scales, or no column at all with one shared query of
any kind.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import LARGEST_EPS, Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.additive.base import exact_costs
from residua.filters.additive.basic import PureFilter
from residua.filters.additive.gdp import GdpFilter
from residua.filters.additive.zcdp import ZcdpFilter
from residua.filters.base import Filter
from residua.filters.costs import gaussian_variance, split, stated_gdp
from residua.filters.query import Query, as_query, describe, relation_of
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.individual.pricing import (
    NEVER,
    ByLevel,
    CostTable,
    Integers,
    Linear,
    Pricing,
    Shared,
    Square,
    Units,
    default_levels,
    given_levels,
    quotient,
)
from residua.individual.residue_table import (
    LARGEST_TABLE_EPS,
    response_table,
    shared_table,
)
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import Gaussian, Laplace
from residua.mechanisms.relations import ADD_REMOVE
from residua.pld.constructors import laplace, pure_dp

IndividualFilter = PureFilter | ZcdpFilter | GdpFilter | GdpResidueFilter
_KINDS = (PureFilter, ZcdpFilter, GdpFilter, GdpResidueFilter)


def individual_filter(value: Any) -> IndividualFilter:
    """Check that a filter can be kept one per subject, and was not used yet."""
    checks.instance("filter", value, Filter, "a filter")
    if not isinstance(value, _KINDS):
        kinds = ", ".join(kind.__name__ for kind in _KINDS)
        raise ArgumentError(f"filter must be one of {kinds}, got {value!r}")
    if value.history:
        raise ArgumentError(f"filter must be unused, got {value!r}")
    checks.require(capacity(value) > 0, "filter", "one with a positive capacity", value)
    # With less than a unit no subject would ever take part in anything.
    checks.require(units_of(value).capacity > 0, "filter", "one with more than 1e-44", value)
    return value


def capacity(filter: IndividualFilter) -> Fraction:
    """What there is at the start, exactly: `eps`, `rho` or `mu²`."""
    return filter.initial().left[0]


def units_of(filter: IndividualFilter) -> Units:
    """The units in which budgets of a filter are counted."""
    return Units.of(capacity(filter))


def is_gaussian(filter: IndividualFilter) -> bool:
    """Whether the budget is `mu²`."""
    return isinstance(filter, GdpFilter | GdpResidueFilter)


def parameter(filter: IndividualFilter) -> str:
    """The name of the filter's own parameter: `eps`, `rho` or `mu`."""
    if isinstance(filter, PureFilter):
        return "eps"
    return "rho" if isinstance(filter, ZcdpFilter) else "mu"


def capacities_in_units(filter: IndividualFilter, values: Floats) -> Integers:
    """Capacities, in the filter's own parameter, rounded down to units."""
    units = units_of(filter)
    convert = units.squares if is_gaussian(filter) else units.linear
    found = convert(values, up=False)
    above = int(np.count_nonzero(found > units.capacity))
    if above:
        limit = f"at most the filter's {parameter(filter)}, {getattr(filter, parameter(filter))!r}"
        raise ArgumentError(f"capacity must be {limit}, got {above} above it")
    return found


def in_parameter(filter: IndividualFilter, left: Integers) -> Floats:
    """Units as the filter's own parameter, rounded down."""
    scale = float(units_of(filter).size)
    # One rounding of the integer, one of the scale, one of the product.
    amount = np.asarray(left, dtype=np.float64) * scale * (1.0 - 2.0**-50)
    if not is_gaussian(filter):
        return amount
    return np.asarray(np.sqrt(amount) * (1.0 - 2.0**-51))


def largest_eps(filter: IndividualFilter) -> float:
    """An `eps` above which no `R_eps` fits a Gaussian or zCDP budget of this capacity."""
    most = float(capacity(filter)) * (1.0 + 1e-9)
    if isinstance(filter, ZcdpFilter):
        # The KL divergence is at most rho, and at least eps² / (2 + eps) for either kind.
        return 0.5 * (most + math.sqrt(most * most + 8.0 * most))
    advantage = math.erf(math.sqrt(0.125 * most))
    if advantage < 1.0 - 1e-12:
        # h_L(1) = tanh(eps/2) for randomized response, 1 - e^{-eps/2} for Laplace: less.
        return -2.0 * math.log1p(-advantage) + 1e-9
    return LARGEST_EPS


COLUMNS = ("nu", "eps", "sensitivity")


def check_request(column: str | None, mechanism: Any, levels: Any) -> None:
    """Check that a loss column, a mechanism and levels go together."""
    if column in ("nu", "eps") and mechanism is not None:
        raise ArgumentError(
            "with mechanism=, losses must have the column 'sensitivity' or no loss column,"
            f" got {column!r}"
        )
    if column is None and mechanism is None:
        names = ", ".join(COLUMNS)
        raise ArgumentError(
            f"losses must have one of the columns {names} unless mechanism= is given, got neither"
        )
    if column == "sensitivity" and mechanism is None:
        raise ArgumentError(
            "the column 'sensitivity' needs mechanism=, the mechanism that it scales, got None"
        )
    if levels is not None and column not in ("eps", "sensitivity"):
        raise ArgumentError(f"levels= needs a column 'eps' or 'sensitivity', got {column!r}")
    if mechanism is not None:
        as_query(mechanism, "mechanism")
        if isinstance(mechanism, Mechanism):
            relation_of(mechanism, ADD_REMOVE)


def pricing_for(
    filter: IndividualFilter,
    column: str | None,
    mechanism: Query | None,
    levels: Any = None,
) -> Pricing:
    """The pricing of a spend; an error where no subject could ever pay it."""
    check_request(column, mechanism, levels)
    if column is None:
        assert mechanism is not None
        return _shared_pricing(filter, mechanism)
    if column == "nu":
        return _gaussian(filter, 1.0, "a column nu")
    if column == "eps":
        return _by_level(filter, 1.0, False, levels)
    if isinstance(mechanism, Gaussian):
        _plain_sensitivity(mechanism)
        return _gaussian(filter, mechanism.sigma, describe(mechanism))
    if isinstance(mechanism, Laplace):
        _plain_sensitivity(mechanism)
        return _by_level(filter, mechanism.scale, True, levels)
    raise ArgumentTypeError(
        "mechanism must be mechanisms.Gaussian or mechanisms.Laplace to be scaled by a column"
        f" sensitivity, got {describe(as_query(mechanism, 'mechanism'))}"
    )


def _plain_sensitivity(mechanism: Gaussian | Laplace) -> None:
    if mechanism.sensitivity != 1.0:
        raise ArgumentError(
            "mechanism must have sensitivity 1.0, which the column sensitivity replaces, got"
            f" {describe(mechanism)}"
        )


def _gaussian(filter: IndividualFilter, sigma: float, what: str) -> Pricing:
    if isinstance(filter, PureFilter):
        raise ArgumentError(f"{what} is Gaussian noise, which no eps of {filter!r} covers")
    return Square(units_of(filter), sigma, isinstance(filter, ZcdpFilter))


def _by_level(filter: IndividualFilter, scale: float, is_laplace: bool, given: Any) -> Pricing:
    units = units_of(filter)
    if isinstance(filter, PureFilter):
        if given is not None:
            raise ArgumentError(f"levels are not needed: {filter!r} charges every eps as it is")
        return Linear(units, scale)
    # Rounded as losses are, and so a sensitivity that is a level stays on it.
    built_in = given is None
    levels = default_levels(largest_eps(filter)) if built_in else given_levels(given)
    levels = levels if built_in else quotient(levels, scale)
    return ByLevel(units, levels, scale, partial(level_table, filter, is_laplace))


@lru_cache(maxsize=4096)
def level_table(filter: IndividualFilter, is_laplace: bool, eps: float) -> CostTable:
    """What a query of one level costs."""
    if eps > largest_eps(filter):
        return NEVER
    if isinstance(filter, GdpResidueFilter) and eps <= LARGEST_TABLE_EPS:
        return response_table(eps, is_laplace, units_of(filter))
    query = laplace(scale=1.0, sensitivity=eps) if is_laplace else pure_dp(eps)
    if isinstance(filter, GdpResidueFilter):
        return shared_table(query, units_of(filter))
    prices = exact_costs(filter, query, ADD_REMOVE)
    return NEVER if isinstance(prices, str) else CostTable.fixed(units_of(filter).up(prices[0]))


def _shared_pricing(filter: IndividualFilter, query: Query) -> Pricing:
    units = units_of(filter)
    if not isinstance(filter, GdpResidueFilter):
        prices = exact_costs(filter, query, ADD_REMOVE)
        if isinstance(prices, str):
            raise ArgumentError(f"mechanism must be one that some budget covers: {prices}")
        return Shared(units, CostTable.fixed(units.up(prices[0])))
    stated, loss = split(query, ADD_REMOVE, stated_gdp)
    fixed = stated[0] if stated else amounts.written(0.0)
    if not loss.terms:
        return Shared(units, CostTable.fixed(units.up(fixed + gaussian_variance(loss))))
    if stated:
        raise ArgumentError(
            "mechanism must not mix a stated Gaussian bound with other queries, got"
            f" {describe(query)}: spend them one after the other"
        )
    return Shared(units, shared_table(loss, units))
