"""An attack compares the worst case of a rule with what the rule promises.

YES means that the promise holds, proven for this catalogue and these rounds: the upper side of the
worst case lies below the guarantee. NO means that it is broken, proven: the lower side rises above
it, with the adversary that does it. UNDECIDED means that the two curves are closer than the
rounding of irrational masses; `apart` says how close.

The point of the largest gap is searched in floats; the gap that is reported is proven there.

**What the natural filter over a finite catalogue costs** is the worst case of the natural rule:
`V_k(Id)` of the operator `V_{k+1}(L') = sup {L ⊕ V_k(L' ⊕ L) : L ∈ 𝓛, L' ⊕ L ⪯ B}`. The filter is
free for this budget iff `V_k(Id) ⪯ B`.

**The attack suite** plays every filter we ship against small catalogues, and rules that must fall.

A filter survives if its exact worst case is below its own guarantee, for every catalogue. A check
that cannot fail is worth nothing, so the suite also holds rules that are known not to keep what
they promise, and these must be caught with an adversary in hand.

Catalogues are finite and rational, so that survival is proven to the last digit, but for
`responses` (irrational masses) and `smooth` (continuous losses), which are rounded both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from residua import checks
from residua.adversary.finite import ACCURACY
from residua.adversary.rule import NaturalRule, Rule, as_rounds, as_rule
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import LIMIT, Progress, WorstCase, worst_case
from residua.bounds import Floats, Verdict, float_down
from residua.errors import ArgumentError
from residua.filters.base import Filter
from residua.filters.codec import KINDS, from_dict
from residua.filters.potential.renyi_commit import Commit
from residua.filters.query import Query
from residua.pld.arithmetic.exact import ExactAtoms
from residua.pld.constructors import (
    approximate_dp,
    from_exact,
    from_pair,
    gaussian,
    laplace,
    pure_dp,
)
from residua.pld.curve.reads import kinks
from residua.pld.discretise.finite import written_out
from residua.pld.families.atoms import atoms_from_exact
from residua.pld.order.compare import dominated
from residua.pld.order.domination import Witness
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld

LARGEST_LOG = 690.0
"""Thresholds are `e^t` with `|t|` up to this."""
SEARCH_POINTS, SEARCH_STEPS = 800, 12
"""Of the search for the largest gap: an even net, then steps that narrow down. More of them miss
fewer gaps and take longer."""


def largest_gap(value: ExactAtoms, budget: Pld) -> Witness | None:
    """The point where `value` rises farthest above `budget`, as searched; None if none is proven.

    Against a finite budget the gap is largest at one of its kinks, else anywhere. The search is in
    floats; the gap that is returned is proven at the float `x` that is returned. What the search
    misses, far out in a tail, the order may still refute.
    """
    candidates = _search(value, budget)
    refuted = dominated(from_exact(value), budget)
    if refuted.verdict is Verdict.YES:
        return None
    if refuted.witness is not None:
        candidates.append(refuted.witness.x)
    found = [Witness(x, _proven(value, budget, x)) for x in candidates]
    widest = max(found, key=lambda witness: witness.gap)
    if widest.gap > 0.0:
        return widest
    return refuted.witness if refuted.verdict is Verdict.NO else None


def _distance(value: ExactAtoms, budget: Pld) -> float:
    """How far `value` rises above `budget` at most, as searched: a measure, not a bound."""
    points = np.array(_search(value, budget))
    return max(0.0, float(np.max(_Gap(value, budget)(np.log(points)))))


def _search(value: ExactAtoms, budget: Pld) -> list[float]:
    """Points `x` where the gap is largest, in floats."""
    curve = _Gap(value, budget)
    t = [np.zeros(1) if len(value) == 0 else atoms_from_exact(value).z]
    # A budget with more kinks is searched as if it were smooth.
    t.append(kinks(budget, 1 << 14))
    # Masses at infinity show past the kinks, where a smooth budget has come down.
    low, high = np.concatenate(t).min() - 12.0, np.concatenate(t).max() + 12.0
    t.append(np.linspace(low, high, SEARCH_POINTS))
    places = np.unique(np.clip(np.concatenate(t), -LARGEST_LOG, LARGEST_LOG))
    best = int(np.argmax(curve(places)))
    step = float(np.max(np.diff(places)[max(best - 1, 0) : best + 1], initial=1e-6))
    at = float(places[best])
    for _ in range(SEARCH_STEPS):
        near = np.clip(at + step * np.linspace(-1.0, 1.0, 17), -LARGEST_LOG, LARGEST_LOG)
        at, step = float(near[int(np.argmax(curve(near)))]), step / 8.0
    return [float(np.exp(at)), float(np.exp(places[best]))]


class _Gap:
    """The gap in floats at places `t = ln x`."""

    def __init__(self, value: ExactAtoms, budget: Pld):
        self.atoms = atoms_from_exact(value) if len(value) else None
        self.at_infinity = value.p_inf / value.p_den
        self.budget = budget

    def __call__(self, t: Floats) -> Floats:
        x = np.exp(t)
        high: Floats = np.full(t.shape, self.at_infinity)
        if self.atoms is not None:
            high = high + self.atoms.curve_at(x)[0]
        gap: Floats = high - np.asarray(self.budget.hockey_stick(x))
        return gap


def _proven(value: ExactAtoms, budget: Pld, x: float) -> float:
    top = Fraction(float(budget.hockey_stick(x)))
    return float_down(value.hockey_stick(Fraction(x)) - top)


@dataclass(frozen=True)
class Attack:
    """Whether a promise holds against every adversary of a rule."""

    verdict: Verdict
    gap: float
    """A proven lower bound on how far the worst case exceeds the guarantee at `x`; 0.0 if none."""
    x: float | None
    strategy: Strategy | None
    """The adversary that attains the gap."""
    apart: float
    """How far the upper side reaches above the guarantee, as searched; 0.0 where it does not."""
    guarantee: Pld = field(repr=False)
    worst: WorstCase = field(repr=False)


def attack(
    rule: Rule,
    guarantee: Pld,
    rounds: int | None = None,
    *,
    accuracy: float = ACCURACY,
    coarse: float | None = None,
    limit: int = LIMIT,
    progress: Progress | None = None,
) -> Attack:
    """Compare the worst case of a rule with a guarantee.

    Args:
        rule: what may be asked.
        guarantee: what the rule promises.
        rounds: how many queries may be asked; None means any number.
        accuracy: that of queries which are not finite, in `eps`.
        coarse: merges atoms after each round; see `worst_case`.
        limit: the most states that are valued.
        progress: called with the states valued so far and all of them.

    Returns:
        The verdict, with the worst case and, where the promise is broken, the adversary.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    as_pld("guarantee", guarantee)
    worst = worst_case(
        rule, rounds, accuracy=accuracy, coarse=coarse, limit=limit, progress=progress
    )
    return judge(worst, guarantee)


def attack_filter(
    filter: Filter,
    catalogue: Sequence[Query | Commit],
    rounds: int | None = None,
    *,
    accuracy: float = ACCURACY,
    coarse: float | None = None,
    limit: int = LIMIT,
    progress: Progress | None = None,
) -> Attack:
    """Attack a filter over a catalogue of queries, against its own `guarantee`.

    Args:
        filter: any filter; its state is left alone.
        catalogue: the queries (and commits, where it takes them) that may be asked.
        rounds: how many queries may be asked; None means any number.
        accuracy: that of queries which are not finite, in `eps`.
        coarse: merges atoms after each round; see `worst_case`.
        limit: the most states that are valued.
        progress: called with the states valued so far and all of them.

    Returns:
        The verdict, with the worst case and, where the guarantee is broken, the adversary.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    return attack(
        as_rule(filter, catalogue),
        filter.guarantee,
        rounds,
        accuracy=accuracy,
        coarse=coarse,
        limit=limit,
        progress=progress,
    )


def judge(worst: WorstCase, guarantee: Pld) -> Attack:
    """Compare a worst case with a guarantee."""
    if dominated(worst.above, guarantee).proven:
        return Attack(Verdict.YES, 0.0, None, None, 0.0, guarantee, worst)
    above, below = worst.sides
    found = largest_gap(below, guarantee)
    if found is None:
        apart = _distance(above, guarantee)
        return Attack(Verdict.UNDECIDED, 0.0, None, None, apart, guarantee, worst)
    strategy = worst.strategy(found.x)
    return Attack(Verdict.NO, found.gap, found.x, strategy, found.gap, guarantee, worst)


@dataclass(frozen=True)
class NaturalCost:
    """The real cost, and by how much it exceeds the budget."""

    pld: Pld
    """What the whole interaction is dominated by; exact where queries are rational."""
    violation: float
    """A proven lower bound on `h_pld(x) - h_budget(x)` at the witness; 0.0 if there is none."""
    witness: float | None
    """The point `x = e^eps` of the violation."""
    strategy: Strategy | None
    """The adversary that attains the violation."""
    verdict: Verdict
    """Whether the natural filter is free for this budget: YES and NO are proven."""
    worst: WorstCase = field(repr=False)


def natural_cost(
    catalogue: Sequence[Query],
    budget: Pld,
    rounds: int,
    *,
    accuracy: float = ACCURACY,
    coarse: float | None = None,
    limit: int = LIMIT,
    progress: Progress | None = None,
) -> NaturalCost:
    """The exact cost of the natural filter over a catalogue, its violation and its adversary.

    Args:
        catalogue: the queries that may be asked, in the direction they are given in.
        budget: what the filter checks.
        rounds: how many queries may be asked.
        accuracy: that of queries which are not finite, in `eps`.
        coarse: merges atoms after each round; see `worst_case`.
        limit: the most states that are valued.
        progress: called with the states valued so far and all of them.

    Returns:
        The cost; its verdict says whether the natural filter is free for this budget.

    Raises:
        TooLargeError: there are more states than `limit`, or too many atoms.
    """
    rule = NaturalRule(catalogue, budget)
    found = attack(
        rule,
        budget,
        as_rounds(rounds),
        accuracy=accuracy,
        coarse=coarse,
        limit=limit,
        progress=progress,
    )
    worst = found.worst
    return NaturalCost(worst.pld, found.gap, found.x, found.strategy, found.verdict, worst)


SUITE_ROUNDS = 3
"""Rounds in which the suite attacks with finite catalogues; two with the others."""
_MENU = [{"kind": "pure_dp", "eps": eps} for eps in (0.25, 0.5)]
EXAMPLES: dict[str, dict[str, Any]] = {
    "pure": {"eps": 1.1},
    "basic": {"eps": 1.1, "delta": 0.06},
    "renyi": {"alpha": 4.0, "rho": 0.6},
    "renyi_curve": {"curve": [[2.0, 0.4], [8.0, 0.7]]},
    "zcdp": {"rho": 0.25},
    "approximate_zcdp": {"eps": 1.5, "delta": 0.06, "delta_conversion": 0.03},
    "gdp": {"mu": 1.0},
    "gdp_residue": {"mu": 1.0},
    "approximate_gdp_residue": {"mu": 1.0, "delta": 0.06},
    "target_residue": {"eps": 1.1, "delta": 0.06},
    "plan": {"eps": 1.1, "delta": 0.06, "plan": _MENU},
    "menu": {"eps": 1.1, "delta": 0.06, "menu": _MENU},
    "renyi_commit": {"eps": 1.5, "delta": 0.06},
    "auto": {"eps": 1.5, "delta": 0.06},
    "union": {
        "eps": 1.1,
        "filters": [
            {"kind": "pure", "eps": 1.1},
            {"kind": "basic", "eps": 0.6, "delta": 0.06},
            {"kind": "renyi", "alpha": 4.0, "rho": 0.3},
        ],
    },
    "natural": {"budget": {"kind": "approximate_dp", "eps": 1.0, "delta": 0.05}, "rounds": 3},
    "additive_profile": {"eps": 1.0, "delta": 0.05, "rounds": 3},
}
"""A filter of each kind, small enough for a few queries to use it up."""


def example(kind: str) -> Filter:
    """The filter of a kind that the suite attacks."""
    if kind not in EXAMPLES or kind not in KINDS:
        raise ArgumentError(
            f"kind must be one of {', '.join(sorted(KINDS))}, got {checks.shown(kind)}"
            f"{checks.near(kind, KINDS)}"
        )
    return from_dict({"kind": kind, **EXAMPLES[kind]})


@cache
def catalogues() -> dict[str, tuple[Pld, ...]]:
    """The queries that filters are attacked with."""
    half, quarter = _response(3, 5), _response(7, 9)
    asymmetric = from_pair([0.5, 0.5], [0.25, 0.75])
    leaning = from_pair([0.5, 0.5, 0.0], [0.5, 0.46875, 0.03125])
    return {
        "pure": (half, quarter),
        "approximate": (
            from_pair([1 / 64, 37 / 64, 26 / 64, 0.0], [0.0, 26 / 64, 37 / 64, 1 / 64]),
            approximate_dp(0.0, 1 / 32),
        ),
        "asymmetric": (asymmetric, asymmetric.reverse()),
        "minus infinity": (leaning, leaning.reverse()),
        "gaussian-like": (_binomial(4), quarter),
        "responses": (pure_dp(0.5), approximate_dp(0.25, 0.01)),
        "smooth": (gaussian(mu=0.5), laplace(scale=2.0)),
    }


def _response(low: int, high: int) -> Pld:
    total = float(low + high)
    return from_pair([low / total, high / total], [high / total, low / total])


def _binomial(n: int) -> Pld:
    """`n` small responses written out as one query: losses spread like those of a Gaussian."""
    return from_exact(written_out(n * _response(15, 17)).exact)


def survivors(kinds: tuple[str, ...] | None = None) -> Iterator[tuple[str, str, Attack]]:
    """Attack every filter with every catalogue."""
    rough = 0.05  # in eps: keeps the compositions of continuous losses small
    for kind in kinds if kinds is not None else tuple(KINDS):
        filter = example(kind)
        for name, queries in catalogues().items():
            finite = all(query.is_finite for query in queries)
            rounds, coarse = (SUITE_ROUNDS, None) if finite else (2, rough)
            yield kind, name, attack_filter(filter, queries, rounds, accuracy=rough, coarse=coarse)
