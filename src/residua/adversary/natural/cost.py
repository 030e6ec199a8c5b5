"""What the natural filter over a finite catalogue really costs.

`V_k(Id)` of the operator `V_{k+1}(L') = sup {L ⊕ V_k(L' ⊕ L) : L ∈ 𝓛, L' ⊕ L ⪯ B}`, the worst case
of the natural rule. The filter is free for this budget iff `V_k(Id) ⪯ B`.

**The rule**: go on while the exact composition of what was spent stays below the budget,
`Nat_{𝓛,B}(L_1, …, L_t) = {L ∈ 𝓛 : L_1 ⊕ … ⊕ L_t ⊕ L ⪯ B}`. Since `⊕` commutes, the state is a
multiset: how often each query was asked. `m` queries and `k` rounds make at most `C(m+k, k)`
states. A query is allowed where `⪯` is proven; what is undecided is refused, as a filter would.
A guarantee must not hang on that: `lenient` allows what is undecided, so that the rule admits
whatever a filter could, and its worst case bounds them all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb

from residua.adversary.attack import attack
from residua.adversary.finite import ACCURACY
from residua.adversary.rule import Rule, as_catalogue, as_queries, as_rounds
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import LIMIT, Progress, WorstCase
from residua.bounds import Verdict
from residua.filters.query import Query
from residua.pld.constructors import identity
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld
from residua.work_limit import remembered_property

Counts = tuple[int, ...]


@dataclass(frozen=True)
class NaturalRule(Rule):
    """The natural rule over a finite catalogue; states are counts."""

    catalogue: Sequence[Query]
    budget: Pld
    lenient: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalogue", as_queries(self.catalogue))
        as_pld("budget", self.budget)

    @remembered_property
    def losses(self) -> tuple[Pld, ...]:
        """The PLDs of the catalogue, each once."""
        return as_catalogue(self.catalogue)

    @property
    def start(self) -> Counts:
        return (0,) * len(self.losses)

    def _allowed(self, state: Counts) -> Iterable[tuple[Pld, Hashable]]:
        for i, loss in enumerate(self.losses):
            after = (*state[:i], state[i] + 1, *state[i + 1 :])
            if self.fits(after):
                yield loss, after

    def fits(self, counts: Counts) -> bool:
        """Whether the composition of `counts` of the queries stays below the budget."""
        verdict = _verdict(self.composed(counts), self.budget)
        return verdict is Verdict.YES or (verdict is Verdict.UNDECIDED and self.lenient)

    def composed(self, counts: Counts) -> Pld:
        """The composition of `counts` of the queries."""
        return sum((n * loss for loss, n in zip(self.losses, counts, strict=True)), identity())

    def most_states(self, rounds: int) -> int:
        return comb(len(self.losses) + rounds, rounds)


@lru_cache(maxsize=1 << 14)
def _verdict(spent: Pld, budget: Pld) -> Verdict:
    return dominated(spent, budget).verdict


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

    The other arguments, and the errors, are those of `worst_case`.
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
