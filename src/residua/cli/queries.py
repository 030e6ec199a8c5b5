"""Queries on the command line, read as mechanisms.

A query is JSON, as everywhere (`mechanisms/codec.py`), or the same in short: `laplace scale=2`.
Beside what the codec takes, a query may carry `count` for `steps`, and a Gaussian may be given by
`mu`, which is `gdp`.
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.mechanisms import Mechanism

__all__ = ["compose", "described", "parse", "parse_list", "parse_side"]

_SHOWN = 60
_SHORT = re.compile(r"\s*([A-Za-z][\w-]*)(?:\s+(.*))?", re.DOTALL)


def parse(text: str) -> "Mechanism":
    """The mechanism of one query, written as JSON or in short."""
    return _made(described("query", text))


def described(name: str, text: str) -> dict[str, Any]:
    """The fields of one description, written as JSON or in short."""
    if text.lstrip()[:1] not in ("{", "["):
        short = _SHORT.fullmatch(text)
        if short is None:
            raise ArgumentError(
                f"{name} must be a JSON object, or a kind with name=value, got {_shortened(text)}"
            )
        kind = short[1].replace("-", "_")
        return {"kind": kind, **_fields(kind, short[2] or "")}
    value = _read(text, name)
    if not isinstance(value, dict):
        raise ArgumentError(f"{name} must be a JSON object, got {_shortened(text)}")
    return value


def parse_list(texts: Sequence[str]) -> list["Mechanism"]:
    """Several queries in order, each one query or a list of them."""
    return [one for text in texts for one in _several(text)]


def parse_side(text: str) -> "Mechanism":
    """The mechanism of one query, or of a JSON list of queries composed."""
    return _together(_several(text))


def _several(text: str) -> list["Mechanism"]:
    if not text.lstrip().startswith("["):
        return [parse(text)]
    items = _read(text)
    if not items:
        raise ArgumentError("queries must hold at least one query, got []")
    for item in items:
        if not isinstance(item, dict):
            raise ArgumentError(f"queries must be JSON objects, got {_shortened(json.dumps(item))}")
    return [_made(item) for item in items]


def compose(texts: Sequence[str]) -> "Mechanism":
    """The composition of several queries, each one query or a list of them."""
    return _together([parse_side(text) for text in texts])


def _together(mechanisms: Sequence["Mechanism"]) -> "Mechanism":
    from residua.mechanisms import Composed

    return mechanisms[0] if len(mechanisms) == 1 else Composed(tuple(mechanisms))


def _made(given: dict[str, Any]) -> "Mechanism":
    from residua.mechanisms import KINDS, SelfComposed, from_json

    fields = dict(given)
    kind = fields.get("kind")
    if kind == "gaussian" and "mu" in fields and "sigma" not in fields:
        fields["kind"] = "gdp"
    own = isinstance(kind, str) and kind in KINDS and _has_count(KINDS[kind])
    if own or "count" not in fields:
        return from_json(fields)
    count = fields.pop("count")
    if "steps" in fields:
        raise ArgumentError(
            f"query must have steps or count, got both: {fields['steps']!r} and {count!r}"
        )
    made = from_json(fields)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"count must be a whole number, 1 or more, got {json.dumps(count)}")
    return made if count == 1 else SelfComposed(made, count)


def _has_count(cls: type["Mechanism"]) -> bool:
    return any(field.name == "count" for field in dataclasses.fields(cls))


# -- JSON -----------------------------------------------------------------------------------


def _read(text: str, name: str = "query") -> Any:
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentError(
            f"{name} must be a JSON object, got {_shortened(text)} "
            f"({error.msg} at character {error.pos})"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{name} must be a plain JSON object, got {_shortened(text)}") from None


def _loads(text: str) -> Any:
    # NaN passes here, so that the mechanism can refuse it by the name of its field.
    return json.loads(text, object_pairs_hook=_once, parse_constant=float)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"each field must appear once, got {json.dumps(name)} twice")
    return dict(pairs)


# -- in short -------------------------------------------------------------------------------


def _fields(kind: str, text: str) -> dict[str, Any]:
    pairs = []
    for part in _parts(text):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ArgumentError(f"{kind} takes name=value, separated by commas, got {part}")
        pairs.append((name, _value(name, value)))
    return _once(pairs)


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
    try:
        return _loads(text)
    except json.JSONDecodeError as error:
        if text[:1] in ("{", "[", '"'):
            raise ArgumentError(
                f"{name} must be valid JSON, got {_shortened(text)} ({error.msg})"
            ) from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{name} must be of ordinary size, got {_shortened(text)}") from None
    if ";" in text:
        return [_value(name, item.strip()) for item in text.split(";") if item.strip()]
    try:
        return float(text) if "_" not in text else text
    except ValueError:
        return text


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
