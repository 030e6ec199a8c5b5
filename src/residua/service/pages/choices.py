"""Queries and filters that a form offers: kinds with a few named numbers, or any as JSON.

A field `laplace.scale` belongs to the kind `laplace`; those of other kinds are passed over.
Values go to the codecs as they are, so that errors are the library's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from residua.errors import ArgumentError
from residua.mechanisms.codec import parsed_json


@dataclass(frozen=True)
class Number:
    """One number of a kind."""

    name: str
    label: str
    usual: str


@dataclass(frozen=True)
class Choice:
    """A kind that a form offers."""

    kind: str
    label: str
    numbers: tuple[Number, ...]
    hint: str = ""


_SENSITIVITY = Number("sensitivity", "sensitivity", "1")
_EPS, _DELTA = Number("eps", "ε (eps)", "1"), Number("delta", "δ (delta)", "1e-6")

QUERIES = (
    Choice("gaussian", "Gaussian noise", (Number("sigma", "σ (sigma)", "4"), _SENSITIVITY)),
    Choice("laplace", "Laplace noise", (Number("scale", "scale", "4"), _SENSITIVITY)),
    Choice("discrete_gaussian", "Discrete Gaussian noise", (Number("sigma", "σ (sigma)", "4"),)),
    Choice("discrete_laplace", "Discrete Laplace noise", (Number("scale", "scale", "4"),)),
    Choice(
        "subsampled_gaussian",
        "Gaussian noise on a Poisson sample",
        (Number("sigma", "σ (sigma)", "2"), Number("sampling_rate", "sampling rate", "0.01")),
    ),
    Choice("pure_dp", "Anything ε-private", (_EPS,)),
    Choice("approximate_dp", "Anything (ε, δ)-private", (_EPS, _DELTA)),
    Choice("gdp", "Anything μ-Gaussian private", (Number("mu", "μ (mu)", "0.25"),)),
    Choice("zcdp", "Anything ρ-zero-concentrated private", (Number("rho", "ρ (rho)", "0.01"),)),
)
FILTERS = (
    Choice(
        "gdp_residue",
        "Gaussian residue",
        (Number("mu", "μ (mu)", "1"),),
        "Any query, charged by what it leaves of a Gaussian.",
    ),
    Choice(
        "target_residue",
        "Gaussian residue for (ε, δ)",
        (_EPS, _DELTA),
        "Never refuses before plain addition of ε does; Gaussian noise is charged exactly.",
    ),
    Choice("gdp", "Gaussian", (Number("mu", "μ (mu)", "1"),), "Charged by each query's own μ²."),
    Choice("pure", "Pure", (Number("eps", "ε (eps)", "1"),), "ε adds up."),
    Choice("basic", "Basic", (_EPS, _DELTA), "ε and δ add up."),
    Choice("zcdp", "Zero-concentrated", (Number("rho", "ρ (rho)", "0.5"),), "ρ adds up."),
    Choice(
        "auto",
        "Automatic, for (ε, δ)",
        (_EPS, _DELTA),
        "Adapts to the first query, which takes a while.",
    ),
)
JSON = "json"
"""The kind of whatever else there is."""
BOUNDS = f"zcdp {JSON}"
"""The kinds that may be bounds alone: the user must say under which relation they hold."""


def description_of(
    choices: tuple[Choice, ...], fields: Mapping[str, str], what: str
) -> dict[str, Any]:
    """The JSON description that a form's fields stand for."""
    kind = fields.get("kind", "")
    if kind == JSON:
        text = fields.get(JSON, "")
        found = parsed_json(what, text)
        if not isinstance(found, dict):
            raise ArgumentError(f"{what} must be a JSON object, got {text[:100]!r}")
        return found
    for choice in choices:
        if choice.kind == kind:
            given = {one.name: _number(one.name, fields.get(f"{kind}.{one.name}", ""))
                     for one in choice.numbers}  # fmt: skip
            return {"kind": kind, **given}
    raise ArgumentError(f"kind must be one that the form offers, got {kind[:100]!r}")


def fields_of(mechanism: Mapping[str, Any] | None) -> dict[str, str]:
    """The fields of a form that stand for a query; none where it offers no such kind."""
    if mechanism is None:
        return {}
    kind = mechanism.get("kind")
    for choice in QUERIES:
        if choice.kind == kind:
            names = [one.name for one in choice.numbers if one.name in mechanism]
            return {"kind": kind, **{f"{kind}.{name}": f"{mechanism[name]:g}" for name in names}}
    return {"kind": JSON, JSON: json.dumps(mechanism)}


def _number(name: str, text: str) -> float | int:
    try:
        value = float(text.strip().replace("_", " "))
    except ValueError:
        raise ArgumentError(f"{name} must be a number, got {text[:100]!r}") from None
    # Whole numbers are what some mechanisms ask for, and all take.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
