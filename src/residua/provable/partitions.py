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

from fractions import Fraction

from residua.provable.forms import LARGEST_SIZE, Description

POINTS = (
    *("pure", "basic", "menu", "auto", "approximate_zcdp", "renyi_commit", "plan"),
    "target_residue",
)
"""The filters that promise their `eps` and `delta`, if they have one."""
_PROMISES = {
    **dict.fromkeys(POINTS, "point"),
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


def unprovable_partition(
    parent: Description, child: Description, relation: str, beside: Description | None = None
) -> str | None:
    """Why a partition could not be proven to promise no more than its parent, or None.

    All are configurations of filters, `relation` is the budget's: under replace-one two partitions
    are compared with the parent together, `beside` being the other, and their promises must be
    known.
    """
    why = unpromised_partition(parent, child, relation)
    stated = _promise(parent) in ("zcdp", "renyi")
    if why is not None or not stated or (child == parent and beside is None):
        return why
    return _exceeds(parent, [child] if beside is None else [child, beside])


def unpromised_partition(parent: Description, child: Description, relation: str) -> str | None:
    """Why promises of these kinds cannot be compared, or None: what the verifier asks first."""
    if child == parent and relation != "replace-one":
        return None
    above, below = _promise(parent), _promise(child)
    if parent["kind"] == "union" and not all(each["kind"] in POINTS for each in parent["filters"]):
        return "no proof is known for partitions of a union unless each filter states eps and delta"
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


def _exceeds(parent: Description, parts: list[Description]) -> str | None:
    """Why Rényi divergences of partitions exceed those that the parent promises, if they may.

    A curve below the parent's is not enough: it does not bound divergences.
    """
    for order, most in _orders(parent):
        costs = [_divergence(part, order) for part in parts]
        total = sum((cost for cost in costs if cost is not None), Fraction(0))
        if None in costs or total > most:
            name = "rho of zCDP" if order is None else f"the divergence at order {float(order):g}"
            found = "unbounded" if None in costs else f"up to {float(total):.9g}"
            return f"{name} must be at most {float(most):.9g}, as the parent promises, got {found}"
    return None


def _orders(config: Description) -> list[tuple[Fraction | None, Fraction]]:
    """The orders of a Rényi filter with their bounds; None for all orders of a zCDP filter."""
    if config["kind"] == "zcdp":
        return [(None, _written(config["rho"]))]
    pairs = config["curve"] if "curve" in config else [(config["alpha"], config["rho"])]
    return [(_written(alpha), _written(rho)) for alpha, rho in pairs]


def _divergence(config: Description, order: Fraction | None) -> Fraction | None:
    """A bound on the divergence that a filter promises, per order for zCDP; None without one."""
    if config["kind"] in ("renyi", "renyi_curve"):
        found = [rho for alpha, rho in _orders(config) if order and alpha and alpha >= order]
        return min(found, default=None)
    scale = Fraction(1) if order is None else order
    if config["kind"] == "zcdp":
        return _written(config["rho"]) * scale
    config = config["budget"] if config["kind"] == "natural" else config
    if config.get("delta") or config.get("target_delta"):
        return None
    if "mu" in config:
        return _written(config["mu"]) ** 2 * scale / 2
    if "sigma" in config:
        return (_written(config["sensitivity"]) / _written(config["sigma"])) ** 2 * scale / 2
    if "eps" not in config:
        return None
    # eps-DP is eps²/2-zCDP, and its divergences are at most eps.
    eps = _written(config["eps"])
    return eps**2 / 2 if order is None else min(eps, eps**2 * scale / 2)


def _written(number: float) -> Fraction:
    return Fraction(repr(number))


def _promise(config: Description) -> str | None:
    """The form of what a filter promises; None where it is not known from the configuration."""
    kind = config["kind"]
    if kind == "additive_profile":
        return "point" if config.get("target_eps", LARGEST_SIZE + 1.0) <= LARGEST_SIZE else None
    if kind == "union":
        known = all(_promise(each) in ("point", "gaussian") for each in config["filters"])
        return "point" if known else None
    if kind == "natural":
        # The budget itself where losses add up, and for families that are totally ordered.
        budget, catalogue = config["budget"]["kind"], config.get("catalogue")
        free = isinstance(catalogue, str) or (catalogue is None and budget == "pure_dp")
        return _BUDGETS.get(budget) if free else None
    return _PROMISES.get(kind)
