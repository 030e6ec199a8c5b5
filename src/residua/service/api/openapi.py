"""The OpenAPI description: the models, the kinds of mechanism and filter, and examples.

Schemas of kinds are derived from their classes: there is no second list. Values that a kind does
not allow (a negative scale) are answered with 422 and the library's own words; the description has
names and types.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any

from residua.filters.balance import Balance, Detail
from residua.filters.codec import KINDS as FILTERS
from residua.filters.codec import filter_class
from residua.mechanisms.codec import KINDS as MECHANISMS
from residua.pld.constructors import gaussian
from residua.service import problems

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


def _examples() -> dict[str, list[dict[str, Any]]]:
    """Example answers: one budget, a spend, a refusal, a reservation."""
    laplace = {"kind": "laplace", "scale": 4.0, "sensitivity": 1.0}
    digest = "fd50c61ff87edb72ad58ee102349945d310fac7e3976a1be12d8b09886b1c482"
    before = "db8a09b9792d8fd47676d47d8e7df1954a54494eaff727188f60ac1733eec0f1"
    hold = "421948568af34151bd03291b07586236"
    made, expires = "2026-11-16T11:43:09.448Z", "2026-11-16T12:43:09.448Z"

    def normal(mu: float, text: str) -> dict[str, Any]:
        return {"kind": "gaussian", "sigma": 1.0, "sensitivity": mu, "text": text}

    whole = normal(1.0, "mu² 1 (mu 1)")
    left = normal(0.970412173915536, "mu² 0.941699 (mu 0.970412)")

    def state(left: str) -> dict[str, Any]:
        return {"kind": "gdp_residue", "left": [left], "of": "00dbce7cda98ab79"}

    detail = Detail("gdp_residue", "mu²", 0.941699, 1.0, 0.941699)
    balance = Balance(0.941699, gaussian(mu=1.0), 0.782575, 15, False, (detail,))
    admitted = "admitted: Laplace(scale=4.0) costs mu² 0.058301"
    receipt = {
        "admitted": True,
        "reason": admitted,
        "remaining": left,
        "remaining_is": "left after this",
        "seq": 1,
        "key": "q-17",
        "replayed": False,
        "head": digest,
        "binding": None,
        "largest": None,
        "budgets": {"web": {"seq": 1, "head": digest}},
    }
    refusal = {
        "admitted": False,
        "reason": "would be refused: Laplace(scale=0.5) needs mu² 3.24326 (mu 1.80091);"
        " 100 % left (mu² 1); Laplace(scale=1.03571) would fit",
        "remaining": whole,
        "remaining_is": "left now",
        "binding": "web",
        "largest": {"kind": "laplace", "scale": 1.03571, "sensitivity": 1.0},
    }
    budget: dict[str, Any] = {
        "name": "web",
        "filter": {"kind": "gdp_residue", "mu": 1.0},
        "relation": "add-remove",
        "unit": "person",
        "data": None,
        "parent": None,
        "partition": None,
        "window": None,
        "generation": 0,
        "seq": 1,
        "head": digest,
        "retired": False,
        "state": state("0.941699787283476572"),
        "remaining": left,
        "capacity": whole,
        "balance": balance.to_dict(),
        "guarantee": {
            "text": "one person under add-remove: gaussian(mu=1.0)",
            "pld": normal(1.0, "gaussian(mu=1.0)"),
        },
        "holds": [],
    }
    record = {
        "v": 1,
        "ledger": "df958be28a154114a1eaee93c7c2d343",
        "budget": "web",
        "seq": 1,
        "prev": before,
        "type": "spend",
        "time": made,
        "by": "query-engine",
        "key": "q-17",
        "request": "b731237c96590d3ed9ab42c818437af71e2576d87cbd1710691c75ee7e9297f6",
        "mechanism": laplace,
        "relation": "add-remove",
        "assumed": False,
        "group": [{"budget": "web", "prev": before, "seq": 1}],
        "admitted": True,
        "binding": None,
        "reason": admitted,
        "tables": {},
        "holds": [],
        "before": state("1"),
        "after": state("0.941699787283476572"),
        "hash": digest,
    }
    curve = {
        "hockey_stick": {"eps": [0.0, 6.17393504667095], "delta": [0.3829249225480298, 1e-09]},
        "tradeoff": {"alpha": [0.0, 0.5, 1.0], "beta": [1.0, 0.15865525393145424, 0.0]},
    }
    return {
        "Receipted": [receipt],
        "Decided": [refusal],
        "Reserved": [
            {**receipt, "remaining_is": "left beside this", "id": hold, "expires": expires}
        ],
        "Holds": [
            {
                "items": [
                    {
                        "id": hold,
                        "budgets": ["web"],
                        "mechanism": '{"kind":"laplace","scale":4.0,"sensitivity":1.0}',
                        "by": "query-engine",
                        "made": made,
                        "expires": expires,
                        "age": 12.5,
                        "overdue": False,
                    }
                ]
            }
        ],
        "Budgeted": [budget],
        "Budgets": [{"items": [budget], "next": None}],
        "History": [{"items": [record], "next": None}],
        "Curves": [
            {"budget": "web", "seq": 1, "capacity": curve, "spent": curve, "remaining": curve,
             "guarantee": curve}
        ],
        "Planned": [
            {
                "how_many": 15,
                "rounds": 15,
                "counting_ended": False,
                "n": 3,
                "least_noise": [{"kind": "laplace", "scale": 1.80098, "sensitivity": 1.0}],
                "remaining": left,
            }
        ],
        "Me": [
            {
                "principal": "ana",
                "role": "analyst",
                "scope": ["web", "team-a-*"],
                "token": "f12a7f2e162b",
                "permissions": ["check", "plan", "read"],
            }
        ],
        "Health": [{"status": "ok", "version": "0.1.0"}],
        "Verification": [
            {"running": False, "finished": "2026-11-16T11:45:00+00:00", "ok": True, "proven": 260,
             "refuted": 0, "undecided": 0, "said": None}
        ],
    }  # fmt: skip


ANSWERS = _examples()
"""Example answers by the names of their models."""
