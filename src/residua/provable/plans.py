"""Plans: what is on them, and which queries are proven with what is."""

from __future__ import annotations

import math
from fractions import Fraction

from residua.provable.forms import REPLACE, form_of, has_too_many_outcomes, leaves_of, name_of
from residua.provable.ranges import Description, ratio

MOST_PLANNED, LARGEST_SHARE = 100_000, 8000.0
"""Of what is not Gaussian on a plan: how many, and `eps` divided by their total variation. They are
composed on a lattice, which must be fine enough for each and reach beyond `eps`."""
MOST_COMPOSED = 1 << 14
"""Of outcomes of a plan that are written out, and need no lattice."""


def planned(config: Description) -> list[tuple[Description, int]]:
    """The parts of a plan, with how many copies of each."""
    found: list[tuple[Description, int]] = []
    for entry in config["plan"]:
        query, n = (entry["mechanism"], entry["repeat"]) if "repeat" in entry else (entry, 1)
        found += leaves_of(query, n)
    return found


def off_plan(
    leaves: list[tuple[Description, int]], plan: list[tuple[Description, int]], relation: str
) -> list[tuple[Description, int]]:
    """Less what is on the plan, or smaller than that, and Gaussians, which are charged exactly."""

    def proven(leaf: Description) -> bool:
        form = form_of(leaf, relation)
        if form == "mixture" and relation == REPLACE:
            return False  # a plan is one under add-remove
        return form == "gaussian" or any(_is_smaller(leaf, each) for each, _ in plan)

    return [(leaf, n) for leaf, n in leaves if not proven(leaf)]


def _is_smaller(leaf: Description, planned: Description) -> bool:
    """Whether a mechanism is known to lose no more than another by their parameters alone."""
    if leaf == planned:
        return True
    ours, theirs = _parameters(leaf), _parameters(planned)
    if ours is None or theirs is None or ours[0] != theirs[0]:
        return False
    return all(a <= b for a, b in zip(ours[1], theirs[1], strict=True))


def _parameters(leaf: Description) -> tuple[str, tuple[Fraction, ...]] | None:
    """Parameters with which the loss of a mechanism grows; None for other kinds."""
    if leaf["kind"] == "pure_dp":
        return "pure_dp", (Fraction(leaf["eps"]),)
    if leaf["kind"] == "laplace":
        return "laplace", (Fraction(leaf["sensitivity"]) / Fraction(leaf["scale"]),)
    sampled = leaf["kind"] == "poisson_sampled" and leaf["mechanism"]["kind"] == "gaussian"
    if sampled or leaf["kind"] == "subsampled_gaussian":
        noise = leaf["mechanism"] if sampled else leaf
        size = Fraction(noise["sensitivity"]) / Fraction(noise["sigma"])
        return "subsampled_gaussian", (Fraction(leaf["sampling_rate"]), size)
    return None


def distance(leaf: Description) -> float | None:
    """About the total variation of what is on a plan; None where that is not known."""
    kind = leaf["kind"]
    if kind == "pure_dp":
        return math.tanh(leaf["eps"] / 2.0)
    if kind == "laplace":
        return -math.expm1(-ratio(leaf["sensitivity"], leaf["scale"]) / 2.0)
    if kind == "subsampled_gaussian":
        size = ratio(leaf["sensitivity"], leaf["sigma"])
        return float(leaf["sampling_rate"] * math.erf(size / math.sqrt(8.0)))
    return None


def unprovable_composition(config: Description) -> str | None:
    """Why the composition of a plan could not be proven to be within `(eps, delta)`, or None."""
    rest = [(leaf, n) for leaf, n in planned(config) if form_of(leaf, "add-remove") != "gaussian"]
    copies = sum(n for _, n in rest)
    if copies > MOST_PLANNED:
        return f"plan: at most {MOST_PLANNED} queries that are not Gaussian, got {copies}"
    if copies == 1 or not has_too_many_outcomes(rest, MOST_COMPOSED):
        return None
    for leaf, _ in rest:
        size = distance(leaf)
        if size is not None and config["eps"] > LARGEST_SHARE * size:
            return (
                f"plan: eps / total variation of {name_of(leaf)} must be at most {LARGEST_SHARE:g},"
                f" got {config['eps'] / size:.6g}"
            )
    return None
