"""What `residua.figures` offers: `__init__.py` reads this file, and so do type checkers."""

from residua.figures.counterexamples import (
    gaussian_budgets as gaussian_budgets,
    natural_filter_fails as natural_filter_fails,
)
from residua.figures.gallery import gdp_residue_panels as gdp_residue_panels
