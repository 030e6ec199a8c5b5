"""Whether the configuration of a filter is one that the library would write.

A configuration has exactly the fields of its kind in their full form: real numbers are floats
within their ranges, queries are whole descriptions. Anything else promises nothing that could be
proven, and belongs to a state with another fingerprint than the library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from residua.provable import unprovable_filter
from residua.records import canonical
from residua.sizes import MOST_COMPONENTS, oversized
from residua.verify.descriptions.fields import Malformed, read

Check = Callable[[Any], bool]

_LEAST_EPS = 2.0**-1000
_LEAST_MU = 1e-100
_ABOVE_ONE = 1.0 + 1e-9
_MOST_ROUNDS = 100_000


def _number(low: float, high: float, least: float = 0.0) -> Check:
    """A float from `low` to `high`, not `-0.0`; what is not 0 is at least `least`."""

    def good(value: Any) -> bool:
        if type(value) is not float or not low <= value <= high or str(value) == "-0.0":
            return False
        return value >= least or value == 0.0 == low

    return good


_TINY = math.ulp(0.0)
_BELOW_ONE = math.nextafter(1.0, 0.0)
_EPS = _number(0.0, 600.0, _LEAST_EPS)
_SOME_EPS = _number(_LEAST_EPS, 600.0)
_GRID_EPS = _number(1e-3, 100.0)
_DELTA = _number(0.0, _BELOW_ONE)
_SOME_DELTA = _number(_TINY, _BELOW_ONE)
_GRID_DELTA = _number(1e-30, _BELOW_ONE)
_ORDER = _number(_ABOVE_ONE, 1e9)
_RHO = _number(0.0, 1e6)
_MU = _number(0.0, 1e6, _LEAST_MU)
_FAMILIES = ("gaussian", "pure_delta")
_WRITTEN: dict[str, Check] = {
    "gaussian": lambda f: f["sensitivity"] > 0.0,
    "pure_dp": lambda f: f["eps"] > 0.0 and set(f) == {"kind", "eps"},
    "approximate_dp": lambda f: f["delta"] > 0.0 and set(f) == {"kind", "eps", "delta"},
    "laplace": lambda f: f["sensitivity"] > 0.0,
    "exponential_mechanism": lambda f: f["eps"] > 0.0 and not f["monotonic"],
    "subsampled_gaussian": lambda f: f["sensitivity"] > 0.0 and 0.0 < f["sampling_rate"] < 1.0,
}
"""How the library writes a loss: as compositions of these, each kind of query once."""
_NO_LOSS = {"kind": "pure_dp", "eps": 0.0}


def _count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _rounds(value: Any) -> bool:
    return _count(value) and value <= _MOST_ROUNDS


def _curve(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    if not pairs or not all(_ORDER(alpha) and _RHO(rho) for alpha, rho in value):
        return False
    return all(one[0] < two[0] for one, two in pairwise(value))


def _query(value: Any) -> bool:
    """A description in its full form."""
    try:
        return canonical(read(value)) == canonical(value)
    except Malformed:
        return False


def _queries(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_query(each) for each in value)


def _plan(value: Any) -> bool:
    """Queries, each with how often it is repeated if it is; no two neighbours are equal."""
    if not isinstance(value, list) or not value:
        return False
    queries = []
    for entry in value:
        repeated = isinstance(entry, Mapping) and set(entry) == {"mechanism", "repeat"}
        if repeated and not (_count(entry["repeat"]) and entry["repeat"] > 1):
            return False
        queries.append(entry["mechanism"] if repeated else entry)
    if not all(_query(each) and each["kind"] != "self_composed" for each in queries):
        return False
    return all(canonical(one) != canonical(two) for one, two in pairwise(queries))


def _budget(value: Any) -> bool:
    """A loss, as the library writes one."""
    if not _query(value):
        return False
    parts = value["mechanisms"] if value["kind"] == "composed" else [value]
    each = [part["mechanism"] if part["kind"] == "self_composed" else part for part in parts]
    counted = all(part.get("count", 2) >= 2 for part in parts)
    apart = len({canonical(part) for part in each}) == len(each) != (value["kind"] == "composed")
    plain = all(part["kind"] in _WRITTEN and _WRITTEN[part["kind"]](part) for part in each)
    return (counted and apart and plain) or value == _NO_LOSS


def _catalogue(value: Any) -> bool:
    return value in _FAMILIES if isinstance(value, str) else _queries(value)


def _prices(value: Any) -> bool:
    return isinstance(value, list) and all(_count(each) for each in value)


def _components(value: Any) -> bool:
    """Filters, each of which is right by itself and none of which is a union."""
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_COMPONENTS:
        return False
    return all(
        isinstance(each, Mapping) and each.get("kind") != "union" and misconfigured(each) is None
        for each in value
    )


def _conversion(value: Any) -> bool:
    return value in ("best", "whitehouse")


_SHARE = _number(0.0, 1.0)
_SHARES = ("reserve", "slack")
_TARGET = {"eps": _SOME_EPS, "delta": _SOME_DELTA}
_GRID = {"eps": _GRID_EPS, "delta": _GRID_DELTA}
_FIELDS: dict[str, dict[str, Check]] = {
    "pure": {"eps": _EPS},
    "basic": {"eps": _EPS, "delta": _DELTA},
    "renyi": {"alpha": _ORDER, "rho": _RHO},
    "renyi_curve": {"curve": _curve},
    "zcdp": {"rho": _RHO},
    "approximate_zcdp": {**_TARGET, "delta_conversion": _SOME_DELTA, "conversion": _conversion},
    "gdp": {"mu": _MU},
    "gdp_residue": {"mu": _MU},
    "approximate_gdp_residue": {"mu": _MU, "delta": _DELTA},
    "target_residue": {
        **_TARGET, "reserve": _SHARE, "slack": _SHARE, "order": _number(_ABOVE_ONE, 1e12),
    },
    "menu": {**_GRID, "menu": _queries},
    "auto": _GRID,
    "plan": {**_GRID, "plan": _plan},
    "renyi_commit": {**_TARGET, "alpha": _ORDER},
    "union": {"filters": _components, "eps": _EPS},
    "natural": {"budget": _budget},
    "additive_profile": {
        "eps": _number(1e-250, 100.0), "delta": _SOME_DELTA, "rounds": _rounds,
        "target_delta": _number(_TINY, 1.0), "target_eps": _number(0.0, 1000.0),
    },
}  # fmt: skip
_OPTIONAL: dict[str, dict[str, Check]] = {
    "menu": {"prices": _prices},
    "auto": {"expect": _queries},
    "natural": {"rounds": _count, "catalogue": _catalogue},
}


def misconfigured(config: Any) -> str | None:
    """None where the configuration is one of its kind, else what is wrong."""
    if not isinstance(config, Mapping):
        return f"the filter is not an object: {config!r:.60}"
    too_large = oversized(config)
    if too_large is not None:
        return f"the filter is too large: {too_large}"
    kind = config.get("kind")
    needed = _FIELDS.get(kind) if isinstance(kind, str) else None
    if needed is None:
        return f"no filter is of the kind {kind!r:.60}"
    allowed = {**needed, **_OPTIONAL.get(str(kind), {})}
    for name in sorted(needed.keys() - config.keys()):
        return f"{kind} lacks the field {name!r}"
    for name in sorted(config.keys() - allowed.keys() - {"kind"}):
        return f"{kind} has the unknown field {name!r:.60}"
    for name, good in allowed.items():
        if name in config and not good(config[name]):
            return f"{name} of {kind} cannot be {config[name]!r:.200}"
    return _contradiction(config) or unprovable_filter(config)


def _contradiction(config: Mapping[str, Any]) -> str | None:
    """Problems between fields that are right by themselves."""
    kind = config["kind"]
    if kind == "approximate_zcdp" and config["delta_conversion"] > config["delta"]:
        return "delta_conversion must be at most delta"
    if kind == "menu" and len(config.get("prices", config["menu"])) != len(config["menu"]):
        return "there must be one price for each query of the menu"
    if kind == "additive_profile" and config["target_delta"] < config["delta"]:
        return "target_delta must be at least delta"
    if kind == "target_residue" and sum(Fraction(repr(config[name])) for name in _SHARES) >= 1:
        return "reserve and slack must add up to less than 1"
    if kind == "union":
        return _unlike(config)
    return None


def _unlike(config: Mapping[str, Any]) -> str | None:
    """Problems of a union's components with its `eps` or with each other."""
    deltas = Fraction(0)
    for each in config["filters"]:
        if each["kind"] in ("plan", "natural"):
            continue  # they promise no more than their queries or their budget
        if each.get("target_eps", each.get("eps", 0.0)) > config["eps"]:
            return "eps must be at least that of every component"
        deltas += Fraction(each.get("target_delta", each.get("delta", 0.0)))
    return None if deltas < 1 else "the deltas of components must add up to less than 1"
