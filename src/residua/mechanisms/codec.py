"""Descriptions as JSON: read strictly, and the schema of each kind.

`{"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}`: the kind in snake case, then every field.
`version` is left out while it is 1. On reading, fields with defaults may be missing, `steps` is
short for `self_composed`, and anything unknown, duplicate or of the wrong type is an error.

The schemas of the kinds of mechanism and filter are derived from their classes (`kind_schema`).
They are the only table of the fields of a kind: the service's description, the command line's help
and the documentation are made from it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.mechanisms import black_boxes, composition, noise, sampled, selection
from residua.mechanisms.composition import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.sizes import DEEPEST, DEEPEST_TEXT, LARGEST_COUNT, oversized

KINDS: dict[str, type[Mechanism]] = {
    cls.kind: cls
    for cls in (
        noise.Gaussian,
        noise.Laplace,
        noise.DiscreteGaussian,
        noise.DiscreteLaplace,
        noise.TruncatedLaplace,
        selection.RandomizedResponse,
        selection.ExponentialMechanism,
        selection.ReportNoisyMax,
        sampled.SubsampledGaussian,
        noise.MixtureOfGaussians,
        sampled.PoissonSampled,
        sampled.SampledWithoutReplacement,
        black_boxes.PureDp,
        black_boxes.ApproximateDp,
        black_boxes.Gdp,
        black_boxes.Zcdp,
        black_boxes.Rdp,
        black_boxes.FromAtoms,
        black_boxes.FromTradeoff,
        composition.Composed,
        composition.SelfComposed,
    )
}
"""The kinds of mechanism, by the name they have in JSON."""
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]')
"""Brackets and strings; brackets inside strings do not count."""


def from_json(given: str | bytes | Mapping[str, Any]) -> Mechanism:
    """The mechanism that a JSON text (or parsed object) describes."""
    return from_dict(parsed_json("mechanism", given))


def parsed_json(name: str, given: Any) -> Any:
    """The value of a JSON text, parsed strictly; what is not a text passes through."""
    if isinstance(given, bytes | bytearray):
        try:
            given = bytes(given).decode()
        except UnicodeDecodeError as error:
            raise ArgumentError(f"{name} must be JSON in UTF-8, got {error}") from None
    if not isinstance(given, str):
        return given
    if _nesting(given) > DEEPEST_TEXT:
        raise ArgumentError(f"{name} must be nested less deeply than {DEEPEST_TEXT} levels")
    try:
        return _decoder(name).decode(given)
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos}"
        raise ArgumentError(
            f"{name} must be valid JSON, got {checks.shown(given)} ({where})"
        ) from None


def _nesting(text: str) -> int:
    """How deep lists and objects are nested in a JSON text, at most."""
    openings = text.count("{") + text.count("[")
    if openings <= DEEPEST_TEXT:
        return openings
    depth = deepest = 0
    for mark in _BRACKETS.finditer(text):
        if mark[0] in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif mark[0] in "}]":
            depth -= 1
    return deepest


@lru_cache(maxsize=64)
def _decoder(name: str) -> json.JSONDecoder:
    """A strict decoder for `name`: no duplicate fields, numbers finite and of ordinary size."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) != len(pairs):
            seen: set[str] = set()
            for field, _ in pairs:
                checks.require(field not in seen, name, "without duplicate fields", field)
                seen.add(field)
        return fields

    def constant(text: str) -> Any:
        raise ArgumentError(f"{name} must be valid JSON with finite numbers, got {text}")

    def whole(text: str) -> int:
        # The largest float has 309 digits.
        checks.require(len(text) < 400, name, "made of numbers of ordinary size", text)
        return int(text)

    return json.JSONDecoder(
        object_pairs_hook=once,
        parse_float=partial(checks.parse_float, name),
        parse_constant=constant,
        parse_int=whole,
    )


def check_size(name: str, given: Any) -> None:
    """Raise `ArgumentError` if plain data is too large to be read as a description."""
    why = oversized(given)
    if why is not None:
        raise ArgumentError(f"{name} is too large: {why}")


def from_dict(given: Any, depth: int = 0) -> Mechanism:
    """The mechanism that plain data describes."""
    checks.instance("mechanism", given, Mapping, "a JSON object")
    if depth == 0:
        check_size("mechanism", given)
    checks.require(depth < DEEPEST, "mechanism", f"nested at most {DEEPEST} deep", "deeper")
    fields = dict(given)
    if "kind" not in fields:
        raise ArgumentError(
            f"kind is missing: it must be one of {', '.join(sorted(KINDS))}, "
            f"got only {checks.shown(sorted(map(str, fields)))}"
        )
    kind = fields.pop("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(
            f"kind must be one of {', '.join(sorted(KINDS))}, got {checks.shown(kind)}"
            f"{checks.suggestion(kind, KINDS)}"
        )
    cls = KINDS[kind]
    version = fields.pop("version", 1)
    if type(version) is not int or version != cls.version:
        raise ArgumentError(
            f"version must be {cls.version} for kind {kind!r}, got {checks.shown(version)}"
        )
    steps = checks.count("steps", fields.pop("steps")) if "steps" in fields else None
    checks.require(steps is None or steps <= LARGEST_COUNT, "steps", "at most 2**53", steps)
    known = {field.name: field for field in dataclasses.fields(cls)}
    for name in fields:
        if name not in known:
            raise ArgumentError(
                f"{kind} takes {', '.join(known) or 'no fields'}, got the unknown field"
                f" {checks.shown(name)}{checks.suggestion(name, known)}"
            )
    required = [name for name, field in known.items() if field.default is dataclasses.MISSING]
    checks.require_fields(kind, fields, required)
    made = cls(**{name: _parse(value, depth + 1) for name, value in fields.items()})
    return made if steps is None else SelfComposed(made, steps)


def _parse(value: Any, depth: int) -> Any:
    """Nested objects are mechanisms, lists become tuples."""
    if isinstance(value, Mapping):
        return from_dict(value, depth)
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, list | tuple):
                raise ArgumentTypeError(
                    f"lists must contain numbers or mechanisms, got {checks.shown(item)}"
                )
        return tuple(_parse(item, depth) for item in value)
    return value


SCHEMAS = "#/components/schemas/"
MECHANISM, FILTER = "Mechanism", "Filter"
_TYPES: dict[str, dict[str, Any]] = {
    **{name: {"type": "number"} for name in ("float", "Positive", "NonNegative", "Probability")},
    **{name: {"type": "integer"} for name in ("int", "Count")},
    "str": {"type": "string"},
    **{name: {"type": "boolean"} for name in ("bool", "Flag")},
    "Numbers": {"type": "array", "items": {"type": "number"}},
    **{name: {"$ref": SCHEMAS + MECHANISM} for name in ("Mechanism", "Inner", "Query", "Pld")},
    "Filter": {"$ref": SCHEMAS + FILTER},
}
_WORDS = {
    "number": "number",
    "integer": "integer",
    "string": "text",
    "boolean": "true or false",
}


def kind_schema(cls: Any, **more: Any) -> dict[str, Any]:
    """The JSON schema of a kind: its fields and those of `more`, and no others."""
    fields = [field for field in dataclasses.fields(cls) if field.init]
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    summary = (inspect.getdoc(cls) or "").partition("\n\n")[0]
    return {
        "type": "object",
        "title": cls.kind,
        "description": " ".join(summary.split()),
        "properties": {
            "kind": {"type": "string", "const": cls.kind},
            **{field.name: _field_schema(field) for field in fields},
            **more,
        },
        "required": ["kind", *required],
        "additionalProperties": False,
    }


def _field_schema(field: Any) -> dict[str, Any]:
    schema = _type_schema(ast.parse(str(field.type), mode="eval").body)
    plain = isinstance(field.default, bool | int | float | str)
    return {**schema, "default": field.default} if plain else schema


def _type_schema(node: ast.expr) -> dict[str, Any]:
    """The JSON schema of a Python type, from its syntax tree."""
    if isinstance(node, ast.Constant) and node.value is None:
        return {"type": "null"}
    if isinstance(node, ast.Name):
        return dict(_TYPES[node.id])
    if isinstance(node, ast.BinOp):  # one | other
        return {"anyOf": [_type_schema(node.left), _type_schema(node.right)]}
    assert isinstance(node, ast.Subscript), ast.dump(node)
    if isinstance(node.slice, ast.Tuple):
        first, last = node.slice.elts[0], node.slice.elts[-1]
        if isinstance(last, ast.Constant):  # tuple[of, ...]
            return {"type": "array", "items": _type_schema(first)}
        n = len(node.slice.elts)
        return {"type": "array", "items": _type_schema(first), "minItems": n, "maxItems": n}
    return {"type": "array", "items": _type_schema(node.slice)}


def type_words(schema: dict[str, Any]) -> str:
    """The type of a field in words, for help texts; null is left out."""
    if "anyOf" in schema:
        return type_words(schema["anyOf"][0])
    if schema.get("type") == "array":
        return f"list of {type_words(schema['items'])}s"
    return _WORDS[schema["type"]] if "type" in schema else "mechanism"
