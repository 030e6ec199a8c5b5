"""Filters on the command line: JSON as everywhere, or in short, `gdp_residue mu=1`.

A union in short is its components with bars between them: `pure eps=1 | gdp_residue mu=0.2`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import queries
from residua.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from residua.filters import Filter

__all__ = ["Delta", "Eps", "parse"]

Eps = Annotated[float | None, typer.Option(help="The eps of the budget.")]
Delta = Annotated[float | None, typer.Option(help="The delta of the budget.")]


def parse(text: str) -> "Filter":
    """The filter that is written as JSON or in short, or as JSON in a file `….json`."""
    from residua.filters import from_json

    if not text.endswith(".json"):
        return from_json(_described(text))
    try:
        return from_json(_described(Path(text).read_text(encoding="utf-8").strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"filter must be a file to read, got {text} ({error})") from None
    except (ArgumentError, ArgumentTypeError) as error:
        raise ArgumentError(f"{text}: {error}") from None


def _described(text: str) -> dict[str, Any]:
    if text.lstrip()[:1] in ("{", "[") or "|" not in text:
        return queries.described("filter", text)
    parts = [part.strip() for part in text.split("|")]
    if not all(parts):
        raise ArgumentError(f"filter must have a filter on either side of each |, got {text!r}")
    return {"kind": "union", "filters": [queries.described("filter", part) for part in parts]}


def budget(eps: float | None, delta: float | None) -> tuple[float, float]:
    """Both, or an error that names the one that is missing."""
    if eps is None or delta is None:
        missing = "--eps" if eps is None else "--delta"
        raise ArgumentError(f"a budget must have --eps and --delta, got no {missing}")
    return eps, delta
