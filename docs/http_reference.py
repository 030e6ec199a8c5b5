"""Writes docs/http.md from the service's OpenAPI description (`make docs`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from residua.service.app import description
from residua.service.auth import PERMISSIONS
from residua.service.problems import KINDS

HEADING = """# HTTP

Generated from the service's own description by `make docs`; edit that instead. The description
itself is at `/v1/openapi.json`. How to run a service: [service.md](service.md).

Every request but the two probes carries `Authorization: Bearer TOKEN`. Bodies are JSON objects; a
field that is not listed is an error. A mechanism and a filter are JSON as everywhere
([mechanisms](mechanisms.md), [filters](filters.md)). A refusal is an answer with status 200 and
`admitted: false`. Errors are problem details (RFC 9457), listed at the end."""

ORDER = ("asking", "budgets", "history", "planning", "status")


def reference() -> str:
    """The whole page."""
    schema = description().openapi()
    names = schema["components"]["schemas"]
    found: dict[str, list[str]] = {tag: [] for tag in ORDER}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["pages"])[0]
            if tag in found:
                found[tag].append(_operation(method.upper(), path, operation, names))
    parts = [HEADING]
    for tag, sections in found.items():
        parts += [f"## {tag.capitalize()}", *sections]
    return "\n\n".join([*parts, _roles(), _problems()]) + "\n"


def _operation(method: str, path: str, operation: Any, names: Any) -> str:
    parts = [f"### `{method} {path}`", operation["description"].strip()]
    rows = [_parameter(one, names) for one in operation.get("parameters", ())]
    body = _model(operation.get("requestBody"), names)
    if body is not None:
        required = set(body.get("required", ()))
        rows += [
            _row(name, "body", field, name in required, names)
            for name, field in body["properties"].items()
        ]
    if rows:
        parts.append(_table(("field", "in", "what"), rows))
    for status, response in operation["responses"].items():
        if int(status) < 300:
            parts.append(f"Answer: {status}. {_answer(response, names)}".strip())
    codes = [status for status in operation["responses"] if int(status) >= 400]
    if codes:
        parts.append(f"Problems: {', '.join(codes)}.")
    example = _example(body)
    if example:
        parts.append(f"```json\n{json.dumps(example)}\n```")
    return "\n\n".join(parts)


def _answer(response: Any, names: Any) -> str:
    model = _model(response, names)
    if model is None or "properties" not in model:
        kinds = [kind for kind in response.get("content", {}) if kind != "application/json"]
        return f"`{kinds[0]}`." if kinds else ""
    fields = ", ".join(f"`{name}`" for name in model["properties"])
    return f"{model.get('description', '').strip()} Fields: {fields}."


def _parameter(one: Any, names: Any) -> tuple[str, str, str]:
    field = {**one["schema"], "description": one.get("description", "")}
    return _row(one["name"], one["in"], field, one.get("required", False), names)


def _row(name: str, place: str, field: Any, required: bool, names: Any) -> tuple[str, str, str]:
    said = [_type(field, names)]
    if required:
        said.append("required")
    elif field.get("default") not in (None, []):
        said.append(f"default `{json.dumps(field['default'])}`")
    text = " ".join(field.get("description", "").split())
    return f"`{name}`", place, ", ".join(said) + (f". {text}" if text else "")


def _type(field: Any, names: Any) -> str:
    if "anyOf" in field:
        kinds = [_type(one, names) for one in field["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in field:
        return "object"
    if field.get("type") == "array":
        return f"list of {_type(field['items'], names)}"
    if "enum" in field:
        return " or ".join(f"`{one}`" for one in field["enum"])
    return str(field.get("type", "any"))


def _model(holder: Any, names: Any) -> Any:
    """The schema that a body or an answer refers to."""
    schema = (holder or {}).get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return None
    for one in (schema, *schema.get("allOf", ()), *schema.get("anyOf", ())):
        if "$ref" in one:
            return names[one["$ref"].rpartition("/")[2]]
    return schema


def _example(body: Any) -> Any:
    fields = (body or {}).get("properties", {})
    found = {}
    for name, field in fields.items():
        if "examples" in field:
            found[name] = field["examples"][0]
    return found


def _roles() -> str:
    roles = ("admin", "engine", "analyst", "auditor")
    rows = [
        (permission, *("yes" if role in having else "" for role in roles))
        for permission, having in PERMISSIONS.items()
    ]
    return "## Roles\n\n" + _table(("may", *roles), rows)


def _problems() -> str:
    shown = {"not-json": "400, 415", "client-left": "499, in the log alone"}
    rows = [
        (f"`urn:residua:problem:{name}`", shown.get(name, str(kind.status)), kind.title)
        for name, kind in KINDS.items()
    ]
    return "## Problems\n\n" + _table(("type", "status", "title"), rows)


def _table(columns: tuple[str, ...], rows: Any) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(cell for cell in row)} |" for row in rows)])


if __name__ == "__main__":
    page = Path(__file__).with_name("http.md")
    page.write_text(reference(), encoding="utf-8")
    print(f"wrote {page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page}")
