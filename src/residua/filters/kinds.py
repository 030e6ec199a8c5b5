"""The kinds of filter, by the name they have in JSON; each is loaded when it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from residua.filters.base import Filter

KINDS = {
    "pure": ("filters.additive.pure", "PureFilter"),
    "basic": ("filters.additive.basic", "BasicFilter"),
    "renyi": ("filters.additive.renyi", "RenyiFilter"),
    "renyi_curve": ("filters.additive.renyi_curve", "RenyiCurveFilter"),
    "zcdp": ("filters.additive.zcdp", "ZcdpFilter"),
    "approximate_zcdp": ("filters.additive.approximate_zcdp", "ApproximateZcdpFilter"),
    "gdp": ("filters.additive.gdp", "GdpFilter"),
    "gdp_residue": ("filters.residue.gdp_residue", "GdpResidueFilter"),
    "approximate_gdp_residue": (
        "filters.residue.approximate_gdp_residue",
        "ApproximateGdpResidueFilter",
    ),
    "target_residue": ("filters.residue.target_residue", "TargetResidueFilter"),
    "renyi_commit": ("filters.potential.renyi_commit", "RenyiCommitFilter"),
    "plan": ("filters.potential.plan", "PlanFilter"),
    "menu": ("filters.potential.menu", "MenuFilter"),
    "auto": ("filters.union.auto", "AutoFilter"),
    "union": ("filters.union.union", "UnionFilter"),
    "natural": ("adversary.natural.filter", "NaturalFilter"),
    "additive_profile": ("adversary.natural.additive_profile", "AdditiveProfileFilter"),
}
"""The class of each kind and the module that it is in, from the top of the package."""


def filter_class(kind: str) -> type[Filter]:
    """The class of a kind, loaded by name: filters of higher layers are found, not imported."""
    module, name = KINDS[kind]
    made: type[Filter] = getattr(import_module(f"residua.{module}"), name)
    return made
