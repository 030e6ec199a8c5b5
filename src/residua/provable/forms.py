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

Its parameters must be within ranges for which proofs do not take too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from residua.sizes import LARGEST_PROVABLE_COUNT, LONGEST_PROVABLE_LIST

MOST_OUTCOMES = 1 << 11
"""The most outcomes that the queries of a committed batch, or all but the Gaussians of a plan, have
together: they are written out, for a query off the plan to be compared with."""

REPLACE = "replace-one"
_FINITE = (
    *("pure_dp", "approximate_dp", "randomized_response", "discrete_laplace"),
    *("from_atoms", "from_tradeoff"),
)


def leaves_of(description: Description, copies: int = 1) -> Iterator[tuple[Description, int]]:
    """The parts of a query in order, with how many copies of each."""
    waiting = [(description, copies)]
    while waiting:
        part, n = waiting.pop()
        if part["kind"] == "composed":
            waiting += [(each, n) for each in reversed(part["mechanisms"])]
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
        plain = inner["kind"] != "from_atoms" and not _is_composed(inner)
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
    if relation == REPLACE or inner["kind"] == "truncated_laplace" or _is_composed(inner):
        return None
    return "sampled" if form_of(inner, relation) in ("finite", "central") else None


def _is_composed(leaf: Description) -> bool:
    """Whether a loss has several parts: a bound with a `delta` has one that reveals everything."""
    bounded = leaf.get("eps") or leaf.get("xi")
    return leaf["kind"] in ("composed", "self_composed") or bool(bounded and leaf.get("delta"))


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


# -- ranges ----------------------------------------------------------------------------------


Description = Mapping[str, Any]

LEAST_SIZE, LARGEST_SIZE = 1e-9, 600.0
"""The range of `eps`, `mu`, and sensitivities and bounds divided by the noise, if not 0."""
LARGEST_MIXTURE = 20.0
"""The largest sensitivity divided by the noise, on a sample."""
LEAST_SHARE = 1e-9
"""The least probability or sampling rate that is not 0."""
LEAST_MASS = 1e-300
"""The least `delta` or mass of an atom that is not 0."""
LEAST_CONVERTED = 1e-8
"""The least `rho` of a zCDP bound under the filter `basic`, if it is not 0."""
LARGEST_SHIFT = 256
"""The largest sensitivity of integer noise whose losses are written out, for want of a formula."""
LARGEST_SIGMA = 128.0
"""The largest `sigma` of discrete Gaussian noise whose losses are written out."""

_NOISE = ("scale", "sigma")
"""What a sensitivity is divided by: the first of these that a mechanism has."""
_CLOSED_FORMS = {
    "discrete_laplace": ("pure", "basic"),
    "discrete_gaussian": ("renyi", "renyi_curve", "renyi_commit", "zcdp", "approximate_zcdp"),
}
"""The filters under which the cost of integer noise is known without its losses."""


def out_of_range(leaf: Description, filter: str | None = None) -> str | None:
    """Which parameter of a mechanism is too extreme for a proof, or None.

    `filter` is the kind of the filter that charges for it, if that is known.
    """
    for name, value, low, high in size_ranges(leaf, filter):
        if value and not low <= abs(value) <= high:
            return (
                f"{name} of {leaf['kind']} must be 0 or between {low:g} and {high:g}, got {value!r}"
            )
    inner = leaf.get("mechanism")
    return None if inner is None else out_of_range(inner)


def size_ranges(
    f: Description, filter: str | None = None
) -> Iterator[tuple[str, float, float, float]]:
    """A parameter that must be 0 or within a range: name, value and ends."""
    kind = f["kind"]
    listed = filter not in _CLOSED_FORMS.get(kind, ())
    most = (
        LARGEST_MIXTURE if kind in ("subsampled_gaussian", "mixture_of_gaussians") else LARGEST_SIZE
    )
    if "sensitivity" in f:
        noise = next(name for name in _NOISE if name in f)
        yield f"sensitivity / {noise}", ratio(f["sensitivity"], f[noise]), LEAST_SIZE, most
    if kind in ("discrete_laplace", "discrete_gaussian") and listed:
        yield "sensitivity", f["sensitivity"], 1, LARGEST_SHIFT
    if kind == "discrete_gaussian" and listed:
        yield "sigma", f["sigma"], 1.0 / LARGEST_SIGMA, LARGEST_SIGMA
    if kind == "truncated_laplace":
        yield "bound / scale", ratio(f["bound"], f["scale"]), LEAST_SIZE, LARGEST_SIZE
        reach = ratio(f["sensitivity"], f["bound"])
        yield "sensitivity / bound", reach, 0.0, 2.0 - LEAST_SHARE
    if kind == "mixture_of_gaussians":
        for each in f["sensitivities"]:
            yield "sensitivity / sigma", ratio(each, f["sigma"]), LEAST_SIZE, most
    for name in ("eps", "mu", "xi", "rho"):
        if name in f:
            least = LEAST_SIZE**2 if name == "rho" else LEAST_SIZE
            if name == "rho" and filter == "basic":
                least = LEAST_CONVERTED
            yield name, f[name], least, LARGEST_SIZE
    for name in ("delta", "mass_at_infinity"):
        if name in f:
            yield name, f[name], LEAST_MASS, 1.0 - LEAST_SHARE
    if "sampling_rate" in f:
        yield "sampling_rate", f["sampling_rate"], LEAST_SHARE, 1.0
    if "noise_parameter" in f:
        yield "1 - noise_parameter", 1.0 - f["noise_parameter"], LEAST_SHARE, 1.0 - LEAST_SHARE
    for name, least in (("probabilities", LEAST_SHARE), ("masses", LEAST_MASS)):
        for each in f.get(name, ()):
            yield name, each, least, 1.0
    for each in f.get("losses", ()):
        yield "losses", each, LEAST_SIZE, LARGEST_SIZE
    for each in f.get("epsilons", ()):
        yield "epsilons", each, LEAST_SIZE**2, LARGEST_SIZE
    for name in ("losses", "orders", "alphas", "sensitivities"):
        if name in f:
            yield f"the number of {name}", len(f[name]), 1, LONGEST_PROVABLE_LIST
    if kind == "sampled_without_replacement":
        rate = ratio(f["sample_size"], f["source_size"])
        yield "sample_size / source_size", rate, LEAST_SHARE, 1.0
    if kind == "randomized_response":
        yield "num_buckets", f["num_buckets"], 2, LARGEST_PROVABLE_COUNT


def ratio(top: float, bottom: float) -> float:
    """The quotient, to a few ulps; the least float where it underflows, inf where it overflows."""
    try:
        quotient = top / bottom
    except OverflowError:
        return math.inf
    return quotient or (math.ulp(0.0) if top else 0.0)
