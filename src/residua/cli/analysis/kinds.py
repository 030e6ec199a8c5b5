"""What a kind of mechanism takes, read off its class: there is no second list of kinds."""

import dataclasses
import inspect
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.cli import flags
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.mechanisms import Mechanism

__all__ = ["Parameter", "kind_named", "parameters", "shape", "summary", "usage"]


WORDS = {
    "float": "number",
    "int": "integer",
    "str": "text",
    "bool": "true or false",
    "Mechanism": "mechanism",
}
JSON = {
    "number": "NUMBER",
    "integer": "INTEGER",
    "text": '"TEXT"',
    "true or false": "true|false",
    "mechanism": '{"kind": ...}',
    "list of numbers": "[NUMBER, ...]",
    "list of mechanisms": '[{"kind": ...}, ...]',
}
"""How a value of each type is written."""
FLAG = {**JSON, "text": "TEXT", "list of numbers": "NUMBER;NUMBER;..."}


class Parameter(NamedTuple):
    """A field of a description."""

    name: str
    type: str
    required: bool
    default: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.required else f" = {self.shown}")

    @property
    def shown(self) -> str:
        """The default as JSON has it."""
        return json.dumps(self.default)


def kind_named(name: str) -> type["Mechanism"]:
    """The class of a kind; hyphens pass for underscores."""
    from residua import checks
    from residua.mechanisms import KINDS

    kind = name.replace("-", "_")
    if kind not in KINDS:
        raise ArgumentError(
            f"kind must be one of {', '.join(KINDS)}, got {checks.shown(name)}"
            f"{checks.near(kind, KINDS)}"
        )
    return KINDS[kind]


def parameters(cls: type["Mechanism"]) -> list[Parameter]:
    """The fields of a kind, in order."""
    found = []
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING
        default = None if required else field.default
        found.append(Parameter(field.name, _type(str(field.type)), required, default))
    return found


def summary(cls: type["Mechanism"]) -> str:
    """What a kind is, in a line."""
    return " ".join((inspect.getdoc(cls) or "").split())


def usage(cls: type["Mechanism"]) -> str:
    """The flag of a kind with what it takes."""
    takes = [
        f"{p.name}={FLAG[p.type]}" if p.required else f"[{p.name}={FLAG[p.type]}]"
        for p in parameters(cls)
    ]
    return f"{flags.flag(cls)} {','.join(takes)}"


def shape(cls: type["Mechanism"]) -> str:
    """The JSON of a kind, with types where it has no default; null fields may be left out."""
    pairs = [f'"kind": "{cls.kind}"']
    pairs += [f'"{p.name}": {JSON[p.type] if p.required else p.shown}' for p in parameters(cls)]
    return "{" + ", ".join(pairs) + "}"


def _type(annotation: str) -> str:
    """A type in words that suit JSON."""
    words = annotation.removesuffix(" | None")
    member = re.fullmatch(r"tuple\[(\w+), \.\.\.\]", words)
    return f"list of {WORDS[member[1]]}s" if member else WORDS[words]
