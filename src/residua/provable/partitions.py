"""Which partitions can be proven to promise no more than the budget that they are a part of.

What a filter promises has one of these forms:

    point      (eps, delta)-DP
    gaussian   a Gaussian, with or without a delta
    zcdp       a zCDP bound
    renyi      Rényi bounds

Points and Gaussians are compared by their curves. Rényi and zCDP bounds are compared with each
other as they are written, and imply nothing else that could be proven up to the last digit.
"""

from __future__ import annotations

from residua.provable import LARGEST_SIZE, Description

_POINTS = ("pure", "basic", "menu", "auto", "approximate_zcdp", "renyi_commit", "plan")
_PROMISES = {
    **dict.fromkeys(_POINTS, "point"),
    **dict.fromkeys(("gdp", "gdp_residue", "approximate_gdp_residue"), "gaussian"),
    "zcdp": "zcdp",
    **dict.fromkeys(("renyi", "renyi_curve"), "renyi"),
}
_BUDGETS = {
    "pure_dp": "point",
    "approximate_dp": "point",
    "gaussian": "gaussian",
    "gdp": "gaussian",
}


def unprovable_partition(parent: Description, child: Description, relation: str) -> str | None:
    """Why a partition could not be proven to promise no more than its parent, or None.

    Both are configurations of filters, `relation` is the budget's: under replace-one two partitions
    are compared with the parent together, so that their promises must be known.
    """
    if child == parent and relation != "replace-one":
        return None
    above, below = _promise(parent), _promise(child)
    for config, form, word in ((parent, above, "of the parent"), (child, below, "of a partition")):
        if form is None:
            return f"no proof is known for what the filter {config['kind']} {word} promises"
    stated = below in ("zcdp", "renyi")
    if stated and (above not in ("zcdp", "renyi") or (above == "zcdp" and below == "renyi")):
        return (
            f"no proof is known that the bound of the filter {child['kind']} lies below the"
            f" promise of the filter {parent['kind']}"
        )
    return None


def _promise(config: Description) -> str | None:
    """The form of what a filter promises; None where it is not known from the configuration."""
    kind = config["kind"]
    if kind == "additive_profile":
        return "point" if config.get("target_eps", LARGEST_SIZE + 1.0) <= LARGEST_SIZE else None
    if kind == "natural":
        # The budget itself where losses add up, and for families that are totally ordered.
        budget, catalogue = config["budget"]["kind"], config.get("catalogue")
        free = isinstance(catalogue, str) or (catalogue is None and budget == "pure_dp")
        return _BUDGETS.get(budget) if free else None
    return _PROMISES.get(kind)
