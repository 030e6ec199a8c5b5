"""The pictures of `residua figures`, by name, in the order they are read in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from residua.figures.counterexamples import (
    GaussianBudgetsFail,
    NaturalFilterFails,
    gaussian_budgets,
    natural_filter_fails,
)
from residua.figures.gdp_residue import GdpResiduePicture, gdp_residue_panels
from residua.figures.natural_guarantee import GuaranteePicture, guarantee_by_rounds
from residua.figures.strategy import StrategyPicture, strategy_gain

if TYPE_CHECKING:
    from residua.figures.picture import Picture

__all__ = ["GALLERY", "Progress"]

Progress = Callable[[int, int], None]
"""Called with the steps of a picture that are done, and all of them."""

GALLERY: dict[str, Callable[[Progress], Picture]] = {
    GdpResiduePicture.name: lambda progress: gdp_residue_panels(),
    NaturalFilterFails.name: lambda progress: natural_filter_fails(),
    GaussianBudgetsFail.name: lambda progress: gaussian_budgets(),
    StrategyPicture.name: strategy_gain,
    GuaranteePicture.name: guarantee_by_rounds,
}
