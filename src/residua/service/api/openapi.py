"""The OpenAPI description: the models, the kinds of mechanism and filter, and examples.

Schemas of kinds are derived from their classes: there is no second list. Values that a kind does
not allow (a negative scale) are answered with 422 and the library's own words; the description has
names and types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from residua.filters.codec import KINDS as FILTERS
from residua.filters.codec import filter_class
from residua.mechanisms.codec import FILTER, MECHANISM, SCHEMAS, kind_schema
from residua.mechanisms.codec import KINDS as MECHANISMS
from residua.service import problems
from residua.service.api import models


def complete(schema: dict[str, Any]) -> dict[str, Any]:
    """The description with the token and all kinds, without FastAPI's default for status 422."""
    if "securitySchemes" in schema.get("components", {}):
        return schema
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    _add_kinds(components)
    schema["security"] = [{"token": []}]
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            if path in ("/v1/health", "/v1/ready"):
                operation["security"] = []
            for code, response in operation["responses"].items():
                if code.isdigit() and int(code) >= 400:
                    content = response.setdefault("content", {})
                    content.clear()
                    content[problems.MEDIA_TYPE] = {
                        "schema": {"$ref": "#/components/schemas/ProblemDetails"}
                    }
    for model in components["schemas"].values():
        for field in model.get("properties", {}).values():
            if "description" in field:  # The text of a docstring, which has lines.
                field["description"] = " ".join(field["description"].split())
    for name in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(name, None)
    return schema


def _add_kinds(components: dict[str, Any]) -> None:
    """Put mechanisms, filters and examples of answers into the components of a description."""
    schemas = components["schemas"]
    steps = {"steps": {"type": "integer", "minimum": 1, "description": "How many in a row."}}
    schemas[MECHANISM] = _any_of(
        MECHANISM, (kind_schema(cls, **steps) for cls in MECHANISMS.values())
    )
    schemas[FILTER] = _any_of(FILTER, (kind_schema(filter_class(kind)) for kind in FILTERS))
    for request in ("Ask", "Reserve"):
        _refer(schemas[request]["properties"]["mechanism"], MECHANISM)
    _refer(schemas["Plan"]["properties"]["mechanisms"]["items"], MECHANISM)
    _refer(schemas["NewBudget"]["properties"]["filter"], FILTER)
    # FastAPI leaves out nulls in examples that the models have, so they are put in here.
    for name, schema in schemas.items():
        model = getattr(models, name, None)
        if isinstance(model, type) and issubclass(model, models.Answer):
            schema["examples"] = [models.example(model)]


def _any_of(title: str, kinds: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "anyOf": list(kinds)}


def _refer(field: dict[str, Any], name: str) -> None:
    for word in ("type", "additionalProperties", "minProperties"):
        field.pop(word, None)
    field["$ref"] = SCHEMAS + name
