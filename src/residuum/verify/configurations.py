"""Whether the configuration of a filter is one: its numbers are numbers, and within their ranges.

A filter with an order below 1 or an amount that is no number promises nothing that could be proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def _number(low: float, high: float, above: bool = False) -> Check:
    def good(value: Any) -> bool:
        if type(value) not in (int, float) or not math.isfinite(value):
            return False
        return bool((low < value if above else low <= value) and value <= high)

    return good


_EPS = _number(0.0, 1e6)
_POSITIVE = _number(0.0, 1e6, above=True)
_DELTA = _number(0.0, 1.0)
_SOME = _number(0.0, 1.0, above=True)
_ORDER = _number(1.0, 1e9, above=True)
_TARGET = {"eps": _EPS, "delta": _SOME}


def _count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _curve(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    return pairs and all(_ORDER(alpha) and _EPS(rho) for alpha, rho in value)


def _queries(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_FIELDS: dict[str, dict[str, Check]] = {
    "pure": {"eps": _EPS},
    "basic": {"eps": _EPS, "delta": _DELTA},
    "renyi": {"alpha": _ORDER, "rho": _EPS},
    "renyi_curve": {"curve": _curve},
    "zcdp": {"rho": _EPS},
    "approximate_zcdp": _TARGET,
    "gdp": {"mu": _EPS},
    "gdp_residue": {"mu": _EPS},
    "approximate_gdp_residue": {"mu": _EPS, "delta": _DELTA},
    "menu": _TARGET,
    "auto": _TARGET,
    "plan": {**_TARGET, "plan": _queries},
    "renyi_commit": {**_TARGET, "alpha": _ORDER},
    "natural": {"budget": lambda value: isinstance(value, Mapping)},
    "additive_profile": {
        "eps": _POSITIVE, "delta": _SOME, "rounds": _count, "target_delta": _SOME,
    },
}  # fmt: skip
_OPTIONAL: dict[str, dict[str, Check]] = {
    "approximate_zcdp": {
        "delta_conversion": _SOME,
        "conversion": lambda value: value in ("best", "whitehouse"),
    },
    "natural": {"rounds": _count},
    "additive_profile": {"target_eps": _EPS},
}


def misconfigured(config: Mapping[str, Any]) -> str | None:
    """None where the configuration is one of its kind, else what is wrong."""
    kind = config["kind"]
    for name, good in _FIELDS.get(kind, {}).items():
        if name not in config or not good(config[name]):
            return f"{name} of {kind} cannot be {config.get(name)!r}"
    for name, good in _OPTIONAL.get(kind, {}).items():
        if name in config and not good(config[name]):
            return f"{name} of {kind} cannot be {config[name]!r}"
    return None
