"""Every picture, one function each.

    plots                what commands draw of queries and of filters
    strategy             any adversary as a tree
    gallery              the pictures of the documentation: each a frozen value with its numbers, a
                         caption built from them, and `draw`
    picture              what these share
    notebook             what notebooks show, without any library

    rz.figures.gdp_residue_panels().draw()        Figure 1 of the paper
    rz.figures.natural_filter_fails().draw()      Figure 2
    rz.figures.gaussian_budgets().draw()          Figure 3

Nothing here touches global state: the caller saves or shows what is drawn. Each picture is loaded
when it is first used, so that a notebook's small ones load nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from residua.figures.counterexamples import gaussian_budgets, natural_filter_fails
    from residua.figures.gallery import gdp_residue_panels

__all__ = ["gaussian_budgets", "gdp_residue_panels", "natural_filter_fails"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'residua.figures' has no attribute {name!r}")
    home = "gallery" if name == "gdp_residue_panels" else "counterexamples"
    return getattr(import_module(f"residua.figures.{home}"), name)
