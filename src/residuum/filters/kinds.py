"""The kinds of filter, by the name they have in JSON; each is loaded when it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from residuum.filters.filter import Filter

KINDS = {
    "pure": "PureFilter",
    "basic": "BasicFilter",
    "renyi": "RenyiFilter",
    "renyi_curve": "RenyiCurveFilter",
    "zcdp": "ZcdpFilter",
    "approximate_zcdp": "ApproximateZcdpFilter",
    "gdp": "GdpFilter",
    "gdp_residue": "GdpResidueFilter",
    "approximate_gdp_residue": "ApproximateGdpResidueFilter",
    "renyi_commit": "RenyiCommitFilter",
    "plan": "PlanFilter",
    "menu": "MenuFilter",
    "auto": "AutoFilter",
    "natural": "residuum.adversary.natural_filter:NaturalFilter",
    "additive_profile": "residuum.adversary.additive_profile:AdditiveProfileFilter",
}
"""The class of each kind; its module has the kind's name, or stands before the colon."""


def filter_class(kind: str) -> type[Filter]:
    """The class of a kind, loaded by name: filters of higher layers are found, not imported."""
    module, _, name = KINDS[kind].rpartition(":")
    made: type[Filter] = getattr(import_module(module or f"residuum.filters.{kind}"), name)
    return made
