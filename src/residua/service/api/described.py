"""Schemas of mechanisms and filters for the OpenAPI description, derived from their classes.

There is no second list of kinds. Values that a kind does not allow (a negative scale) are answered
with 422 and the library's own words; the description has names and types.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any

from residua.filters.codec import KINDS as FILTERS
from residua.filters.codec import filter_class
from residua.mechanisms.codec import KINDS as MECHANISMS
from residua.service.api.examples import ANSWERS

MECHANISM, FILTER = "Mechanism", "Filter"
_WORDS: dict[str, dict[str, Any]] = {
    "float": {"type": "number"},
    "int": {"type": "integer"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    **{
        name: {"$ref": f"#/components/schemas/{MECHANISM}"}
        for name in ("Mechanism", "Query", "Pld")
    },
    "Filter": {"$ref": f"#/components/schemas/{FILTER}"},
}


def add_kinds(components: dict[str, Any]) -> None:
    """Put mechanisms, filters and examples of answers into the components of a description."""
    schemas = components["schemas"]
    steps = {"steps": {"type": "integer", "minimum": 1, "description": "How many in a row."}}
    schemas[MECHANISM] = _any_of(MECHANISM, (_kind(cls, steps) for cls in MECHANISMS.values()))
    schemas[FILTER] = _any_of(FILTER, (_kind(filter_class(kind), {}) for kind in FILTERS))
    for request in ("Ask", "Reserve"):
        _refer(schemas[request]["properties"]["mechanism"], MECHANISM)
    _refer(schemas["Plan"]["properties"]["mechanisms"]["items"], MECHANISM)
    _refer(schemas["NewBudget"]["properties"]["filter"], FILTER)
    # FastAPI leaves out nulls in examples that the models have, so they are put in here.
    for name, answers in ANSWERS.items():
        schemas[name]["examples"] = answers


def _any_of(title: str, kinds: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "anyOf": list(kinds)}


def _refer(field: dict[str, Any], name: str) -> None:
    for word in ("type", "additionalProperties", "minProperties"):
        field.pop(word, None)
    field["$ref"] = f"#/components/schemas/{name}"


def _kind(cls: Any, more: dict[str, Any]) -> dict[str, Any]:
    """One kind: all of its fields, and no others."""
    fields = [field for field in dataclasses.fields(cls) if field.init]
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]
    said = (inspect.getdoc(cls) or "").partition("\n\n")[0]
    return {
        "type": "object",
        "title": cls.kind,
        "description": " ".join(said.split()),
        "properties": {
            "kind": {"type": "string", "const": cls.kind},
            **{field.name: _field(field) for field in fields},
            **more,
        },
        "required": ["kind", *needed],
        "additionalProperties": False,
    }


def _field(field: Any) -> dict[str, Any]:
    schema = _type(ast.parse(str(field.type), mode="eval").body)
    plain = isinstance(field.default, bool | int | float | str)
    return {**schema, "default": field.default} if plain else schema


def _type(node: ast.expr) -> dict[str, Any]:
    """A type of Python's as one of JSON's."""
    if isinstance(node, ast.Constant) and node.value is None:
        return {"type": "null"}
    if isinstance(node, ast.Name):
        return dict(_WORDS[node.id])
    if isinstance(node, ast.BinOp):  # one | other
        return {"anyOf": [_type(node.left), _type(node.right)]}
    assert isinstance(node, ast.Subscript), ast.dump(node)
    if isinstance(node.slice, ast.Tuple):
        first, last = node.slice.elts[0], node.slice.elts[-1]
        if isinstance(last, ast.Constant):  # tuple[of, ...]
            return {"type": "array", "items": _type(first)}
        n = len(node.slice.elts)
        return {"type": "array", "items": _type(first), "minItems": n, "maxItems": n}
    return {"type": "array", "items": _type(node.slice)}
