"""The natural rule: go on while the exact composition of what was spent stays below the budget.

`Nat_{𝓛,B}(L_1, …, L_t) = {L ∈ 𝓛 : L_1 ⊕ … ⊕ L_t ⊕ L ⪯ B}`. Since `⊕` commutes, the state is a
multiset: how often each query was asked. `m` queries and `k` rounds make at most `C(m+k, k)`
states. A query is allowed where `⪯` is proven; what is undecided is refused, as a filter would.
A guarantee must not hang on that: `lenient` allows what is undecided, so that the rule admits
whatever a filter could, and its worst case bounds them all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import comb

from residua.adversary.rule import Rule, as_catalogue, as_queries
from residua.bounds import Verdict
from residua.filters.query import Query
from residua.pld.constructors import identity
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld

Counts = tuple[int, ...]


@dataclass(frozen=True)
class NaturalRule(Rule):
    """The natural rule over a finite catalogue; states are counts."""

    catalogue: Sequence[Query]
    budget: Pld
    lenient: bool = False
    _fits: dict[Counts, bool] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalogue", as_queries(self.catalogue))
        as_pld("budget", self.budget)

    @cached_property
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
        """Whether the composition of so many of each stays below the budget."""
        if counts not in self._fits:
            verdict = dominated(self.composed(counts), self.budget).verdict
            undecided = verdict is Verdict.UNDECIDED and self.lenient
            self._fits[counts] = verdict is Verdict.YES or undecided
        return self._fits[counts]

    def composed(self, counts: Counts) -> Pld:
        """The composition of so many of each."""
        return sum((n * loss for loss, n in zip(self.losses, counts, strict=True)), identity())

    def most_states(self, rounds: int) -> int:
        return comb(len(self.losses) + rounds, rounds)
