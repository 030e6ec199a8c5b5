"""An attack: the worst case of a rule against what the rule promises.

YES means that the promise holds, proven for this catalogue and these rounds: the upper side of the
worst case lies below the guarantee. NO means that it is broken, proven: the lower side rises above
it, with the adversary that does it. UNDECIDED means that the two curves are closer than the
rounding of irrational masses; `apart` says how close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from residua.adversary.filter_rule import as_rule
from residua.adversary.finite import ACCURACY
from residua.adversary.gap import distance, largest_gap
from residua.adversary.rule import Rule
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import LIMIT, Progress, WorstCase, worst_case
from residua.bounds import Verdict
from residua.filters.base import Filter
from residua.filters.potential.renyi_commit import Commit
from residua.filters.query import Query
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld


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
    """Compare the worst case of a rule with a guarantee; arguments as for `worst_case`."""
    as_pld("guarantee", guarantee)
    worst = worst_case(
        rule, rounds, accuracy=accuracy, coarse=coarse, limit=limit, progress=progress
    )
    return judged(worst, guarantee)


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
    """Attack a filter over a catalogue of queries, against its own `guarantee`."""
    return attack(
        as_rule(filter, catalogue),
        filter.guarantee,
        rounds,
        accuracy=accuracy,
        coarse=coarse,
        limit=limit,
        progress=progress,
    )


def judged(worst: WorstCase, guarantee: Pld) -> Attack:
    """Compare a worst case with a guarantee."""
    if dominated(worst.above, guarantee).proven:
        return Attack(Verdict.YES, 0.0, None, None, 0.0, guarantee, worst)
    above, below = worst.sides
    found = largest_gap(below, guarantee)
    if found is None:
        apart = distance(above, guarantee)
        return Attack(Verdict.UNDECIDED, 0.0, None, None, apart, guarantee, worst)
    strategy = worst.strategy(found.x)
    return Attack(Verdict.NO, found.gap, found.x, strategy, found.gap, guarantee, worst)
