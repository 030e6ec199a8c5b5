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
    "renyi_commit": "RenyiCommitFilter",
}
"""The class of each kind; its module has the kind's name."""


def filter_class(kind: str) -> type[Filter]:
    """The class of a kind."""
    made: type[Filter] = getattr(import_module(f"residuum.filters.{kind}"), KINDS[kind])
    return made
