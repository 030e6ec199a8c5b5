"""Which filters can be kept one per subject, and what their budgets are counted in.

Pure, zCDP, GDP and GDP-residue: their state is one number. Capacities may differ between subjects
and are at most the filter's own, which is what an unknown subject starts with.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.additive.gdp import GdpFilter
from residua.filters.additive.pure import PureFilter
from residua.filters.additive.zcdp import ZcdpFilter
from residua.filters.base import Filter
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.individual.pricing.units import Integers, Units

IndividualFilter = PureFilter | ZcdpFilter | GdpFilter | GdpResidueFilter
_KINDS = (PureFilter, ZcdpFilter, GdpFilter, GdpResidueFilter)


def individual_filter(value: Any) -> IndividualFilter:
    """Check that a filter can be kept one per subject."""
    if not isinstance(value, Filter):
        raise ArgumentTypeError(f"filter must be a filter, got {checks.shown(value)}")
    if not isinstance(value, _KINDS):
        kinds = ", ".join(kind.__name__ for kind in _KINDS)
        raise ArgumentError(f"filter must be one of {kinds}, got {value!r}")
    if value.history:
        raise ArgumentError(f"filter must be one that was not asked anything yet, got {value!r}")
    checks.require(capacity(value) > 0, "filter", "one with a positive capacity", value)
    # Less than a unit: nobody would ever take part in anything.
    checks.require(units_of(value).capacity > 0, "filter", "one with more than 1e-44", value)
    return value


def capacity(filter: IndividualFilter) -> Fraction:
    """What there is at the start, exactly: `eps`, `rho` or `mu²`."""
    return filter.initial().left[0]


def units_of(filter: IndividualFilter) -> Units:
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


def exact_left(filter: IndividualFilter, units: int) -> float:
    """One subject's units as the filter's own parameter: the largest float that is not more."""
    amount = units * units_of(filter).size
    return amounts.root_down(amount) if is_gaussian(filter) else amounts.reported(amount)


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
    return 600.0
