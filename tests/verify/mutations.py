"""Small changes to JSON values: what somebody might forge, and what a careless writer leaves."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

ODD: list[Any] = [
    None, True, False, "", "1.0", "nan", [], {}, [[]], [1.0], {"kind": "pure_dp", "eps": 0.1},
    0, 1, 2, -1, -1.0, 0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 1e-320, 1e-300, 1e-12, 1e6, 1e9, 1e12, 1e300,
    1.7e308, 2**53, 2**53 + 1, 10**30, 10**390, -(10**30), 0.999999999, 1.000000002,
    "add-remove", "replace-one", "zero-out", "person", " person", "a\nb",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values in a JSON value, containers too."""
    found = [path]
    if isinstance(value, dict):
        found += [p for k, v in value.items() for p in places(v, (*path, k))]
    elif isinstance(value, list):
        found += [p for k, v in enumerate(value) for p in places(v, (*path, k))]
    return found


def mutated(draw: random.Random, value: Any, times: int = 1) -> Any:
    """The value with some random changes."""
    made = copy.deepcopy(value)
    for _ in range(times):
        made = _once(draw, made)
    return made


def _once(draw: random.Random, value: Any) -> Any:
    path = draw.choice(places(value))
    if not path:
        if isinstance(value, dict):
            return draw.choice(_OF_OBJECTS)(draw, value)
        return draw.choice(ODD)
    holder = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = _changed(draw, holder[path[-1]])
    return value


def _changed(draw: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and draw.random() < 0.8:
        return draw.choice(_OF_OBJECTS)(draw, value)
    if isinstance(value, list) and draw.random() < 0.8:
        return draw.choice(_OF_LISTS)(draw, value)
    if type(value) is float and draw.random() < 0.6:
        return draw.choice(_OF_FLOATS)(value)
    if type(value) is int and draw.random() < 0.6:
        return draw.choice(_OF_INTEGERS)(value)
    return copy.deepcopy(draw.choice(ODD))


def _dropped(draw: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    names = sorted(value)
    if not names:
        return value
    gone = draw.choice(names)
    return {name: each for name, each in value.items() if name != gone}


def _added(draw: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    names = ("note", "version", "steps", "relation", "unit", "delta", "sensitivity", "Scale", "of")
    return {**value, draw.choice(names): copy.deepcopy(draw.choice(ODD))}


def _renamed(draw: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    kinds = ("laplace", "gaussian", "pure_dp", "zcdp", "from_atoms", "pure", "basic", "LAPLACE")
    return {**value, "kind": draw.choice(kinds)}


def _nested(draw: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    for _ in range(draw.choice((1, 2, 29, 30, 31, 32, 33, 60))):
        value = {"kind": "self_composed", "count": 1, "mechanism": value}
    return value


_OF_OBJECTS: list[Callable[[random.Random, dict[str, Any]], Any]] = [
    _dropped, _dropped, _added, _added, _renamed, _nested,
]  # fmt: skip
_OF_LISTS: list[Callable[[random.Random, list[Any]], Any]] = [
    lambda draw, value: [],
    lambda draw, value: value[1:],
    lambda draw, value: value + value[:1],
    lambda draw, value: value[::-1],
    lambda draw, value: [value],
    lambda draw, value: [*value, copy.deepcopy(draw.choice(ODD))],
    lambda draw, value: draw.sample(value, len(value)),
    lambda draw, value: dict(enumerate(map(str, value))) and {"0": value},
]
_OF_FLOATS: list[Callable[[float], Any]] = [
    lambda value: -value,
    lambda value: value * 1e9 if abs(value) < 1e290 else value,
    lambda value: value * 1e-9,
    lambda value: value + 1e-6,
    lambda value: value * (1 + 3e-9),
    lambda value: value + 3e-10,
    lambda value: str(value),
    lambda value: int(value),
    lambda value: [value],
]
_OF_INTEGERS: list[Callable[[int], Any]] = [
    lambda value: -value,
    lambda value: value + 1,
    lambda value: value - 1,
    lambda value: float(value) if abs(value) < 10**300 else None,
    lambda value: str(value),
    lambda value: value * 10**20,
    lambda value: bool(value),
]
