"""Configurations and states of filters: whether they are ones that the library would write.

A configuration has exactly the fields of its kind in their full form: real numbers are floats
within their ranges, queries are whole descriptions. Anything else promises nothing that could be
proven, and belongs to a state with another fingerprint than the library's. A state has exactly the
fields of its kind, and the fingerprint of its configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from residua.provable import unprovable_filter
from residua.records import canonical, digest
from residua.sizes import LONGEST_AMOUNT, MOST_COMPONENTS, oversized
from residua.verify.descriptions.fields import Malformed, read

Check = Callable[[Any], bool]
Config = Mapping[str, Any]
State = Mapping[str, Any]
Tables = Mapping[str, bytes]
"""Contents by the names that a state has for them."""

_LEAST_EPS = 2.0**-1000
"""The least `eps` that is not 0: its square is still a float."""
_BELOW_ONE = math.nextafter(1.0, 0.0)
"""The largest float below 1: a delta of 1 promises nothing."""


def _number(low: float, high: float, least: float = 0.0) -> Check:
    """A float from `low` to `high`, not `-0.0`; what is not 0 is at least `least`."""

    def good(value: Any) -> bool:
        if type(value) is not float or not low <= value <= high or str(value) == "-0.0":
            return False
        return value >= least or value == 0.0 == low

    return good


_eps = _number(0.0, 600.0, _LEAST_EPS)
_some_eps = _number(_LEAST_EPS, 600.0)
_grid_eps = _number(1e-3, 100.0)
_delta = _number(0.0, _BELOW_ONE)
_some_delta = _number(math.ulp(0.0), _BELOW_ONE)
_grid_delta = _number(1e-30, _BELOW_ONE)
_order = _number(1.0 + 1e-9, 1e9)
_rho = _number(0.0, 1e6)
_share = _number(0.0, 1.0)
_mu = _number(0.0, 1e6, 1e-100)
FAMILIES = ("gaussian", "pure_delta")
"""Catalogues of natural filters that are closed and totally ordered."""
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
"""How the library writes a loss of nothing."""


def _count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _rounds(value: Any) -> bool:
    return _count(value) and value <= 100_000


def _curve(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    if not pairs or not all(_order(alpha) and _rho(rho) for alpha, rho in value):
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
    return value in FAMILIES if isinstance(value, str) else _queries(value)


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


_TARGET = {"eps": _some_eps, "delta": _some_delta}
_GRID = {"eps": _grid_eps, "delta": _grid_delta}
_FIELDS: dict[str, dict[str, Check]] = {
    "pure": {"eps": _eps},
    "basic": {"eps": _eps, "delta": _delta},
    "renyi": {"alpha": _order, "rho": _rho},
    "renyi_curve": {"curve": _curve},
    "zcdp": {"rho": _rho},
    "approximate_zcdp": {**_TARGET, "delta_conversion": _some_delta, "conversion": _conversion},
    "gdp": {"mu": _mu},
    "gdp_residue": {"mu": _mu},
    "approximate_gdp_residue": {"mu": _mu, "delta": _delta},
    "target_residue": {
        **_TARGET, "reserve": _share, "slack": _share, "order": _number(1.0 + 1e-9, 1e12),
    },
    "menu": {**_GRID, "menu": _queries},
    "auto": _GRID,
    "plan": {**_GRID, "plan": _plan},
    "renyi_commit": {**_TARGET, "alpha": _order},
    "union": {"filters": _components, "eps": _eps},
    "natural": {"budget": _budget},
    "additive_profile": {
        "eps": _number(1e-250, 100.0), "delta": _some_delta, "rounds": _rounds,
        "target_delta": _number(math.ulp(0.0), 1.0), "target_eps": _number(0.0, 1000.0),
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
    if (
        kind == "target_residue"
        and sum(Fraction(repr(config[name])) for name in ("reserve", "slack")) >= 1
    ):
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


# -- states ----------------------------------------------------------------------------------


_STATE_FIELDS: dict[str, set[str]] = {
    "auto": {"filters", "parts"},
    "target_residue": {"left", "reached", "reserves", "slack"},
    "natural": {"loss", "rounds"},
    "renyi_commit": {"left", "committed", "to", "inner"},
    "union": {"parts"},
    "plan": {"left", "variance"},
}
"""The fields of states beside `kind` and `of`; where nothing is named, `left`."""

UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
"""The errors of reading a field that is not of its type, or beyond any range."""


class Unreadable(Exception):
    """A state or configuration that is not what its kind should look like."""


def amount(value: Any) -> Fraction:
    """An exact amount: a decimal or `p/q`, in quotes, not negative."""
    if not isinstance(value, str):
        raise Unreadable(f"an amount must be a string, got {value!r:.60}")
    parts = value.split("/")
    short = len(value) <= LONGEST_AMOUNT and value.isascii()
    plain = short and all(part.replace(".", "", len(parts) == 1).isdigit() for part in parts)
    if not plain or len(parts) > 2 or (len(parts) == 2 and int(parts[1]) == 0):
        raise Unreadable(f"an amount must be a decimal or p/q, got {value!r:.60}")
    return Fraction(value)


def amounts(state: State, count: int) -> tuple[Fraction, ...]:
    """What is left of each amount."""
    left = state.get("left")
    if not isinstance(left, list) or len(left) != count:
        raise Unreadable(f"the state must have {count} amounts, got {left!r:.60}")
    return tuple(amount(value) for value in left)


def fingerprint(config: Mapping[str, Any]) -> str:
    """The `of` of states of this configuration."""
    return digest(canonical(config))[:16]


def belongs(config: Mapping[str, Any], state: Any) -> str | None:
    """None where a state is one of this configuration, else what is wrong."""
    if not isinstance(state, Mapping):
        return f"the state is not an object: {state!r:.60}"
    kind = config["kind"]
    if state.get("kind") != kind:
        return f"the state is of kind {state.get('kind')!r:.60}, the filter of {kind!r}"
    wanted = {"kind", "of", *_STATE_FIELDS.get(kind, {"left"})}
    if set(state) != wanted:
        return f"a state of {kind} has the fields {sorted(wanted)}, got {sorted(state)!s:.200}"
    if kind == "renyi_commit" and (wrong := _wrong_commit(state)) is not None:
        return wrong
    if kind == "natural" and (type(state["rounds"]) is not int or state["rounds"] < 0):
        return f"rounds must be a count, got {state['rounds']!r:.60}"
    if state["of"] != fingerprint(config):
        return f"the state is one of another filter ({state['of']!r:.60})"
    if kind == "union":
        return _wrong_parts(config["filters"], state["parts"])
    return _wrong_components(state["filters"], state["parts"]) if kind == "auto" else None


def _wrong_components(filters: Any, parts: Any) -> str | None:
    """Why `auto` has neither no components nor right ones with a state for each, if so."""
    if filters == parts == []:
        return None
    if not isinstance(filters, list) or not 1 <= len(filters) <= MOST_COMPONENTS:
        return f"filters must be up to {MOST_COMPONENTS} filters, got {filters!r:.60}"
    for place, each in enumerate(filters):
        wrong = misconfigured(each)
        if wrong is not None:
            return f"component {place}: {wrong}"
    return _wrong_parts(filters, parts)


def _wrong_parts(filters: list[Any], parts: Any) -> str | None:
    """Why a union does not have a state for each live component, if so."""
    if not isinstance(parts, list) or len(parts) != len(filters):
        return f"parts must have a state or null for each of {len(filters)} components"
    if all(part is None for part in parts):
        return "no component of the union is live"
    for place, (component, part) in enumerate(zip(filters, parts, strict=True)):
        wrong = None if part is None else belongs(component, part)
        if wrong is not None:
            return f"component {place}: {wrong}"
    return None


def _wrong_commit(state: State) -> str | None:
    """Why a state of `renyi_commit` is neither open nor committed, if so."""
    to, inner, committed = state["to"], state["inner"], state["committed"]
    if not (to is inner is None or (isinstance(to, Mapping) and isinstance(inner, Mapping))):
        return "a commit must name a filter and its state"
    if type(committed) is not bool or (to is not None and not committed):
        return f"committed cannot be {committed!r:.60} here"
    if committed and to is None and amount(state["left"]) != 0:
        return "something is left beside what was committed"
    return None
