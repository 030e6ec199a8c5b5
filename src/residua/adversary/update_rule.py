"""The rule of an update filter: admit `L ⪯ B`, then go on with `U(B, L)`.

The state is the budget that is left. Nothing is checked of `U`: with the residue condition
`U(B, L) ⊕ L ⪯ B` the value of the rule is at most `B`, without it it may be anything, and
`worst_case` says what. (`UpdateFilter` refuses where the condition fails.)

`natural_update` is the largest update that could be sound for a catalogue in `k` rounds,
`U(B, L) = sup{L' ∈ 𝓛^{<k} : L ⊕ L' ⪯ B}`; the natural filter is free for every budget exactly when
this one satisfies the residue condition, and then the two are the same filter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from residua import checks
from residua.adversary.closure import closure
from residua.adversary.rule import Rule, as_catalogue, as_queries, as_rounds
from residua.errors import ArgumentTypeError
from residua.filters.query import Query
from residua.pld.lattice.supremum import supremum
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld

Update = Callable[[Pld, Pld], Pld]


@dataclass(frozen=True)
class UpdateRule(Rule):
    """Admit what is below the budget that is left; states are budgets."""

    budget: Pld
    update: Update
    catalogue: Sequence[Query]

    def __post_init__(self) -> None:
        object.__setattr__(self, "catalogue", as_queries(self.catalogue))
        as_pld("budget", self.budget)
        if not callable(self.update):
            raise ArgumentTypeError(f"update must be callable, got {checks.shown(self.update)}")

    @cached_property
    def losses(self) -> tuple[Pld, ...]:
        return as_catalogue(self.catalogue)

    @property
    def start(self) -> Pld:
        return self.budget

    def _allowed(self, state: Pld) -> Iterable[tuple[Pld, Hashable]]:
        for loss in self.losses:
            if dominated(loss, state).proven:
                after = self.update(state, loss)
                if not isinstance(after, Pld):
                    raise ArgumentTypeError(f"update must return a Pld, got {checks.shown(after)}")
                yield loss, after


def natural_update(catalogue: Sequence[Query], rounds: int) -> Update:
    """The largest update that could be sound: `U(B, L) = sup{L' ∈ 𝓛^{<k} : L ⊕ L' ⪯ B}`.

    Where the natural filter over a catalogue is free for every budget, this is its update.

    Args:
        catalogue: the queries `𝓛`, PLDs or mechanisms.
        rounds: `k`, 1 or more.

    Returns:
        A function of a budget and a query, for `UpdateRule` and `UpdateFilter`. What is not proven
        to fit is left out of the supremum, so the budget it returns is never too large for that.

    Raises:
        TooLargeError: more than 5,000 compositions of fewer than `k` queries.
    """
    members = tuple(closure(as_catalogue(catalogue), as_rounds(rounds)).values())

    def update(budget: Pld, loss: Pld) -> Pld:
        return supremum([after for after in members if dominated(loss + after, budget).proven])

    return update
