"""OpenDP's measurements as mechanisms.

A measurement's privacy map says what it loses at an input distance; which mechanism that is depends
on its measure, and which neighbouring relation on its metric:

* `MaxDivergence`: `eps`-DP; `ZeroConcentratedDivergence`: `rho`-zCDP; `Approximate` of either has a
  `delta` beside it, and approximate zCDP is `rho`-zCDP composed with mass `delta` at infinity;
* `RenyiDivergence`: a curve, read at fixed orders;
* `SmoothedMaxDivergence`: a privacy profile. `delta(eps_i)` at some `eps_i` bounds the curve there
  and, a profile being of all neighbouring pairs in both orders, the reversed one. The largest loss
  that keeps all of these bounds is piecewise linear between `e^{eps_i}` and has the last one at
  infinity; exponentials are rounded up, and the points of its tradeoff curve down.

A domain of a fixed number of records makes that number public: data sets in it differ by exchanges
alone, and a map may say that a distance of 1 costs nothing, since there are no such neighbours. A
loss under add-remove does not follow from it; the relation is replace-one. Margins of a frame may
make the size of each group public, and do not show whether they do: such frames are refused.

A map is believed: it is for OpenDP to be sound. What is unclear is refused, and nothing is run,
except by `guard_opendp`, which pays a ledger first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from opendp.mod import Measurement, PrivacyProfile

from residua import checks
from residua.bounds import LARGEST_EPS, float_down
from residua.errors import ArgumentError, ArgumentTypeError, ResiduaError, UnsupportedError
from residua.ledger.api.guard import Guard
from residua.ledger.domain import arguments
from residua.mechanisms import relations
from residua.mechanisms.black_boxes import (
    CURVE_ORDERS,
    LARGEST_DIVERGENCE,
    ApproximateDp,
    FromTradeoff,
    PureDp,
    Rdp,
    Zcdp,
)
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.relations import ADD_REMOVE, REPLACE_ONE, ZERO_OUT
from residua.pld.arithmetic.exact import exp_of
from residua.pld.discretise.finite import region_above

_LEAST_CHANGE = {
    # An exchange takes one record away and puts another in.
    "SymmetricDistance": {ADD_REMOVE: 1, REPLACE_ONE: 2},
    "SymmetricIdDistance": {ADD_REMOVE: 1, REPLACE_ONE: 2},
    "InsertDeleteDistance": {ADD_REMOVE: 1, REPLACE_ONE: 2},
    "ChangeOneDistance": {REPLACE_ONE: 1, ZERO_OUT: 1},
    "ChangeOneIdDistance": {REPLACE_ONE: 1, ZERO_OUT: 1},
    "HammingDistance": {REPLACE_ONE: 1, ZERO_OUT: 1},
}
"""Metrics on data sets: how far apart neighbours are at least, the usual relation first."""

_FIXED_SIZE = re.compile(r"\bsize=[0-9]")
_MARGINS = "margins=[{"
"""Both as OpenDP writes a domain: vectors and arrays of one size, and frames with margins."""


def from_opendp(measurement: Any, d_in: Any = None, relation: str | None = None) -> Mechanism:
    """The mechanism that a measurement is at an input distance. The measurement is not run.

    Args:
        measurement: an OpenDP measurement.
        d_in: the input distance. On data sets it is what one neighbour changes unless it is given;
            a larger one is for units of several records. For any other metric it must be given.
        relation: the neighbouring relation. For a metric on data sets it follows from the metric:
            add-remove for symmetric and insert-delete distance, replace-one for change-one and
            Hamming distance, and wherever the domain fixes the number of records. For any other
            metric it must be given.

    Raises:
        UnsupportedError: the measure has no proven loss here, or the relation is add-remove on a
            domain that fixes the number of records.
    """
    checks.instance("measurement", measurement, Measurement, "an OpenDP Measurement")
    relation, distance = _neighbours(measurement, d_in, relation)
    kind = str(measurement.output_measure)
    if _is_own(measurement.output_measure):
        raise UnsupportedError(
            f"measurement must have a measure with a proven loss, got {kind}, the user's own",
            measurement,
        )
    try:
        return _translate_loss(measurement, measurement.map(distance), kind, relation)
    except (ResiduaError, KeyboardInterrupt):
        raise
    except Exception as error:
        # Maps run OpenDP's code, and its errors are not ours.
        raise UnsupportedError(
            f"privacy map must give a loss at d_in = {distance!r}, got {_in_a_line(error)}",
            measurement,
        ) from error


def _translate_loss(measurement: Any, loss: Any, kind: str, relation: str) -> Mechanism:
    if kind == "MaxDivergence":
        return PureDp(_number(loss), relation=relation)
    if kind == "ZeroConcentratedDivergence":
        return Zcdp(_number(loss), relation=relation)
    if kind == "Approximate(MaxDivergence)":
        eps, delta = map(_number, loss)
        return ApproximateDp(eps, delta, relation=relation)
    if kind == "Approximate(ZeroConcentratedDivergence)":
        rho, delta = map(_number, loss)
        return Zcdp(rho, delta=delta, relation=relation)
    if kind == "RenyiDivergence":
        return _from_orders(loss, relation)
    if kind == "SmoothedMaxDivergence":
        return _from_profile(loss, relation)
    raise UnsupportedError(
        f"measurement must have a measure with a proven loss, got {kind}", measurement
    )


def guard_opendp(
    ledger: Any,
    budgets: Any,
    measurement: Any,
    *,
    d_in: Any,
    key: str | None = None,
    ttl: float = 60.0,
) -> Callable[..., Any]:
    """The measurement as a function of the data that spends before it runs, and runs once a spend.

    An interactive measurement is charged in full when it starts.

    Args:
        ledger: where the spends are recorded.
        budgets: the name of one budget or several, all under one neighbouring relation; the
            measurement is charged under that relation.
        measurement: an OpenDP measurement.
        d_in: how far apart data sets are that differ in one *unit* of the budget: where the unit
            is a person with up to five records, 5 under add-remove on symmetric distance.
        key: names the spend; each call has its own key unless this or `guard_key=` is given.
        ttl: seconds for which the budget is held while the measurement starts.

    Returns:
        A function of the data. It raises `Refused`, `AlreadySpent` for a key whose run was
        permitted before, and `MechanismFailed`, always with the same message, whatever goes wrong
        inside; what was spent does not come back.

    Raises:
        ArgumentError: the budgets have different relations.
        UnsupportedError: the measurement has no proven loss under the relation.
    """
    if d_in is None:
        raise ArgumentTypeError(
            "d_in must be the distance between neighbouring data sets, got None"
        )
    names, one = arguments.names(budgets)
    declared = {name: ledger.budget(name).relation for name in names}
    if len(set(declared.values())) > 1:
        raise ArgumentError(f"budgets must have one neighbouring relation, got {declared}")
    mechanism = from_opendp(measurement, d_in, next(iter(declared.values())))

    def measure(data: Any) -> Any:
        return measurement(data)

    return Guard(ledger, names[0] if one else names, mechanism, key, ttl, False)(measure)


def _neighbours(measurement: Any, d_in: Any, relation: str | None) -> tuple[str, Any]:
    metric, domain = str(measurement.input_metric), str(measurement.input_domain)
    own = _is_own(measurement.input_metric)
    if _MARGINS in domain:
        raise UnsupportedError(
            "measurement must not be on a frame with margins, which may make sizes of groups "
            f"public and do not show it, got {domain}",
            measurement,
        )
    if relation is not None:
        relations.relation(relation)
    known = None if own else _LEAST_CHANGE.get(metric.partition("(")[0])
    public_size = _FIXED_SIZE.search(domain) is not None
    if known is None and (relation is None or d_in is None):
        raise UnsupportedError(
            f"relation and d_in must be given for a measurement on {metric}, which is "
            + ("the user's own metric" if own else "not a metric on data sets"),
            measurement,
        )
    usual = (one for one in known or () if one != ADD_REMOVE or not public_size)
    relation = next(usual) if relation is None else relation
    if known is not None and relation not in known:
        raise UnsupportedError(
            f"relation must be {' or '.join(known)} for a measurement on {metric}, "
            f"got {relation!r}",
            measurement,
        )
    if relation == ADD_REMOVE and public_size:
        raise UnsupportedError(
            f"relation must be {REPLACE_ONE} for a measurement on {domain}, which makes the "
            f"number of records public, got {relation!r}",
            measurement,
        )
    if known is None:
        return relation, d_in
    if d_in is None:
        return relation, known[relation]
    distance = checks.count("d_in", d_in)
    checks.require(
        distance >= known[relation], "d_in", f"at least {known[relation]} under {relation}", d_in
    )
    return relation, distance


def _number(value: Any) -> float:
    if isinstance(value, float | int) and value == math.inf:
        raise ArgumentError(f"privacy map must give a finite loss, got {value!r}")
    return _as_written(checks.non_negative("privacy map", value))


def _as_written(bound: float) -> float:
    """A bound that a map computed, as a float whose decimal is not less than it.

    Filters charge the decimal that a float is written as, which may be half a unit in the last
    place below it. Up to fifteen digits that decimal is what was meant.
    """
    if len(Decimal(repr(bound)).as_tuple().digits) <= 15:
        return bound
    found = bound
    while Fraction(repr(found)) < Fraction(bound):
        found = math.nextafter(found, math.inf)
    return found


def _is_own(space: Any) -> bool:
    """Whether a metric or measure was made by a user, who may call it as one of OpenDP's."""
    return any(word in str(space.type) for word in ("Extrinsic", "User"))


def _in_a_line(error: Exception) -> str:
    """What went wrong, without the traces that OpenDP puts around it."""
    lines = [line.strip() for line in str(error).splitlines() if any(map(str.isalpha, line))]
    return checks.shown(lines[-1] if lines else type(error).__name__)


def _from_orders(curve: Any, relation: str) -> Mechanism:
    if not callable(curve):
        raise ArgumentTypeError(
            f"privacy map must be a function of the order, got {checks.shown(curve)}"
        )
    found = {order: checks.real("privacy map", curve(order)) for order in CURVE_ORDERS}
    finite = {
        order: _as_written(eps) for order, eps in found.items() if 0.0 <= eps <= LARGEST_DIVERGENCE
    }
    if not finite:
        raise ArgumentError("privacy map must give a finite loss at some order, got none")
    return Rdp(tuple(finite), tuple(finite.values()), relation=relation)


def _from_profile(profile: Any, relation: str) -> Mechanism:
    checks.instance("privacy map", profile, PrivacyProfile, "a privacy profile")
    eps = np.linspace(0.0, _reach(profile), 120).tolist()
    deltas = [checks.probability("delta of the privacy profile", profile.delta(e)) for e in eps]
    last = checks.probability("delta of the privacy profile", profile.delta(LARGEST_EPS))
    for smaller, larger in pairwise([*deltas, last]):
        if not larger <= smaller + 1e-9:
            raise ArgumentError(
                f"privacy profile must not increase in eps, got {larger!r} after {smaller!r}"
            )
    # What holds at some eps holds at every larger one.
    deltas = list(accumulate(deltas, min))
    if deltas[-1] == 1.0:
        raise ArgumentError("privacy profile must fall below 1, got 1 everywhere")
    points = []
    for e, delta in zip(eps, deltas, strict=True):
        at, height = exp_of(Fraction(e), "above") if e else Fraction(1), Fraction(delta)
        points += [(at, height), (1 / at, 1 - 1 / at + height / at)] if e else [(at, height)]
    x, heights = map(list, zip(*sorted(points), strict=True))
    exact = region_above(x, heights, False, None)
    # Vertices (Q, P) of the testing region are points (beta, 1 - alpha).
    curve = {(float_down(1 - p), float_down(q)) for q, p in exact.vertices()}
    alphas, betas = zip(*sorted(curve), strict=True)
    return FromTradeoff(alphas, betas, relation=relation)


def _reach(profile: Any) -> float:
    """How far the profile is read: to where it is, but for 1e-15, as low as it gets."""
    low, high = 0.0, LARGEST_EPS
    least = float(profile.delta(high)) + 1e-15
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if float(profile.delta(middle)) <= least else (middle, high)
    return high
