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
Range = tuple[float, float]

LEAST_SIZE, LARGEST_SIZE = 1e-9, 600.0
"""The range of `eps`, `mu`, and sensitivities and bounds divided by the noise, if not 0."""
_SIZE, _LENGTH = (LEAST_SIZE, LARGEST_SIZE), (1, LONGEST_PROVABLE_LIST)
RANGES: dict[str, Range] = {
    **dict.fromkeys(("eps", "mu", "xi", "losses"), _SIZE),
    **dict.fromkeys(("sensitivity / scale", "sensitivity / sigma", "bound / scale"), _SIZE),
    "sensitivity / sigma of subsampled_gaussian": (LEAST_SIZE, 20.0),
    "sensitivity / sigma of mixture_of_gaussians": (LEAST_SIZE, 20.0),
    "sensitivity / bound": (0.0, 2.0 - 1e-9),
    # Integer noise whose losses are written out, for want of a formula.
    "sensitivity of discrete_laplace": (1, 256),
    "sensitivity of discrete_gaussian": (1, 256),
    "sigma of discrete_gaussian": (1.0 / 128.0, 128.0),
    **dict.fromkeys(("rho", "epsilons"), (LEAST_SIZE**2, LARGEST_SIZE)),
    "rho under basic": (1e-8, LARGEST_SIZE),
    **dict.fromkeys(("delta", "mass_at_infinity"), (1e-300, 1.0 - 1e-9)),
    "masses": (1e-300, 1.0),
    "1 - noise_parameter": (1e-9, 1.0 - 1e-9),
    **dict.fromkeys(("sampling_rate", "probabilities", "sample_size / source_size"), (1e-9, 1.0)),
    **{f"the number of {each}": _LENGTH for each in ("losses", "orders", "alphas")},
    "the number of sensitivities": _LENGTH,
    "num_buckets": (2, LARGEST_PROVABLE_COUNT),
}
"""The ends between which a parameter, or each entry of a list, must lie if it is not 0, whatever
the kind, of one kind, or under one filter."""
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
    known = filter in _CLOSED_FORMS.get(kind, ())
    for name, given in [*f.items(), *_derived(f)]:
        if known and name in ("sensitivity", "sigma"):
            continue
        keys = f"{name} under {filter}", f"{name} of {kind}", name
        ends = next((RANGES[key] for key in keys if key in RANGES), None)
        if ends is not None:
            for value in given if isinstance(given, list) else [given]:
                yield name, value, *ends


def _derived(f: Description) -> Iterator[tuple[str, Any]]:
    """Sizes that several parameters make together."""
    for top, bottom in (
        *(("sensitivity", each) for each in ("scale", "sigma", "bound")),
        ("bound", "scale"),
        ("sample_size", "source_size"),
    ):
        if top in f and bottom in f:
            yield f"{top} / {bottom}", ratio(f[top], f[bottom])
    if "sensitivities" in f:
        yield "sensitivity / sigma", [ratio(each, f["sigma"]) for each in f["sensitivities"]]
    if "noise_parameter" in f:
        yield "1 - noise_parameter", 1.0 - f["noise_parameter"]
    for name in ("losses", "orders", "alphas", "sensitivities"):
        if name in f:
            yield f"the number of {name}", len(f[name])


def ratio(top: float, bottom: float) -> float:
    """The quotient, to a few ulps; the least float where it underflows, inf where it overflows."""
    try:
        quotient = top / bottom
    except OverflowError:
        return math.inf
    return quotient or (math.ulp(0.0) if top else 0.0)
