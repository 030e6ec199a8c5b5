"""Configurations and states of filters, as records hold them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from residua.records import canonical, digest
from residua.sizes import MOST_COMPONENTS
from residua.verify.descriptions.configurations import misconfigured

State = Mapping[str, Any]
_LONGEST = 1500
"""Characters of an amount: the square of the least `eps` has some seven hundred digits."""
_FIELDS: dict[str, frozenset[str]] = {
    "auto": frozenset({"filters", "parts"}),
    "target_residue": frozenset({"left", "reached", "reserves", "slack"}),
    "natural": frozenset({"loss", "rounds"}),
    "renyi_commit": frozenset({"left", "committed", "to", "inner"}),
    "union": frozenset({"parts"}),
    "plan": frozenset({"left", "variance"}),
}
"""The fields of states beside `kind` and `of`; where nothing is named, `left`."""
_LEFT = frozenset({"left"})

UNREADABLE = (
    ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
"""The errors of reading a field that is not of its type, or beyond any range."""


class Unreadable(Exception):
    """A state or configuration that is not what its kind should look like."""


def amount(value: Any) -> Fraction:
    """An exact amount: a decimal or `p/q`, in quotes, not negative."""
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isascii():
        raise Unreadable(f"an amount must be a string, got {value!r}")
    parts = value.split("/")
    plain = all(part.replace(".", "", len(parts) == 1).isdigit() for part in parts)
    if not plain or len(parts) > 2 or (len(parts) == 2 and int(parts[1]) == 0):
        raise Unreadable(f"an amount must be a decimal or p/q, got {value!r}")
    return Fraction(value)


def amounts(state: State, count: int) -> tuple[Fraction, ...]:
    """What is left of each amount."""
    left = state.get("left")
    if not isinstance(left, list) or len(left) != count:
        raise Unreadable(f"the state must hold {count} amounts, got {left!r}")
    return tuple(amount(value) for value in left)


def fingerprint(config: Mapping[str, Any]) -> str:
    """The `of` of states of this configuration."""
    return digest(canonical(config))[:16]


def belongs(config: Mapping[str, Any], state: Any) -> str | None:
    """None where a state is one of this configuration, else what is wrong."""
    if not isinstance(state, Mapping):
        return f"the state is not an object: {state!r}"
    kind = config["kind"]
    if state.get("kind") != kind:
        return f"the state is of kind {state.get('kind')!r}, the filter of {kind!r}"
    wanted = {"kind", "of", *_FIELDS.get(kind, _LEFT)}
    if set(state) != wanted:
        return f"a state of {kind} has the fields {sorted(wanted)}, got {sorted(state)}"
    if kind == "renyi_commit":
        return _halfway(state) or _stranger(config, state)
    if kind == "natural" and (type(state["rounds"]) is not int or state["rounds"] < 0):
        return f"rounds must be a count, got {state['rounds']!r:.60}"
    if kind == "union":
        return _stranger(config, state) or _wrong_parts(config["filters"], state["parts"])
    if kind == "auto":
        return _stranger(config, state) or _wrongly_open(state["filters"], state["parts"])
    return _stranger(config, state)


def _stranger(config: Mapping[str, Any], state: State) -> str | None:
    if state["of"] != fingerprint(config):
        return f"the state is one of another filter ({state['of']!r:.60})"
    return None


def _wrongly_open(filters: Any, parts: Any) -> str | None:
    """Why `auto` has neither no components nor right ones with a state for each, if so."""
    if filters == parts == []:
        return None
    if not isinstance(filters, list) or not 1 <= len(filters) <= MOST_COMPONENTS:
        return f"filters must be up to {MOST_COMPONENTS} filters, got {filters!r:.60}"
    for place, each in enumerate(filters):
        wrong = misconfigured(each)
        if wrong is not None:
            return f"component {place}: {wrong}"
    return _wrong_parts(filters, parts)


def _wrong_parts(filters: list[Any], parts: Any) -> str | None:
    """Why a union does not have a state for each live component, if so."""
    if not isinstance(parts, list) or len(parts) != len(filters):
        return f"parts must have a state or null for each of {len(filters)} components"
    if all(part is None for part in parts):
        return "no component of the union is live"
    for place, (component, part) in enumerate(zip(filters, parts, strict=True)):
        wrong = None if part is None else belongs(component, part)
        if wrong is not None:
            return f"component {place}: {wrong}"
    return None


def _halfway(state: State) -> str | None:
    """Why a state of `renyi_commit` is neither open nor committed, if so."""
    to, inner, committed = state["to"], state["inner"], state["committed"]
    if not (to is inner is None or (isinstance(to, Mapping) and isinstance(inner, Mapping))):
        return "a commit must name a filter and its state"
    if type(committed) is not bool or (to is not None and not committed):
        return f"committed cannot be {committed!r:.60} here"
    if committed and to is None and amount(state["left"]) != 0:
        return "something is left beside what was committed"
    return None
