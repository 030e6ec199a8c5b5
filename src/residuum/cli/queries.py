"""Queries as JSON on the command line.

A query is a flat object: `kind` names a constructor of the library, the other fields are its
arguments, and `count` (optional) composes it with itself. Whatever the object holds that the
constructor does not take is refused by name: a misspelt field must not fall back to a default.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import residuum
from residuum.errors import ArgumentError

if TYPE_CHECKING:
    from residuum.pld.value import Pld

__all__ = ["KINDS", "compose", "parse", "parse_side"]


class Form(NamedTuple):
    """One way of writing a kind: the fields it must have, and those it may have."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


KINDS: dict[str, tuple[Form, ...]] = {
    "gaussian": (Form(("sigma",), ("sensitivity",)), Form(("mu",))),
    "laplace": (Form(("scale",), ("sensitivity",)),),
    "pure_dp": (Form(("eps",)),),
    "approximate_dp": (Form(("eps", "delta")),),
}


def parse(text: str) -> "Pld":
    """The PLD of one query written as JSON."""
    fields = _read(text)
    kind = fields.pop("kind", None)
    if kind is None:
        raise ArgumentError(f'query must have a "kind", one of {_listed(KINDS)}, got {text}')
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(f"kind must be one of {_listed(KINDS)}, got {json.dumps(kind)}")
    count = fields.pop("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"count must be a whole number, 1 or more, got {json.dumps(count)}")
    _check_fields(kind, fields)
    constructor = getattr(residuum, kind)
    pld: Pld = constructor(**{name: _number(name, value) for name, value in fields.items()})
    return pld if count == 1 else count * pld


def parse_side(text: str) -> "Pld":
    """The PLD of one query, or of a JSON list of queries composed."""
    if not text.lstrip().startswith("["):
        return parse(text)
    try:
        items = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"queries must be a JSON list of objects, got {text[:60]}") from None
    if not items:
        raise ArgumentError("queries must hold at least one query, got []")
    return compose([json.dumps(item) for item in items])


def compose(texts: list[str]) -> "Pld":
    """The composition of several queries written as JSON."""
    total, *rest = [parse(text) for text in texts]
    for pld in rest:
        total = total + pld
    return total


def _read(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ArgumentError(
            f"query must be a JSON object, got {text} ({error.msg} at character {error.pos})"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"query must be a flat JSON object, got {text[:60]}...") from None
    if not isinstance(value, dict):
        raise ArgumentError(f"query must be a JSON object, got {text}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    for name, _ in pairs:
        if sum(name == other for other, _ in pairs) > 1:
            raise ArgumentError(f"each field must appear once, got {json.dumps(name)} twice")
    return fields


def _constant(name: str) -> NoReturn:
    raise ArgumentError(f"numbers must be finite, got {name}")


def _check_fields(kind: str, fields: dict[str, Any]) -> None:
    forms = KINDS[kind]
    known = {name for form in forms for name in (*form.required, *form.optional)}
    for name, value in fields.items():
        if name not in known:
            raise ArgumentError(
                f"{kind} takes {_forms(kind)}, got the unknown field "
                f"{json.dumps(name)}: {json.dumps(value)}"
            )
    given = set(fields)
    if not any(set(f.required) <= given <= {*f.required, *f.optional} for f in forms):
        raise ArgumentError(f"{kind} takes {_forms(kind)}, got {_listed(fields) or 'none'}")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"{name} must be a number, got {json.dumps(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(f"{name} must be finite, got {_shortened(value)}") from None


def _shortened(value: int | float) -> str:
    digits = str(value)
    return digits if len(digits) <= 20 else f"{digits[:8]}... ({len(digits)} digits)"


def _forms(kind: str) -> str:
    return " or ".join(
        " and ".join(form.required)
        + (f" (and optionally {', '.join(form.optional)})" if form.optional else "")
        for form in KINDS[kind]
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
