"""Every picture, one function each.

    curves, comparison   what commands draw of queries and of filters
    strategy_tree        any adversary as a tree
    gallery              the pictures of the documentation: each a frozen value with its numbers, a
                         caption built from them, and `draw`
    picture, style,
    lines                what these share

    rz.figures.gdp_residue_panels().draw()        Figure 1 of the paper
    rz.figures.natural_filter_fails().draw()      Figure 2
    rz.figures.gaussian_budgets().draw()          Figure 3

Nothing here touches global state: the caller saves or shows what is drawn.
"""

from residua.figures.counterexamples import gaussian_budgets, natural_filter_fails
from residua.figures.gdp_residue import gdp_residue_panels

__all__ = ["gaussian_budgets", "gdp_residue_panels", "natural_filter_fails"]
