"""Recommend a filter, and how much noise, for a described workload.

The filters are measured on the workload (`comparison.py`) and the one that admits most is taken; of
equals the one that rests on less: filters that know the budget alone come before those that also
know what to expect. Where all of a workload that ends is to be answered, the least noise for that
is found too: all parameters turned by one factor until the composition is proven to be within
`(eps, delta)`, which a plan then admits to the last query; or, where no plan is wanted, until the
filter admits all of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from residua import checks
from residua.errors import ArgumentError
from residua.filters.base import Filter
from residua.filters.counting import MOST
from residua.filters.noise import Queries, least, scale_noise
from residua.filters.potential.plan import usable_delta
from residua.filters.query import describe, loss_of
from residua.planning.candidates import Setting, candidates
from residua.planning.comparison import (
    FilterComparison,
    Row,
    as_workloads,
    compare_filters,
    count_admitted,
)
from residua.planning.how_many import Progress
from residua.planning.workload import Run, Workload, is_within
from residua.pld.pld import Pld

_RESTS_ON = {
    "pure": "adding up eps, and keeps it with a delta of zero",
    "basic": "adding up eps and delta, which loses little for a few queries",
    "approximate_zcdp": "adding up zCDP, which needs no knowledge of the workload",
    "gdp": "Gaussian bounds of the queries, which are exact for Gaussian noise",
    "gdp_residue": "the exact residue of a Gaussian budget, whatever comes",
    "approximate_gdp_residue": "a Gaussian budget with slack in delta, which sampling needs",
    "target_residue": "a Gaussian budget read where (eps, delta) needs it, whatever comes",
    "union": "several filters at once, each with a share of delta; addition of eps is free",
    "auto": "the first query, and on what was expected if anything was",
    "renyi": "a Rényi order fixed in advance for this workload",
    "renyi_commit": "a Rényi order fixed in advance, and a commit later on",
    "menu": "prices worked out in advance for these kinds of query",
    "plan": "this very list of queries, known in advance; others cost more",
}
"""Kinds by how little they rest on, and on what."""


@dataclass(frozen=True)
class Recommendation:
    """A filter for a workload, why it is this one, and the queries with the noise to use."""

    filter: Filter
    reason: str
    queries: tuple[Run, ...]
    noise: float
    """By how much the noise of the workload was turned: 1 where it stays as it is."""
    comparison: FilterComparison
    """What every filter admits of the workload as it was given."""

    @property
    def described(self) -> dict[str, Any] | None:
        """The filter as plain data; None where it has no description.

        Such as a plan of losses under another relation than add-remove.
        """
        try:
            return self.filter.to_dict()
        except ArgumentError:
            return None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        from residua.filters.query import as_mechanism

        queries = [
            {"mechanism": as_mechanism(run.query).to_dict(), "repeat": run.times}
            for run in self.queries
        ]
        return {
            "filter": self.described,
            "reason": self.reason,
            "noise": self.noise,
            "queries": queries,
            "measured": self.comparison.to_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{self.filter!r}" if len(repr(self.filter)) < 200 else self.filter.kind]
        return "\n".join([*lines, self.reason, "", self.comparison.table()])

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from residua.figures.notebook import recommendation_html

        return recommendation_html(self)


def recommend(
    eps: float,
    delta: float,
    workload: Any,
    *,
    n: int | None = None,
    filters: Any = None,
    most: int = MOST,
    relation: str | None = None,
    progress: Progress | None = None,
) -> Recommendation:
    """The filter that admits most of a workload within `(eps, delta)`, and the noise to use.

    Args:
        eps: the budget's epsilon, at most 600.
        delta: the budget's delta, in (0, 1).
        workload: as for `compare_filters`, but a single one.
        n: how many rounds of the workload are all to be answered. Without it a workload that ends
            is to be answered whole, and one that repeats as often as fits, with its noise as it is.
        filters: the kinds to choose from.
        most: where counting ends.
        relation: the neighbouring relation for mechanisms.
        progress: called before each measurement.

    Returns:
        The filter, the reason, and the queries with the noise to use.

    Raises:
        ArgumentError: an argument is out of range, or the workload has no noise to turn.
    """
    checks.require(workload != "suite", "workload", "a single one", workload)
    found = as_workloads(workload)
    checks.require(len(found) == 1, "workload", "a single one", workload)
    target = found[0] if n is None else _rounds(found[0], checks.count("n", n))
    table = compare_filters(
        eps, delta, target, filters, most=most, relation=relation, progress=progress
    )
    setting = Setting(table.eps, table.delta, target, relation)
    made = {one.name: one.build for one in candidates(filters)}
    (row,) = table.rows
    counts = dict(zip(table.filters, row.admitted, strict=True))
    # Of those that admit most the one that rests on less.
    rank = {kind: place for place, kind in enumerate(_RESTS_ON)}
    name = max(counts, key=lambda one: (counts[one], -rank.get(one, len(rank))))
    filter, why, queries, noise = made[name](setting), _why(name, counts, row), target.queries, 1.0
    if target.repeat:
        return Recommendation(filter, why, queries, noise, table)
    whole = counts[name] == target.round
    # A plan holds all that fits at all; where none is wanted, the best of the others is turned.
    chosen = "plan" if "plan" in made else name
    turned = _least_noise(setting, made[chosen], chosen == "plan", most)
    if turned is None and not whole:
        raise ArgumentError(
            f"workload must have noise that can be scaled, since only {row.optimum} of"
            f" {target.round} queries fit, got {describe(target.queries[0].query)}"
        )
    if turned is not None and whole:
        why += f" All of it fits, and would with {turned[0]:.4g} times the noise and {chosen}."
    elif turned is not None:
        noise, queries = turned
        why = (
            f"{chosen}: of {target.round} queries {row.optimum} fit as they are; with {noise:.4g}"
            " times the noise all of them do"
        )
        why += ", if they are known in advance." if chosen == "plan" else "."
        fitted = setting._replace(workload=Workload(target.name, queries, expected=queries))
        filter = made[chosen](fitted)
    return Recommendation(filter, why, queries, noise, table)


def _rounds(workload: Workload, n: int) -> Workload:
    checks.require(n > 0, "n", "positive", n)
    if len(workload.queries) == 1:
        ((query, times),) = workload.queries
        return Workload(workload.name, (Run(query, times * n),))
    return Workload(workload.name, workload.queries * n)


def _why(name: str, counts: dict[str, int], row: Row) -> str:
    text = f"{name}: admits {counts[name]} of the {row.optimum} that fit at best."
    if name in _RESTS_ON:
        text += f" It rests on {_RESTS_ON[name]}."
    others = [kind for kind in counts if kind != name]
    if others:
        kind = max(others, key=counts.__getitem__)
        text += f" {kind} admits {counts[kind]}."
    if name in ("menu", "plan", "renyi", "renyi_commit") and "auto" in counts:
        text += f" auto, without expected queries, admits {counts['auto']}."
    return text


def _least_noise(
    setting: Setting, build: Callable[[Setting], Filter], planned: bool, most: int
) -> tuple[float, tuple[Run, ...]] | None:
    """The workload with the least noise with which all of it is admitted, and the factor."""
    runs = setting.workload.queries
    kinds = tuple(dict.fromkeys(run.query for run in runs))
    tried: dict[Queries, float] = {}

    def scale(ratio: float, digits: int | None) -> Queries | None:
        moved = tuple(one for q in kinds if (one := scale_noise(q, ratio, digits)) is not None)
        if len(moved) < len(kinds):
            return None
        tried[moved] = ratio
        return moved

    def runs_of(moved: Queries) -> tuple[Run, ...]:
        known = dict(zip(kinds, moved, strict=True))
        return tuple(Run(known[run.query], run.times) for run in runs)

    def is_admitted(moved: Queries) -> bool:
        workload = Workload("scaled", runs_of(moved))
        filter = build(setting._replace(workload=workload))
        return count_admitted(filter, workload, most, setting.relation) == workload.round

    def is_within_budget(moved: Queries) -> bool:
        workload = Workload("scaled", runs_of(moved))
        counts: Counter[Pld] = Counter()
        for query, times in workload.queries:
            counts[loss_of(query, setting.relation)] += times
        delta = usable_delta(counts, setting.eps, setting.delta)
        return is_within(workload.composed(workload.round, setting.relation), setting.eps, delta)

    if any(scale_noise(query, 2.0) is None for query in kinds):
        return None
    found = least(scale, is_within_budget if planned else is_admitted)
    if found is None:
        return None
    # Bisection went by the composition alone: the plan itself has the last word.
    if planned and not is_admitted(found):
        raise ArgumentError(f"workload must fit a plan filter, got {runs!r}")
    return tried[found], runs_of(found)
