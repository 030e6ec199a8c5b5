"""Rules: what an analyst may ask next, given what was asked before.

A privacy rule `Γ` maps a history of PLDs to a set of PLDs, `Id` among them: passing is always
allowed. Here a rule has states that sum up the history, so that histories with the same future
are looked at once: `start` is the state of the empty history and `moves(state)` lists what may be
asked, each with the state that follows. States are hashable values.

A rule over mechanisms is one over PLDs of one direction; the game in the other direction has the
reversed value, because `⊕` and `sup` commute with reversal.

There are five kinds of rule: one that looks at the whole history, a plan (a fixed multiset of
queries, asked in any order), a filter over a finite catalogue, the natural rule, and an update.

**Plans.** The value is the composition of the plan, whatever the order and whatever is left out:
the budget that is left is the composition of the queries that are left.

**Filters.** The filter's pure `decide` is the rule; a refusal is a pass. The worst case of this
rule is what the filter really lets through; it must lie below the filter's `guarantee`. A filter
that can commit is asked to as well, where the catalogue has commits: to a batch, which is run at
once, or to another filter, which releases nothing by itself.

**The natural rule**: go on while the exact composition of what was spent stays below the budget,
`Nat_{𝓛,B}(L_1, …, L_t) = {L ∈ 𝓛 : L_1 ⊕ … ⊕ L_t ⊕ L ⪯ B}`. Since `⊕` commutes, the state is a
multiset: how often each query was asked. `m` queries and `k` rounds make at most `C(m+k, k)`
states. A query is allowed where `⪯` is proven; what is undecided is refused, as a filter would.
A guarantee must not depend on that: `lenient` allows what is undecided, so that the rule admits
whatever a filter could, and its worst case bounds them all.

**Updates.** Admit `L ⪯ B`, then go on with `U(B, L)`. The state is the budget that is left. Nothing
is checked of `U`: with the residue condition `U(B, L) ⊕ L ⪯ B` the value of the rule is at most
`B`, without it it may be anything, and `worst_case` says what. (`UpdateFilter` refuses where the
condition fails.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import Any, NamedTuple

from residua import checks
from residua.bounds import Verdict
from residua.errors import ArgumentError, ArgumentTypeError, TooLargeError
from residua.filters.amounts import State
from residua.filters.base import Filter
from residua.filters.potential.renyi_commit import Commit, Potential
from residua.filters.query import Query, as_query, loss_of
from residua.pld.constructors import identity
from residua.pld.lattice import supremum
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.pld.pld import query as as_pld
from residua.work_limit import remembered_property


class Move(NamedTuple):
    """A query that is allowed, and the state after it."""

    loss: Pld
    state: Hashable


class Rule(ABC):
    """Base of all rules; subclasses are frozen values."""

    @property
    @abstractmethod
    def start(self) -> Hashable:
        """The state before anything was asked."""

    @abstractmethod
    def _allowed(self, state: Any) -> Iterable[tuple[Pld, Hashable]]:
        """What may be asked in a state, passing left out."""

    def moves(self, state: Hashable) -> tuple[Move, ...]:
        """What may be asked in a state, passing first."""
        moves = [Move(identity(), state)]
        for move in self._allowed(state):
            if not isinstance(move, tuple) or len(move) != 2 or not isinstance(move[0], Pld):
                raise ArgumentTypeError(
                    f"a rule must allow pairs of a Pld and a state, got {checks.shown(move)}"
                )
            moves.append(Move(*move))
        return tuple(moves)

    @property
    def keeps_history(self) -> bool:
        """Whether states are whole histories: none comes back, and there may be no end to them."""
        return False


@dataclass(frozen=True)
class HistoryRule(Rule):
    """A rule given as a function from the history of PLDs to what may be asked next."""

    allowed: Callable[[tuple[Pld, ...]], Iterable[Pld]]

    def __post_init__(self) -> None:
        if not callable(self.allowed):
            raise ArgumentTypeError(f"allowed must be callable, got {checks.shown(self.allowed)}")

    @property
    def start(self) -> tuple[Pld, ...]:
        return ()

    @property
    def keeps_history(self) -> bool:
        return True

    def _allowed(self, state: tuple[Pld, ...]) -> Iterable[tuple[Pld, Hashable]]:
        for loss in self.allowed(state):
            if not isinstance(loss, Pld):
                raise ArgumentTypeError(f"a rule must allow Plds, got {checks.shown(loss)}")
            if not loss.is_identity:
                yield loss, (*state, loss)


def as_queries(catalogue: Any) -> tuple[Query, ...]:
    """Check a list of queries."""
    if isinstance(catalogue, str | Pld) or not isinstance(catalogue, Iterable):
        raise ArgumentTypeError(
            f"catalogue must be a sequence of queries, got {checks.shown(catalogue)}"
        )
    queries = tuple(as_query(query, f"catalogue[{i}]") for i, query in enumerate(catalogue))
    if not queries:
        raise ArgumentError("catalogue must contain at least one query, got []")
    return queries


def as_catalogue(catalogue: Any) -> tuple[Pld, ...]:
    """The PLDs of a list of queries, each once, `Id` left out."""
    losses = (loss_of(query) for query in as_queries(catalogue))
    return tuple(dict.fromkeys(loss for loss in losses if not loss.is_identity))


def as_rounds(rounds: Any) -> int:
    """Check a number of rounds."""
    count = checks.count("rounds", rounds)
    checks.require(count >= 1, "rounds", "1 or more", rounds)
    return count


class CatalogueRule(Rule):
    """Base of the rules over a catalogue of queries."""

    catalogue: Sequence[Query]

    def __post_init__(self) -> None:
        checks.set_fields(self, catalogue=as_queries(self.catalogue))

    @remembered_property
    def losses(self) -> tuple[Pld, ...]:
        """The PLDs of the catalogue, each once."""
        return as_catalogue(self.catalogue)


@dataclass(frozen=True)
class PlanRule(CatalogueRule):
    """Ask each query at most as often as it is in the catalogue; states are counts left."""

    catalogue: Sequence[Query]

    @property
    def start(self) -> tuple[int, ...]:
        every = [loss_of(query) for query in self.catalogue]
        return tuple(every.count(loss) for loss in self.losses)

    def _allowed(self, state: tuple[int, ...]) -> Iterable[tuple[Pld, Hashable]]:
        for i, loss in enumerate(self.losses):
            if state[i] > 0:
                yield loss, (*state[:i], state[i] - 1, *state[i + 1 :])


@dataclass(frozen=True, eq=False)
class FilterRule(Rule):
    """What a filter admits of a catalogue; states are the filter's."""

    filter: Filter
    catalogue: Sequence[Query | Commit]

    def __post_init__(self) -> None:
        checks.instance("filter", self.filter, Filter, "a Filter")
        commits, rest = [], self.catalogue
        if isinstance(rest, list | tuple):
            commits = [item for item in rest if isinstance(item, Commit)]
            rest = [item for item in rest if not isinstance(item, Commit)]
        queries = () if commits and not rest else as_queries(rest)
        checks.set_fields(self, catalogue=(*queries, *commits))

    @cached_property
    def queries(self) -> tuple[tuple[Query, Pld], ...]:
        """Each query with its loss; a mechanism is asked as such."""
        found: dict[Pld, Query] = {}
        for query in self.catalogue:
            if not isinstance(query, Commit):
                found.setdefault(loss_of(query), query)
        return tuple((query, loss) for loss, query in found.items() if not loss.is_identity)

    @property
    def start(self) -> State:
        return self.filter.initial()

    def _allowed(self, state: State) -> Iterable[tuple[Pld, Hashable]]:
        for query, loss in self.queries:
            decision = self.filter.decide(state, query)
            if decision.admitted:
                yield loss, decision.state
        if isinstance(state, Potential) and not state.committed:
            for commit in self.catalogue:
                if isinstance(commit, Commit):
                    decision = self.filter.decide(state, commit)  # type: ignore[arg-type]
                    if decision.admitted:
                        to = commit.to
                        batch = identity() if isinstance(to, Filter) else loss_of(to)
                        yield batch, decision.state


def as_rule(filter: Any, catalogue: Sequence[Query | Commit]) -> FilterRule:
    """The rule of a filter over a catalogue of queries (and of commits, where it takes them)."""
    return FilterRule(filter, catalogue)


Counts = tuple[int, ...]
"""How often each query of a catalogue was asked."""


@dataclass(frozen=True)
class NaturalRule(CatalogueRule):
    """The natural rule over a finite catalogue; states are counts."""

    catalogue: Sequence[Query]
    budget: Pld
    lenient: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        as_pld("budget", self.budget)

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


@lru_cache(maxsize=1 << 14)
def _verdict(spent: Pld, budget: Pld) -> Verdict:
    return dominated(spent, budget).verdict


def closure(losses: Sequence[Pld], rounds: int) -> dict[tuple[int, ...], Pld]:
    """`𝓛^{<rounds}`: the compositions of fewer than `rounds` queries; `Id` is the first.

    Args:
        losses: the queries `𝓛`.
        rounds: `k`, 1 or more.

    Returns:
        Each composition by how many of each query it takes.

    Raises:
        TooLargeError: there are more than 5,000 of them: pairs of them are compared.
    """
    size = comb(len(losses) + rounds - 1, rounds - 1)
    most = 5_000
    if size > most:
        raise TooLargeError(
            f"{len(losses)} queries have {size} compositions of fewer than {rounds} queries,"
            f" more than the limit of {most}"
        )
    members: dict[tuple[int, ...], Pld] = {}
    for length in range(rounds):
        for chosen in combinations_with_replacement(range(len(losses)), length):
            counts = tuple(chosen.count(i) for i in range(len(losses)))
            members[counts] = sum((losses[i] for i in chosen), identity())
    return members


Update = Callable[[Pld, Pld], Pld]


@dataclass(frozen=True)
class UpdateRule(CatalogueRule):
    """Admit what is below the budget that is left; states are budgets."""

    budget: Pld
    update: Update
    catalogue: Sequence[Query]

    def __post_init__(self) -> None:
        super().__post_init__()
        as_pld("budget", self.budget)
        if not callable(self.update):
            raise ArgumentTypeError(f"update must be callable, got {checks.shown(self.update)}")

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

    The natural filter is free for every budget exactly when this update satisfies the residue
    condition, and then the two are the same filter.

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
