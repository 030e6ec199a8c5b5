"""Rules: what an analyst may ask next, given what was asked before.

A privacy rule `Γ` maps a history of PLDs to a set of PLDs, `Id` among them: passing is always
allowed. Here a rule has states that sum up the history, so that histories with the same future
are looked at once: `start` is the state of the empty history and `moves(state)` lists what may be
asked, each with the state that follows. States are hashable values.

A rule over mechanisms is one over PLDs of one direction; the game in the other direction has the
reversed value, because `⊕` and `sup` commute with reversal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.query import Query, as_query, loss_of
from residua.pld.constructors import identity
from residua.pld.pld import Pld


class Move(NamedTuple):
    """A query that is allowed, and the state after it."""

    loss: Pld
    state: Hashable


class Rule(ABC):
    """Base of all rules; subclasses are frozen values, one a file."""

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
        for given in self._allowed(state):
            if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], Pld):
                raise ArgumentTypeError(
                    f"a rule must allow pairs of a Pld and a state, got {checks.shown(given)}"
                )
            moves.append(Move(*given))
        return tuple(moves)

    @property
    def keeps_history(self) -> bool:
        """Whether states are whole histories: none comes back, and there may be no end to them."""
        return False

    def most_states(self, rounds: int) -> int | None:
        """How many states at most are met in so many rounds, where that is known ahead."""
        return None


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
        raise ArgumentError("catalogue must hold at least one query, got []")
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
