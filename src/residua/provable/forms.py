"""The parts of queries, and the forms of these.

A leaf of a description (what is not made of other mechanisms) has one of these *forms*:

    gaussian   exactly a Gaussian
    finite     finitely many losses
    central    a density between two atoms: Laplace noise, the exponential mechanism
    mixture    mixtures of Gaussians, such as a Gaussian on a Poisson sample
    discrete   discrete Gaussian noise
    stated     a Rényi or zCDP bound, of which nothing else is known
    sampled    a Poisson sample of a finite or central one
    drawn      a sample of fixed size of a finite one
    nothing    no loss at all
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from residua.provable.ranges import Description

MOST_OUTCOMES = 1 << 11
"""Of the queries of a batch that is committed to, or of all but the Gaussians of a plan, together:
they are written out, for a query off the plan to be compared with."""

REPLACE = "replace-one"
_FINITE = (
    *("pure_dp", "approximate_dp", "randomized_response", "discrete_laplace"),
    *("from_atoms", "from_tradeoff"),
)


def leaves_of(description: Description, copies: int = 1) -> Iterator[tuple[Description, int]]:
    """The parts of a query, with how many copies of each."""
    waiting = [(description, copies)]
    while waiting:
        part, n = waiting.pop()
        if part["kind"] == "composed":
            waiting += [(each, n) for each in part["mechanisms"]]
        elif part["kind"] == "self_composed":
            waiting.append((part["mechanism"], n * part["count"]))
        else:
            yield part, n


def form_of(leaf: Description, relation: str) -> str | None:
    """The form of a leaf; None where there is no proof whatever the filter."""
    kind = leaf["kind"]
    if kind == "poisson_sampled":
        return _sampled(leaf, relation)
    if kind == "sampled_without_replacement":
        inner = leaf["mechanism"]
        plain = inner["kind"] not in ("from_atoms", "composed", "self_composed")
        return "drawn" if plain and form_of(inner, relation) == "finite" else None
    if kind in ("gaussian", "gdp"):
        return "gaussian"
    if kind in ("laplace", "exponential_mechanism", "truncated_laplace"):
        return "central"
    if kind == "report_noisy_max":
        return "central" if leaf["noise"] == "gumbel" else "finite"
    if kind == "subsampled_gaussian":
        return "mixture" if 0.0 < leaf["sampling_rate"] < 1.0 else "gaussian"
    if kind == "mixture_of_gaussians":
        return "mixture"
    if kind == "discrete_gaussian":
        return "discrete"
    if kind == "zcdp":
        return "stated" if leaf["rho"] > 0.0 else "finite"
    if kind == "rdp":
        return "stated"
    return "finite" if kind in _FINITE else None


def _sampled(leaf: Description, relation: str) -> str | None:
    inner = leaf["mechanism"]
    if inner["kind"] == "gaussian":
        return "mixture" if 0.0 < leaf["sampling_rate"] < 1.0 else "gaussian"
    if relation == REPLACE or inner["kind"] in ("truncated_laplace", "composed", "self_composed"):
        return None
    return "sampled" if form_of(inner, relation) in ("finite", "central") else None


def name_of(leaf: Description) -> str:
    """The name of a leaf in messages."""
    inner = leaf.get("mechanism")
    return f"{leaf['kind']} of {inner['kind']}" if isinstance(inner, Mapping) else str(leaf["kind"])


def has_too_many_outcomes(
    leaves: Iterable[tuple[Description, int]], most: int = MOST_OUTCOMES
) -> bool:
    """Whether queries have more outcomes together than are written out."""
    total = 1.0
    for leaf, copies in leaves:
        if form_of(leaf, "add-remove") != "finite":
            return True
        each = _outcomes(leaf)
        # Alike coins are counted by how many come up; anything else is multiplied out.
        total *= copies + 1.0 if each == 2 else min(float(each) ** min(copies, 64), math.inf)
        if not total <= most:
            return True
    return False


def _outcomes(leaf: Description) -> int:
    """At least how many outcomes a finite query has, those of no loss included."""
    lists = [len(leaf[name]) + 1 for name in ("losses", "alphas") if name in leaf]
    if lists:
        return max(lists)
    if leaf["kind"] == "discrete_laplace":
        return int(leaf["sensitivity"]) + 1
    sampled = leaf["kind"] == "randomized_response" or leaf.get("delta")
    return 3 if sampled else 2
