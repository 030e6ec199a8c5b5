"""Filters and their states as JSON, both ways and strictly.

`{"kind": "gdp_residue", "mu": 1.0}`: the kind, then every field. A state is
`{"kind": …, "of": …, "left": ["0.75"]}`: amounts are exact and in quotes. `version` is left
out while it is 1. Anything unknown, missing, duplicate or of the wrong type is an error. `KINDS`
lists the kinds; the class of each is loaded when it is first needed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib import import_module
from types import NoneType
from typing import Any, get_args, get_type_hints

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.amounts import State
from residua.filters.base import Filter
from residua.filters.query import as_mechanism
from residua.mechanisms.codec import KINDS as MECHANISMS
from residua.mechanisms.codec import check_size, parsed_json
from residua.mechanisms.codec import from_dict as mechanism_from_dict
from residua.mechanisms.composition import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld

KINDS = {
    "pure": ("filters.additive.basic", "PureFilter"),
    "basic": ("filters.additive.basic", "BasicFilter"),
    "renyi": ("filters.additive.renyi", "RenyiFilter"),
    "renyi_curve": ("filters.additive.renyi", "RenyiCurveFilter"),
    "zcdp": ("filters.additive.zcdp", "ZcdpFilter"),
    "approximate_zcdp": ("filters.additive.zcdp", "ApproximateZcdpFilter"),
    "gdp": ("filters.additive.gdp", "GdpFilter"),
    "gdp_residue": ("filters.residue.gdp_residue", "GdpResidueFilter"),
    "approximate_gdp_residue": (
        "filters.residue.approximate_gdp_residue",
        "ApproximateGdpResidueFilter",
    ),
    "target_residue": ("filters.residue.target_residue", "TargetResidueFilter"),
    "renyi_commit": ("filters.potential.renyi_commit", "RenyiCommitFilter"),
    "plan": ("filters.potential.plan", "PlanFilter"),
    "menu": ("filters.potential.menu", "MenuFilter"),
    "auto": ("filters.union.auto", "AutoFilter"),
    "union": ("filters.union.union", "UnionFilter"),
    "natural": ("adversary.natural_filter", "NaturalFilter"),
    "additive_profile": ("adversary.natural_filter", "AdditiveProfileFilter"),
}
"""The class of each kind and the module that it is in, from the top of the package."""


def filter_class(kind: str) -> type[Filter]:
    """The class of a kind, loaded by name: filters of higher layers are found, not imported."""
    module, name = KINDS[kind]
    made: type[Filter] = getattr(import_module(f"residua.{module}"), name)
    return made


def to_dict(filter: Filter) -> dict[str, Any]:
    """The configuration as plain data; fields that are None are left out."""
    if filter.kind not in KINDS:
        raise ArgumentError(f"{filter.kind} cannot be stored: it exists in memory only")
    out = _head(filter)
    for field in dataclasses.fields(filter):  # type: ignore[arg-type]
        value = getattr(filter, field.name)
        if value is not None and field.name in filter.repeated_queries:
            out[field.name] = [_plain_run(query) for query in value]
        elif value is not None:
            out[field.name] = _plain(value)
    return out


def to_json(filter: Filter) -> str:
    """Canonical JSON of a configuration."""
    return canonical(to_dict(filter))


def from_json(given: Any) -> Filter:
    """The filter that a JSON text (or parsed object) describes."""
    bare = isinstance(given, str) and given.lstrip()[:1] not in ("{", "[")
    if bare or not isinstance(given, str | bytes | bytearray | Mapping):
        raise (ArgumentError if bare else ArgumentTypeError)(
            'filter must be a filter or its JSON, such as {"kind": "gdp_residue", "mu": 1.0},'
            f" got {checks.shown(given)}"
        )
    return from_dict(parsed_json("filter", given))


def from_dict(given: Any) -> Filter:
    """The filter that plain data describes."""
    check_size("filter", given)
    fields, cls = _read_head(given)
    known = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    _only_known(cls.kind, fields, known)
    required = [name for name, field in known.items() if field.default is dataclasses.MISSING]
    checks.require_fields(cls.kind, fields, required)
    return cls(**{name: _field(cls, name, value) for name, value in fields.items()})


def state_to_json(filter: Filter, state: State) -> str:
    """Canonical JSON of a state."""
    if filter.kind not in KINDS:
        raise ArgumentError(f"states of {filter.kind} cannot be stored: they exist in memory only")
    out = _head(filter)
    out.update(_state_fields(state))
    return canonical(out)


def state_from_json(filter: Filter, given: Any) -> State:
    """The state of `filter` that a JSON text (or parsed object) says."""
    fields, cls = _read_head(parsed_json("state", given))
    if cls is not type(filter):
        raise ArgumentError(f"kind must be {filter.kind!r}, got {cls.kind!r}")
    first = filter.initial()
    names = [f.name for f in dataclasses.fields(first)]
    _only_known("state", fields, names)
    for name in names:
        if name not in fields:
            raise ArgumentError(f"state needs the field {name!r}, got only {sorted(fields)!r}")
    _like("of", first.of, fields["of"])
    return filter.check_state(filter.state_from_fields(fields))


def state_like(first: State, fields: Mapping[str, Any]) -> State:
    """A state read field by field as the types that the first state has in their places."""
    hints = get_type_hints(type(first))
    read: dict[str, Any] = {}
    for name, value in fields.items():
        is_null = value is None and NoneType in get_args(hints[name])
        read[name] = None if is_null else _like(name, getattr(first, name), value)
    return type(first)(**read)


def plain_states(filters: Sequence[Filter], states: Sequence[State | None]) -> list[Any]:
    """The states of several filters as plain data; None where one has none."""
    both = zip(filters, states, strict=True)
    return [None if one is None else json.loads(each.state_to_json(one)) for each, one in both]


def states_from_plain(filters: Sequence[Filter], given: Any) -> tuple[State | None, ...]:
    """The inverse of `plain_states`."""
    if not isinstance(given, list) or len(given) != len(filters):
        raise ArgumentTypeError(
            f"parts must be a list of {len(filters)} states, got {checks.shown(given)}"
        )
    both = zip(filters, given, strict=True)
    return tuple(None if one is None else each.state_from_json(one) for each, one in both)


def _head(filter: Filter) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": filter.kind}
    if filter.version != 1:
        out["version"] = filter.version
    return out


def _read_head(given: Any) -> tuple[dict[str, Any], type[Filter]]:
    """Fields without the head, and the class that the head names."""
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"filter must be a JSON object, got {checks.shown(given)}")
    fields = dict(given)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(
            f"kind must be one of {', '.join(sorted(KINDS))}, got {checks.shown(kind)}"
            f"{checks.suggestion(kind, KINDS)}"
        )
    cls = filter_class(kind)
    version = fields.pop("version", 1)
    if type(version) is not int or version != cls.version:
        raise ArgumentError(f"version must be {cls.version} for kind {kind!r}, got {version!r}")
    return fields, cls


def _only_known(what: str, fields: Mapping[str, Any], known: Any) -> None:
    for name in fields:
        if name not in known:
            raise ArgumentError(
                f"{what} takes {', '.join(known)}, got the unknown field {checks.shown(name)}"
                f"{checks.suggestion(name, known)}"
            )


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(data: Any) -> str:
    """Plain data as canonical JSON."""
    return _ENCODER.encode(data)


def _field(cls: type[Filter], name: str, value: Any) -> Any:
    if name in cls.nested_filters:
        return _filters(name, value)
    if name in cls.repeated_queries and isinstance(value, list | tuple):
        return tuple(_parse_run(name, each) for each in value)
    return _parse(value)


def _plain_run(query: Any) -> dict[str, Any]:
    """A query of a list, with how often it is repeated if that is more than once."""
    if isinstance(query, SelfComposed):
        return {"mechanism": query.mechanism.to_dict(), "repeat": query.count}
    return as_mechanism(query).to_dict()


def _parse_run(name: str, given: Any) -> Any:
    """The inverse of `_plain_run`."""
    if not isinstance(given, Mapping) or "kind" in given or "mechanism" not in given:
        return _parse(given)
    _only_known(name, given, ("mechanism", "repeat"))
    repeat = checks.count("repeat", given.get("repeat", 1))
    checks.require(repeat >= 1, "repeat", "at least 1", repeat)
    return SelfComposed(mechanism_from_dict(given["mechanism"]), repeat)


def _plain(value: Any) -> Any:
    if isinstance(value, Pld | Mechanism):
        return as_mechanism(value).to_dict()
    if isinstance(value, Filter):
        return to_dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _parse(value: Any) -> Any:
    if isinstance(value, Mapping):
        # Some kinds name both a mechanism and a filter; what is nested is a query where it can be.
        kind = value.get("kind")
        nested = isinstance(kind, str) and kind in KINDS and kind not in MECHANISMS
        return from_dict(value) if nested else mechanism_from_dict(value)
    if isinstance(value, list | tuple):
        return tuple(_parse(item) for item in value)
    return value


def _filters(name: str, value: Any) -> tuple[Filter, ...]:
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(f"{name} must be a list of filters, got {checks.shown(value)}")
    return tuple(each if isinstance(each, Filter) else from_dict(each) for each in value)


def _state_fields(state: State) -> dict[str, Any]:
    return {
        each.name: _state_plain(getattr(state, each.name)) for each in dataclasses.fields(state)
    }


def _state_plain(value: Any) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, Fraction):
        return amounts.text(value)
    if isinstance(value, tuple):
        return [_state_plain(item) for item in value]
    if isinstance(value, Filter):
        return to_dict(value)
    if isinstance(value, State):
        return _state_fields(value)
    if isinstance(value, Pld):
        return as_mechanism(value).to_dict()
    return value


def _like(name: str, pattern: Any, given: Any) -> Any:
    """`given` read as the type that the first state has in its place."""
    if isinstance(pattern, Fraction):
        return amounts.from_text(name, given)
    if isinstance(pattern, tuple):
        if not isinstance(given, list):
            raise ArgumentTypeError(f"{name} must be a list, got {checks.shown(given)}")
        if len(given) != len(pattern):
            raise ArgumentError(f"{name} must have {len(pattern)} entries, got {len(given)}")
        return tuple(_like(name, kind, item) for kind, item in zip(pattern, given, strict=True))
    if type(given) is not type(pattern):
        wanted = type(pattern).__name__
        raise ArgumentTypeError(f"{name} must be of type {wanted}, got {checks.shown(given)}")
    return given
