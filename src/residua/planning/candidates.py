"""The filters of a comparison, each set up for one `(eps, delta)`.

Every one of them promises that the whole interaction is within `(eps, delta)`; they differ in what
they know. Pure, basic, zCDP, the Gaussian ones and the union know the budget alone. The Rényi
order, the plan and the menu are chosen for what is expected of the workload, or for the workload
itself where it lists nothing as `expected`. The automatic filter knows what a workload lists as
`expected`, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from residua import checks
from residua.bounds import float_down
from residua.errors import ArgumentError
from residua.filters import amounts
from residua.filters.additive.basic import BasicFilter, PureFilter
from residua.filters.additive.gdp import GdpFilter
from residua.filters.additive.renyi import RenyiFilter
from residua.filters.additive.zcdp import ApproximateZcdpFilter
from residua.filters.base import Filter
from residua.filters.costs import renyi_cost
from residua.filters.potential.menu import MenuFilter
from residua.filters.potential.plan import PlanFilter
from residua.filters.potential.renyi_commit import RenyiCommitFilter
from residua.filters.query import Query, loss_of
from residua.filters.residue.approximate_gdp_residue import ApproximateGdpResidueFilter
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.filters.residue.target_residue import TargetResidueFilter
from residua.filters.target import best_order, gaussian_bracket, renyi_budget
from residua.filters.union.auto import AutoFilter
from residua.filters.union.union import UnionFilter
from residua.mechanisms.relations import ADD_REMOVE
from residua.planning.workload import Workload, optimum
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.work_limit import remembered


class Setting(NamedTuple):
    """The setting of a filter: what it is made for."""

    eps: float
    delta: float
    workload: Workload
    relation: str | None = None


class Candidate(NamedTuple):
    """A filter to compare: its column, and how it is set up."""

    name: str
    build: Callable[[Setting], Filter]


def candidates(filters: Any = None) -> tuple[Candidate, ...]:
    """The filters to compare: every kind that can be set up, without `filters`.

    `filters` is a list of kinds and filters, or maps names of columns to them. A filter that is
    given is taken as it is, unless its promise is proven to be more than `(eps, delta)`.
    """
    if filters is None:
        return tuple(map(_candidate, _BUILDERS))
    if isinstance(filters, Mapping):
        return tuple(_candidate(given, str(name)) for name, given in filters.items())
    if isinstance(filters, str | Filter):
        filters = (filters,)
    checks.instance("filters", filters, list | tuple, "a list of filters or kinds")
    made = tuple(_candidate(given) for given in filters)
    names = [one.name for one in made]
    for name in names:
        checks.require(names.count(name) == 1, "filters", "different", name)
    return made


def kinds() -> tuple[str, ...]:
    """The kinds of filter that can be set up from `(eps, delta)` and a workload."""
    return tuple(_BUILDERS)


def _candidate(given: Any, name: str | None = None) -> Candidate:
    if isinstance(given, Filter):
        return Candidate(name or repr(given), lambda setting: _check_promise(given, setting))
    checks.instance("a filter or a kind", given, str, "given")
    if given not in _BUILDERS:
        raise ArgumentError(
            f"filters must be among {', '.join(_BUILDERS)}, got {checks.shown(given)}"
            f"{checks.suggestion(given, _BUILDERS)}"
        )
    return Candidate(name or given, _BUILDERS[given])


def _check_promise(given: Filter, setting: Setting) -> Filter:
    """A filter that was set up elsewhere; beside the optimum of another budget it says nothing."""
    least = given.guarantee.delta_bounds(setting.eps).lo
    if least > setting.delta:
        raise ArgumentError(
            f"filters must keep within ({setting.eps!r}, {setting.delta!r}), got {given!r},"
            f" whose guarantee has a delta of {least:.6g} there"
        )
    return given


@remembered(maxsize=256)
def gaussian_budget(eps: float, delta: float) -> float:
    """The largest `mu` of twelve digits with `G_mu` within `(eps, delta)`, proven."""
    mu = float(amounts.rounded_down(gaussian_bracket(eps, delta)[0], 12))
    if not mu:
        raise ArgumentError(f"delta must leave room for some Gaussian noise, got {delta!r}")
    return mu


def _renyi(setting: Setting) -> Filter:
    alpha = _order(setting)
    rho = renyi_budget(*map(amounts.written, (alpha, setting.eps, setting.delta)))
    return RenyiFilter(alpha, amounts.reported(rho))


def _order(setting: Setting) -> float:
    """The order that has room for most of what was expected."""
    eps, delta = amounts.written(setting.eps), amounts.written(setting.delta)
    start = float(best_order(eps, delta)) - 1.0
    expected = setting.workload.planned
    counts: Counter[Query] = Counter()
    for query, count in expected.runs(expected.round):
        counts[query] += count
    best, chosen = Fraction(-1), start + 1.0
    for power in range(-16, 17):
        # From a tenth of the best α - 1 for Gaussians to ten times as much.
        alpha = float(f"{1.0 + start * 1.15**power:.6g}")
        costs = [renyi_cost(loss_of(query, setting.relation), alpha) for query in counts]
        if None in costs:
            continue
        whole = sum((c * n for c, n in zip(costs, counts.values(), strict=True) if c), Fraction(0))
        room = renyi_budget(amounts.written(alpha), eps, delta)
        if whole and room / whole > best:
            best, chosen = room / whole, alpha
    return chosen


def _approximate_gdp_residue(setting: Setting) -> Filter:
    """Split for what was expected where that is subsampled, which slack is for."""
    (query, _), *others = setting.workload.planned.queries
    loss = loss_of(query, setting.relation)
    sampled = not others and any(isinstance(factor, GaussianMixture) for factor in loss.terms)
    return ApproximateGdpResidueFilter.within(setting.eps, setting.delta, loss if sampled else None)


def _auto(setting: Setting) -> Filter:
    """The automatic filter knows what the workload lists as expected, if it does."""
    expected = tuple(dict.fromkeys(run.query for run in setting.workload.expected))
    expect = _under_relation(setting, expected) if expected else None
    return AutoFilter(setting.eps, setting.delta, expect=expect)


def _union(setting: Setting) -> Filter:
    """Addition of `eps`, which is free, and five filters with a share of `delta`.

    The Rényi orders were picked from seven such lists on fixed workloads, before the suite was
    random: multiples of the best `α - 1` for Gaussians.
    """
    eps, factors = setting.eps, (0.7, 1.2, 2.0, 4.0)
    share = float_down(Fraction(setting.delta) / (1 + len(factors)))
    start = float(best_order(amounts.written(eps), amounts.written(share))) - 1.0
    orders = [float(f"{1.0 + start * factor:.6g}") for factor in factors]
    components = (
        PureFilter(eps),
        GdpResidueFilter(gaussian_budget(eps, share)),
        *(RenyiCommitFilter(eps, share, alpha=alpha) for alpha in orders),
    )
    return UnionFilter(components, eps=eps)


def _under_relation(setting: Setting, queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """Queries as a filter expects them: it would take mechanisms under add-remove."""
    if setting.relation in (None, ADD_REMOVE):
        return queries
    return tuple(loss_of(query, setting.relation) for query in queries)


def planned_queries(setting: Setting) -> tuple[Query, ...]:
    """The expected queries, one by one, as long as anything of it could fit; one at least."""
    expected = setting.workload.planned
    room = max(optimum(setting.eps, setting.delta, expected, relation=setting.relation), 1)
    return tuple(query for query, count in expected.runs(room) for _ in range(count))


_BUILDERS: dict[str, Callable[[Setting], Filter]] = {
    "pure": lambda to: PureFilter(to.eps),
    "basic": lambda to: BasicFilter(to.eps, to.delta),
    "approximate_zcdp": lambda to: ApproximateZcdpFilter(to.eps, to.delta),
    "renyi": _renyi,
    "renyi_commit": lambda to: RenyiCommitFilter(to.eps, to.delta, alpha=_order(to)),
    "gdp": lambda to: GdpFilter(gaussian_budget(to.eps, to.delta)),
    "gdp_residue": lambda to: GdpResidueFilter(gaussian_budget(to.eps, to.delta)),
    "approximate_gdp_residue": _approximate_gdp_residue,
    "target_residue": lambda to: TargetResidueFilter(to.eps, to.delta),
    "plan": lambda to: PlanFilter(to.eps, to.delta, _under_relation(to, planned_queries(to))),
    "menu": lambda to: MenuFilter(to.eps, to.delta, _under_relation(to, to.workload.kinds)),
    "union": _union,
    "auto": _auto,
}
"""How each kind is set up, in the order of the table; no kind commits by itself."""
