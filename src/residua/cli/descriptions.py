"""Mechanisms and filters as they are written on the command line.

A description is JSON, as everywhere (`mechanisms/codec.py`), or the same in short: `laplace
scale=2`, `gdp_residue mu=1`. A union of filters in short is its components with bars between them:
`pure eps=1 | gdp_residue mu=0.2`. What a kind takes is read off its class: there is no second list
of kinds.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from residua.filters import Filter
    from residua.mechanisms import Mechanism


_SHORT = re.compile(r"\s*([A-Za-z][\w-]*)(?:\s+(.*))?", re.DOTALL)


def parse_mechanism(text: str) -> "Mechanism":
    """The mechanism of one query, written as JSON or in short."""
    from residua.mechanisms import from_json

    return from_json(parse_fields("query", text))


def parse_fields(name: str, text: str) -> dict[str, Any]:
    """The fields of one description, written as JSON or in short."""
    if text.lstrip()[:1] not in ("{", "["):
        short = _SHORT.fullmatch(text)
        if short is None:
            raise ArgumentError(
                f"{name} must be a JSON object, or a kind with name=value, got {_shorten(text)}"
            )
        kind = short[1].replace("-", "_")
        return {"kind": kind, **_fields(kind, short[2] or "")}
    value = _read(text, name)
    if not isinstance(value, dict):
        raise ArgumentError(f"{name} must be a JSON object, got {_shorten(text)}")
    return value


def parse_list(texts: Sequence[str]) -> list["Mechanism"]:
    """Several queries in order, each one query or a list of them."""
    return [one for text in texts for one in _several(text)]


def parse_composed(text: str) -> "Mechanism":
    """The mechanism of one query, or of a JSON list of queries composed."""
    return _composed(_several(text))


def _several(text: str) -> list["Mechanism"]:
    if not text.lstrip().startswith("["):
        return [parse_mechanism(text)]
    from residua.mechanisms import from_json

    items = _read(text)
    if not items:
        raise ArgumentError("queries must contain at least one query, got []")
    for item in items:
        if not isinstance(item, dict):
            raise ArgumentError(f"queries must be JSON objects, got {_shorten(json.dumps(item))}")
    return [from_json(item) for item in items]


def compose(texts: Sequence[str]) -> "Mechanism":
    """The composition of several queries, each one query or a list of them."""
    return _composed([parse_composed(text) for text in texts])


def _composed(mechanisms: Sequence["Mechanism"]) -> "Mechanism":
    from residua.mechanisms import Composed

    return mechanisms[0] if len(mechanisms) == 1 else Composed(tuple(mechanisms))


def _read(text: str, name: str = "query") -> Any:
    from residua.mechanisms.codec import parsed_json

    return parsed_json(name, text)


# -- in short -------------------------------------------------------------------------------


def _fields(kind: str, text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in _parts(text):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ArgumentError(f"{kind} takes name=value, separated by commas, got {part}")
        if name in fields:
            raise ArgumentError(f"{kind} takes each field once, got {name} twice")
        fields[name] = _value(name, value)
    return fields


def _parts(text: str) -> Iterator[str]:
    """Split at commas and blanks that are outside of brackets and quotes."""
    part, depth, quoted, escaped = "", 0, False, False
    for letter in text:
        if quoted:
            quoted = letter != '"' or escaped
            escaped = letter == "\\" and not escaped
        else:
            depth += (letter in "[{") - (letter in "]}")
            quoted, escaped = letter == '"', False
            if depth == 0 and (letter == "," or letter.isspace()):
                if part:
                    yield part
                part = ""
                continue
        part += letter
    if part:
        yield part


def _value(name: str, text: str) -> Any:
    """JSON, a list `2;4;8`, a number as Python reads it, or a word."""
    if text[:1] in ("{", "[", '"') or text in ("true", "false", "null"):
        return _read(text, name)
    if ";" in text:
        return [_value(name, item.strip()) for item in text.split(";") if item.strip()]
    if re.fullmatch(r"-?\d{1,300}", text):
        return int(text)
    from residua.checks import parse_float

    try:
        return parse_float(name, text) if "_" not in text else text
    except ArgumentError:
        raise
    except ValueError:
        return text


def _shorten(text: str) -> str:
    """An input as an error shows it."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def parse_filter(text: str) -> "Filter":
    """The filter that is written as JSON or in short, or as JSON in a file `….json`."""
    from residua.filters import from_json

    if not text.endswith(".json"):
        return from_json(_filter_fields(text))
    try:
        return from_json(_filter_fields(Path(text).read_text(encoding="utf-8").strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"filter must be a readable file, got {text} ({error})") from None
    except (ArgumentError, ArgumentTypeError) as error:
        raise ArgumentError(f"{text}: {error}") from None


def _filter_fields(text: str) -> dict[str, Any]:
    if text.lstrip()[:1] in ("{", "[") or "|" not in text:
        return parse_fields("filter", text)
    parts = [part.strip() for part in text.split("|")]
    if not all(parts):
        raise ArgumentError(f"filter must have a filter on both sides of each |, got {text!r}")
    return {"kind": "union", "filters": [parse_fields("filter", part) for part in parts]}


def both_of(eps: float | None, delta: float | None) -> tuple[float, float]:
    """Both, or an error that names the one that is missing."""
    if eps is None or delta is None:
        missing = "--eps" if eps is None else "--delta"
        raise ArgumentError(f"give --eps and --delta together, got no {missing}")
    return eps, delta


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


def chosen_filter(given: str | None, eps: float | None, delta: float | None, what: str) -> "Filter":
    """The filter of `--filter`; the pure one for `--eps`; the automatic one for both amounts.

    Raises `ArgumentError` if both or neither are given; `what` begins the second message.
    """
    if given is not None:
        if eps is not None or delta is not None:
            raise ArgumentError("give --filter, or --eps with or without --delta, got both")
        return parse_filter(given)
    if eps is None and delta is None:
        raise ArgumentError(f"{what}, got neither")
    if eps is not None and not delta:
        from residua.filters.additive.basic import PureFilter

        return PureFilter(eps)
    from residua.filters.union.auto import AutoFilter

    return AutoFilter(*both_of(eps, delta))


def flag(mechanism: type["Mechanism"]) -> str:
    """The flag of a kind."""
    return "--" + mechanism.kind.replace("_", "-")


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
            f"{checks.suggestion(kind, KINDS)}"
        )
    return KINDS[kind]


def parameters(cls: type["Mechanism"]) -> list[Parameter]:
    """The fields of a kind, in order."""
    from residua.mechanisms.codec import kind_schema, type_words

    schema = kind_schema(cls)
    return [
        Parameter(name, type_words(field), name in schema["required"], field.get("default"))
        for name, field in schema["properties"].items()
        if name != "kind"
    ]


def summary(cls: type["Mechanism"]) -> str:
    """What a kind is, in a line."""
    from residua.mechanisms.codec import kind_schema

    return str(kind_schema(cls)["description"])


def usage(cls: type["Mechanism"]) -> str:
    """The flag of a kind with what it takes."""
    takes = [
        f"{p.name}={FLAG[p.type]}" if p.required else f"[{p.name}={FLAG[p.type]}]"
        for p in parameters(cls)
    ]
    return f"{flag(cls)} {','.join(takes)}"


def shape(cls: type["Mechanism"]) -> str:
    """The JSON of a kind, with types where it has no default; null fields may be left out."""
    pairs = [f'"kind": "{cls.kind}"']
    pairs += [f'"{p.name}": {JSON[p.type] if p.required else p.shown}' for p in parameters(cls)]
    return "{" + ", ".join(pairs) + "}"
