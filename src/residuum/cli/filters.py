"""Filters on the command line: JSON as everywhere, or in short, `gdp_residue mu=1`."""

from typing import TYPE_CHECKING, Annotated

import typer

from residuum.cli import queries
from residuum.errors import ArgumentError

if TYPE_CHECKING:
    from residuum.filters import Filter

__all__ = ["Delta", "Eps", "parse"]

Eps = Annotated[float | None, typer.Option(help="The eps of the budget.")]
Delta = Annotated[float | None, typer.Option(help="The delta of the budget.")]


def parse(text: str) -> "Filter":
    """The filter that is written as JSON or in short."""
    from residuum.filters import from_json

    return from_json(queries.described("filter", text))


def budget(eps: float | None, delta: float | None) -> tuple[float, float]:
    """Both, or an error that names the one that is missing."""
    if eps is None or delta is None:
        missing = "--eps" if eps is None else "--delta"
        raise ArgumentError(f"a budget must have --eps and --delta, got no {missing}")
    return eps, delta
