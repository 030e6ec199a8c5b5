"""An attack: the worst case of a rule against what the rule promises.

YES means that the promise holds, proven for this catalogue and these rounds: the upper side of the
worst case lies below the guarantee. NO means that it is broken, proven: the lower side rises above
it, with the adversary that does it. UNDECIDED means that the two curves are closer than the
rounding of irrational masses; `apart` says how close.

The point of the largest gap is searched in floats; the gap that is reported is proven there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from residua.adversary.finite import ACCURACY
from residua.adversary.rule import Rule, as_rule
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import LIMIT, Progress, WorstCase, worst_case
from residua.bounds import Floats, Verdict, float_down
from residua.filters.base import Filter
from residua.filters.potential.renyi_commit import Commit
from residua.filters.query import Query
from residua.pld.arithmetic.exact import ExactAtoms
from residua.pld.constructors import from_exact
from residua.pld.curve.reads import kinks
from residua.pld.families.atoms import atoms_from_exact
from residua.pld.order.compare import dominated
from residua.pld.order.domination import Witness
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld

LARGEST_LOG = 690.0
"""Thresholds are `e^t` with `|t|` up to this."""
SEARCH_POINTS, SEARCH_STEPS = 800, 12
"""Of the search for the largest gap: an even net, then steps that narrow down."""
SEARCH_MARGIN = 12.0
"""How far past the kinks to look: masses at infinity show where a smooth budget has come down."""
MOST_KINKS = 1 << 14
"""A budget with more is searched as if it were smooth."""


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
    t.append(kinks(budget, MOST_KINKS))
    ends = np.concatenate(t)
    t.append(np.linspace(ends.min() - SEARCH_MARGIN, ends.max() + SEARCH_MARGIN, SEARCH_POINTS))
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

    The other arguments, and the errors, are those of `worst_case`.
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

    The other arguments, and the errors, are those of `worst_case`.
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
