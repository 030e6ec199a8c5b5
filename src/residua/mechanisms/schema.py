"""JSON schemas of the kinds of mechanism and filter, derived from their classes.

It is the only table of the fields of a kind: the service's description, the command line's help and
the documentation are made from it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any

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
