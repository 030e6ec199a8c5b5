"""Which queries can be proven: the kinds, the ranges of their parameters, and under which filters.

Whatever a ledger admits its verifier must be able to decide. So a ledger rejects, before anything
is decided or recorded, what lies outside: parameters so extreme that proofs take too long, and
kinds of loss for which a filter's steps have no proof. The verifier reads the same rule, and proves
nothing that it rejects. Standard library only; descriptions are plain data, in their full form.

Plans: what is on them, and which queries are proven with what is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from residua.provable.forms import (
    LARGEST_SIZE,
    LEAST_SIZE,
    MOST_OUTCOMES,
    REPLACE,
    Description,
    Range,
    form_of,
    has_too_many_outcomes,
    leaves_of,
    name_of,
    out_of_range,
    ratio,
    size_ranges,
)
from residua.sizes import LARGEST_PROVABLE_COUNT, LONGEST_PROVABLE_LIST, oversized

LARGEST_TWO_SIDED = 8.0
"""The largest sensitivity, divided by the noise, of a sample under replace-one for menus and
commits: both sides are mixtures there, and their curve is evaluated."""
MOST_COPIES = 1000
"""The most copies of what is not Gaussian in one query on a Gaussian budget."""
GDP_COPIES: dict[str, tuple[int, Range]] = {
    "central": (8, (1e-4, 8.0)),
    "pure_dp": (64, (0.0, 100.0)),
}
"""Under the filter `gdp`: the most copies of Laplace noise and the like, or of a pure-DP query, in
one query; the least size of each, and the largest sum of their sizes."""
LARGEST_RATIO, LARGEST_TOTAL = 2.0, 30.0
"""Under the residue filters, for several queries that are not Gaussian: the largest ratio of their
sizes, and the largest sum."""

LARGEST_REACH = 100.0
"""The largest Rényi order times sensitivity divided by noise, for mixtures of Gaussians."""
FILTER_RANGES: dict[str, Range] = {
    "eps": (LEAST_SIZE, LARGEST_SIZE),
    "mu": (LEAST_SIZE, 60.0),
    "rho": (LEAST_SIZE**2, 1e6),
    **dict.fromkeys(("delta", "delta_conversion", "target_delta"), (1e-30, 1.0)),
    "rounds": (1, 1000),
    "alpha - 1": (1e-4, 1e6),
    "order - 1": (1e-4, 1e12),
    **{
        f"the length of {each}": (1, LONGEST_PROVABLE_LIST)
        for each in ("curve", "plan", "menu", "expect", "catalogue")
    },
}
"""The ends between which a parameter of a filter must lie if it is not 0."""

_RENYI = ("renyi", "renyi_curve", "renyi_commit")
_ZCDP = ("zcdp", "approximate_zcdp")
_GAUSSIAN = ("gdp", "gdp_residue", "approximate_gdp_residue", "target_residue")
_OPENED: tuple[Description, ...] = (
    {"kind": "target_residue", "reserve": 0.1, "slack": 0.1}, {"kind": "pure"},
    {"kind": "renyi_commit", "alpha": 1.0},
)  # fmt: skip
"""The possible components of `auto`, whatever the first query is."""
_SIDED = ("from_atoms", "from_tradeoff", "poisson_sampled", "sampled_without_replacement")
"""Kinds whose losses need not be symmetric."""
_EVERYWHERE = {"nothing", "gaussian", "finite", "central"}
_SYMMETRIC_OR_NOT = _EVERYWHERE | {"mixture", "sampled", "drawn"}
_FORMS: dict[str, set[str]] = {
    **dict.fromkeys(("plan", "natural", "additive_profile"), _EVERYWHERE),
    **dict.fromkeys(("planned", "commit"), _EVERYWHERE | {"mixture"}),
    **dict.fromkeys(_GAUSSIAN, _SYMMETRIC_OR_NOT),
    **dict.fromkeys(("pure", "menu"), _SYMMETRIC_OR_NOT | {"discrete"}),
    **dict.fromkeys(("basic", *_RENYI, *_ZCDP), _SYMMETRIC_OR_NOT | {"discrete", "stated"}),
}
"""The forms whose steps can be proven, by the kind of the filter; `planned` is on a plan."""


def unprovable(description: Description, config: Description, relation: str) -> str | None:
    """Why a step with this query could not be proven, or None.

    `config` is the filter's, `relation` the budget's. A commit to a filter is not a query.
    """
    leaves, kind = [], config["kind"]
    if kind in ("union", "auto"):
        filters = config["filters"] if kind == "union" else _OPENED
        return _under_any(description, filters, relation)
    for leaf, copies in leaves_of(description):
        wrong = out_of_range(leaf, kind)
        if wrong is None and not copies <= LARGEST_PROVABLE_COUNT:
            wrong = f"copies in one query must be at most {LARGEST_PROVABLE_COUNT}, got {copies}"
        if wrong is not None:
            return wrong
        leaves.append((leaf, copies))
        if len(leaves) > LONGEST_PROVABLE_LIST:
            return f"at most {LONGEST_PROVABLE_LIST} mechanisms can be composed in one query"
    if kind == "plan":
        leaves = off_plan(leaves, planned(config), relation)
    allowed = _FORMS.get(kind, set()) | ({"discrete"} if _has_reserve(config) else set())
    for leaf, _ in leaves:
        form = form_of(leaf, relation)
        if form is None:
            return f"no proof is known for {name_of(leaf)} under {relation}"
        if form == "mixture" and kind in _RENYI and _reach(leaf, config) > LARGEST_REACH:
            return (
                f"alpha times sensitivity / sigma of {name_of(leaf)} must be at most"
                f" {LARGEST_REACH:g} under the filter {kind}"
            )
        if form == "mixture" and relation == REPLACE and kind in ("menu", "commit"):
            size = _largest_ratio(leaf)
            if size > LARGEST_TWO_SIDED:
                return (
                    f"sensitivity / sigma of {name_of(leaf)} must be at most {LARGEST_TWO_SIDED:g}"
                    f" under {relation} and the filter {kind}, got {size!r}"
                )
        if form not in allowed or _exception(leaf, form, kind):
            return f"no proof is known for {name_of(leaf)} under the filter {kind}"
    what = _together(leaves, config, relation)
    if what is not None:
        return f"no proof is known for compositions of {what} under the filter {kind}"
    return None


def _under_any(
    description: Description, filters: Sequence[Description], relation: str
) -> str | None:
    """Why no component's step could be proven; a union takes what one of them takes."""
    found = [unprovable(description, each, relation) for each in filters]
    return None if None in found else found[0]


def unprovable_commit(to: Any, relation: str) -> str | None:
    """Why a commit could not be proven: to a filter, or to a list of queries as one batch."""
    if not isinstance(to, list):
        kind = to.get("kind") if isinstance(to, Mapping) else None
        known = kind in ("pure", "gdp", "gdp_residue")
        return None if known else f"no proof is known for a commit to the filter {kind!r:.60}"
    batch = to[0] if len(to) == 1 else {"kind": "composed", "mechanisms": to}
    wrong = unprovable(batch, {"kind": "commit"}, relation)
    if wrong is not None:
        return wrong
    forms = [form_of(leaf, relation) for leaf, _ in leaves_of(batch)]
    copies = sum(n for _, n in leaves_of(batch))
    if copies > 1 and (set(forms) not in ({"gaussian"}, {"finite"}) or copies > MOST_COPIES):
        return "no proof is known for a commit to several queries that are not all of one form"
    if copies > 1 and set(forms) == {"finite"} and has_too_many_outcomes(leaves_of(batch)):
        return f"the outcomes of a batch must be at most {MOST_OUTCOMES} together, to commit to it"
    return None


def unprovable_filter(config: Description) -> str | None:
    """Why steps under a filter could not be proven whatever is asked, or None."""
    kind, wrong = config["kind"], oversized(config)
    if wrong is not None:
        return f"the filter is too large: {wrong}"
    for place, each in enumerate(config["filters"] if kind == "union" else ()):
        wrong = unprovable_filter(each)
        if wrong is not None:
            return f"filters[{place}]: {wrong}"
    for name, value in _filter_sizes(config):
        low, high = FILTER_RANGES[name]
        if value and not low <= value <= high:
            what = f"{name} of {kind}"
            return f"{what} must be 0 or between {low:g} and {high:g}, got {value!r}"
    for name in ("menu", "expect"):
        for each in config.get(name, ()):
            wrong = unprovable(each, {"kind": kind}, "add-remove")
            if wrong is not None:
                return f"{name}: {wrong}"
    if kind == "plan":
        return _unprovable_plan(config)
    return _unprovable_natural(config) if kind == "natural" else None


def _unprovable_plan(config: Description) -> str | None:
    """Why what is planned could not be proven, or None."""
    for leaf, _ in planned(config):
        wrong = unprovable(leaf, {"kind": "planned"}, "add-remove")
        if wrong is not None:
            return f"plan: {wrong.replace('filter planned', 'filter plan')}"
    return unprovable_composition(config)


def _filter_sizes(f: Description) -> Iterator[tuple[str, float]]:
    """The parameters of a filter that have a range."""
    for name, given in f.items():
        if name == "curve":
            for alpha, rho in given:
                yield from (("alpha - 1", alpha - 1.0), ("rho", rho))
        if name in ("alpha", "order"):
            yield f"{name} - 1", given - 1.0
        elif name in FILTER_RANGES:
            yield name, given
        if isinstance(given, list) and f"the length of {name}" in FILTER_RANGES:
            yield f"the length of {name}", len(given)


def _unprovable_natural(config: Description) -> str | None:
    """What a natural filter keeps of a catalogue is known where compositions are ordered."""
    wrong = out_of_range_anywhere(config["budget"])
    catalogue = config.get("catalogue")
    if wrong is not None or not isinstance(catalogue, list):
        return wrong
    for each in catalogue:
        wrong = wrong or out_of_range_anywhere(each)
    if wrong is not None or config["budget"]["kind"] == "pure_dp":
        return wrong
    leaves = [leaf for each in catalogue for leaf, _ in leaves_of(each)]
    if all(leaf["kind"] in ("gaussian", "gdp") for leaf in leaves):
        return None
    if any(form_of(leaf, "") == "stated" for leaf in leaves):
        return "no proof is known for a Rényi or zCDP bound in the catalogue of a natural filter"
    if all(leaf == leaves[0] for leaf in leaves):
        return None
    return "no proof is known for a catalogue of different queries under a natural filter"


def out_of_range_anywhere(description: Description) -> str | None:
    """The same as `out_of_range` for everything that a query is composed of."""
    found = (out_of_range(leaf) for leaf, _ in leaves_of(description))
    return next((wrong for wrong in found if wrong is not None), None)


def _exception(leaf: Description, form: str, kind: str) -> bool:
    """Whether a form that can be proven otherwise has no proof here."""
    if form == "sampled" and kind in _ZCDP:
        return form_of(leaf["mechanism"], "") == "central"
    if form == "stated" and kind == "basic":
        return bool(leaf["kind"] == "rdp")
    if form == "stated" and kind in _ZCDP:
        return bool(leaf["kind"] == "rdp" or leaf["xi"] > 0.0)
    if leaf["kind"] == "truncated_laplace":
        return kind in ("natural", "additive_profile", "commit")
    return kind in ("plan", "planned", "natural") and leaf["kind"] in _SIDED


def _reach(leaf: Description, config: Description) -> float:
    """The largest Rényi order of a filter times the size of a mixture of Gaussians."""
    orders = [alpha for alpha, _ in config["curve"]] if "curve" in config else [config["alpha"]]
    return float(max(orders) * _largest_ratio(leaf))


def _largest_ratio(leaf: Description) -> float:
    """The largest sensitivity of a mixture of Gaussians divided by its noise."""
    noise = leaf["mechanism"] if leaf["kind"] == "poisson_sampled" else leaf
    return max((value for name, value, *_ in size_ranges(noise) if "/" in name), default=0.0)


def _has_reserve(config: Description) -> bool:
    """Whether a filter keeps a reserve for heavy tails and compositions, and slack beside it."""
    return bool(config.get("reserve") and config.get("slack"))


def _together(
    leaves: list[tuple[Description, int]], config: Description, relation: str
) -> str | None:
    """Why what is provable query by query is not provable as one, or None."""
    kind = config["kind"]
    rest = [(leaf, n) for leaf, n in leaves if n and form_of(leaf, relation) != "gaussian"]
    if len(rest) == 0 or (len(rest) == 1 and rest[0][1] == 1 and len(leaves) == 1):
        return None
    forms = {form_of(leaf, relation) for leaf, _ in rest}
    sided = any(leaf["kind"] in _SIDED and form_of(leaf, relation) != "mixture" for leaf, _ in rest)
    if kind in _GAUSSIAN:
        if sided or (kind == "approximate_gdp_residue" and "mixture" in forms):
            return "queries that are not symmetric"
        if _has_reserve(config):
            return None
        if sum(n for _, n in rest) > MOST_COPIES:
            return f"more than {MOST_COPIES} queries that are not Gaussian"
        if kind == "gdp":
            return _below_one_gaussian(rest, len(leaves) - len(rest))
        return _on_a_residue(rest)
    if kind == "menu" and "discrete" in forms:
        return "discrete Gaussian noise"
    if kind == "basic" and "discrete" in forms and len(leaves) > 1:
        return "discrete Gaussian noise and other queries"
    if kind == "basic" and "stated" in forms and (len(forms) > 1 or len(rest) < len(leaves)):
        return "zCDP bounds and other queries"
    if kind == "plan":
        return "queries that are not Gaussian and not on the plan"
    if kind == "additive_profile":
        return "queries that are not Gaussian"
    return None


def _below_one_gaussian(rest: list[tuple[Description, int]], gaussians: int) -> str | None:
    """The same under `gdp`, where the composition as a whole is compared with a Gaussian."""
    copies = sum(n for _, n in rest)
    if copies == 1 or all(form_of(leaf, "") == "mixture" for leaf, _ in rest):
        return None
    leaf = rest[0][0]
    if len(rest) > 1 or gaussians:
        return "different queries that are not all Gaussian"
    form = "pure_dp" if leaf["kind"] == "pure_dp" else form_of(leaf, "")
    if form not in GDP_COPIES:
        return "several queries that are neither pure DP nor have a density"
    most, (least, largest) = GDP_COPIES[form]
    size = max(value for _, value, *_ in size_ranges(leaf))
    if copies > most or not least <= size <= largest / copies:
        return f"more than {most} queries, or very small or large ones,"
    return None


def _on_a_residue(rest: list[tuple[Description, int]]) -> str | None:
    """The same under the residue filters, where the outcomes of all queries are written out."""
    for leaf, _ in rest:
        if leaf["kind"] == "truncated_laplace":
            return "truncated Laplace noise with other queries"
        if leaf["kind"] == "discrete_laplace" and leaf["sensitivity"] > 1:
            return "discrete Laplace noise of a sensitivity above 1"
    sizes = [
        (max((value for _, value, *_ in size_ranges(leaf)), default=0.0), n) for leaf, n in rest
    ]
    copies, total = sum(n for _, n in sizes), sum(size * n for size, n in sizes)
    if copies > 2 and max(sizes)[0] > LARGEST_RATIO * min(sizes)[0]:
        return f"more than two queries with sizes more than {LARGEST_RATIO:g} times apart"
    if copies > 1 and total > LARGEST_TOTAL:
        return f"queries whose losses are above {LARGEST_TOTAL:g} together"
    return None


# -- plans -----------------------------------------------------------------------------------


MOST_PLANNED, LARGEST_SHARE = 100_000, 8000.0
"""The most queries on a plan that are not Gaussian, and the largest `eps` divided by the total
variation of one. They are composed on a lattice, which must be fine enough for each and reach
beyond `eps`."""
MOST_ATOMS = 1 << 14
"""The most outcomes of a composition that is written out, and needs no lattice."""


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
    if copies == 1 or not has_too_many_outcomes(rest, MOST_ATOMS):
        return None
    for leaf, _ in rest:
        size = distance(leaf)
        if size is not None and config["eps"] > LARGEST_SHARE * size:
            return (
                f"plan: eps / total variation of {name_of(leaf)} must be at most {LARGEST_SHARE:g},"
                f" got {config['eps'] / size:.6g}"
            )
    return None
