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

LABELS = {
    "sigma": "σ (sigma)",
    "eps": "ε (eps)",
    "delta": "δ (delta)",
    "mu": "μ (mu)",
    "rho": "ρ (rho)",
    "sampling_rate": "sampling rate",
}
"""Of numbers; that of any other is its name."""


@dataclass(frozen=True)
class Choice:
    """A kind that a form offers."""

    kind: str
    label: str
    usual: Mapping[str, str]
    """Its numbers by name, as the form has them at first."""
    hint: str = ""

    @property
    def numbers(self) -> list[tuple[str, str, str]]:
        """Name, label and value of each number."""
        return [(name, LABELS.get(name, name), usual) for name, usual in self.usual.items()]


_BOTH = {"eps": "1", "delta": "1e-6"}
QUERIES = (
    Choice("gaussian", "Gaussian noise", {"sigma": "4", "sensitivity": "1"}),
    Choice("laplace", "Laplace noise", {"scale": "4", "sensitivity": "1"}),
    Choice("discrete_gaussian", "Discrete Gaussian noise", {"sigma": "4"}),
    Choice("discrete_laplace", "Discrete Laplace noise", {"scale": "4"}),
    Choice(
        "subsampled_gaussian",
        "Gaussian noise on a Poisson sample",
        {"sigma": "2", "sampling_rate": "0.01"},
    ),
    Choice("pure_dp", "Anything ε-private", {"eps": "1"}),
    Choice("approximate_dp", "Anything (ε, δ)-private", _BOTH),
    Choice("gdp", "Anything μ-Gaussian private", {"mu": "0.25"}),
    Choice("zcdp", "Anything ρ-zero-concentrated private", {"rho": "0.01"}),
)
FILTERS = (
    Choice(
        "gdp_residue",
        "Gaussian residue",
        {"mu": "1"},
        "Any query, charged by what it leaves of a Gaussian.",
    ),
    Choice(
        "target_residue",
        "Gaussian residue for (ε, δ)",
        _BOTH,
        "Never refuses before plain addition of ε does; Gaussian noise is charged exactly.",
    ),
    Choice("gdp", "Gaussian", {"mu": "1"}, "Charged by each query's own μ²."),
    Choice("pure", "Pure", {"eps": "1"}, "ε adds up."),
    Choice("basic", "Basic", _BOTH, "ε and δ add up."),
    Choice("zcdp", "Zero-concentrated", {"rho": "0.5"}, "ρ adds up."),
    Choice(
        "auto",
        "Automatic, for (ε, δ)",
        _BOTH,
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
            texts = {name: fields.get(f"{kind}.{name}", "") for name in choice.usual}
            return {"kind": kind, **{name: _number(name, text) for name, text in texts.items()}}
    raise ArgumentError(f"kind must be one that the form offers, got {kind[:100]!r}")


def fields_of(mechanism: Mapping[str, Any] | None) -> dict[str, str]:
    """The fields of a form that stand for a query; none where it offers no such kind."""
    if mechanism is None:
        return {}
    kind = mechanism.get("kind")
    for choice in QUERIES:
        if choice.kind == kind:
            names = [name for name in choice.usual if name in mechanism]
            return {"kind": kind, **{f"{kind}.{name}": f"{mechanism[name]:g}" for name in names}}
    return {"kind": JSON, JSON: json.dumps(mechanism)}


def _number(name: str, text: str) -> float | int:
    try:
        value = float(text.strip().replace("_", " "))
    except ValueError:
        raise ArgumentError(f"{name} must be a number, got {text[:100]!r}") from None
    # Whole numbers are what some mechanisms ask for, and all take.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
