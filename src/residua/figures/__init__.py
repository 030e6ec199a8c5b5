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

from residua.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
