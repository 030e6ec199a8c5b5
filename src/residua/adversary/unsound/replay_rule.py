"""A ledger that cancels by replay: an unsound rule, for demonstration.

Queries may be reserved, run later, or cancelled; a cancel replays the history without the
reserved query. The filter under it is sound, but the analyst can look at later answers before
deciding whether the reserved query runs, that is, between two budgets. (The sound form folds the
filter over queries in the order they *run*.)

Moves are what is released: reserving and cancelling release nothing and count as a round. At any
time what is left may be asked for at once, as one query that costs all of it; the game ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from residua import checks
from residua.adversary.rule import Rule, as_catalogue, as_queries
from residua.errors import ArgumentTypeError
from residua.filters.base import Filter
from residua.filters.query import Query
from residua.filters.state import State
from residua.pld.constructors import identity
from residua.pld.pld import Pld

Event = tuple[int, bool]
"""Which query, and whether it has run."""


_ENDED = "ended"


@dataclass(frozen=True, eq=False)
class ReplayRule(Rule):
    """Reserve, run and cancel over a filter; states are the events as the ledger has them."""

    filter: Filter
    catalogue: Sequence[Query]

    def __post_init__(self) -> None:
        if not isinstance(self.filter, Filter):
            raise ArgumentTypeError(f"filter must be a Filter, got {checks.shown(self.filter)}")
        object.__setattr__(self, "catalogue", as_queries(self.catalogue))

    @cached_property
    def losses(self) -> tuple[Pld, ...]:
        return as_catalogue(self.catalogue)

    @property
    def start(self) -> tuple[Event, ...]:
        return ()

    def _allowed(self, state: tuple[Event, ...] | str) -> Iterable[tuple[Pld, Hashable]]:
        if isinstance(state, str):
            return
        left = self._fold(tuple(j for j, _ in state))
        assert left is not None, "a part of what was admitted is admitted"
        rest = self.filter.remaining_in(left)
        if isinstance(rest, Pld) and not rest.is_identity:
            yield rest, _ENDED
        for i, loss in enumerate(self.losses):
            if self._fold((*(j for j, _ in state), i)) is not None:
                yield identity(), (*state, (i, False))
                yield loss, (*state, (i, True))
        for place, (i, ran) in enumerate(state):
            if not ran:
                yield identity(), (*state[:place], *state[place + 1 :])
                yield self.losses[i], (*state[:place], (i, True), *state[place + 1 :])

    @cached_property
    def _fold(self) -> Callable[[tuple[int, ...]], State | None]:
        """The filter's state after these queries in this order; None if it refuses one."""

        @cache
        def fold(asked: tuple[int, ...]) -> State | None:
            if not asked:
                return self.filter.initial()
            before = fold(asked[:-1])
            if before is None:
                return None
            decision = self.filter.decide(before, self.losses[asked[-1]])
            return decision.state if decision.admitted else None

        return fold
