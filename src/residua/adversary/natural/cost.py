"""What the natural filter over a finite catalogue really costs.

`V_k(Id)` of the operator `V_{k+1}(L') = sup {L ⊕ V_k(L' ⊕ L) : L ∈ 𝓛, L' ⊕ L ⪯ B}`, the worst case
of the natural rule. The filter is free for this budget iff `V_k(Id) ⪯ B`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from residua.adversary.attack import attack
from residua.adversary.finite import ACCURACY
from residua.adversary.natural.rule import NaturalRule
from residua.adversary.rule import as_rounds
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import LIMIT, Progress, WorstCase
from residua.bounds import Verdict
from residua.filters.query import Query
from residua.pld.pld import Pld


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

    Queries are taken in the direction they are given in. Arguments as for `worst_case`.
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
