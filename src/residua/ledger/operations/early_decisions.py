"""Slow decisions are made off the lock, so that they do not keep other callers waiting.

The committer decides each request under the lock within `QUICK` operations of counted work. A
decision that needs more ends with `Slow`, which has the snapshots of its budgets. The caller then
computes the decision from these, in its own thread or in another process (`Compute`), and queues
again. A decision is a pure function of the snapshots and the query, so the committer takes it as it
is, unless the budgets have moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, TypeVar

from residua.errors import LedgerError, ResiduaError, TooExpensive
from residua.ledger.domain.described_query import DescribedQuery
from residua.ledger.domain.rules import BudgetDecision
from residua.records import digest
from residua.work_limit import attempt

T = TypeVar("T")
BudgetDecisions = dict[str, BudgetDecision]
"""By the name of a budget."""

QUICK = 4_000_000
"""Operations of a decision under the lock, some twenty milliseconds: more of them delay others for
longer, fewer send more decisions through the queue twice."""
QUICK_ANSWER = 10_000_000
"""Operations of anything else that is computed where requests are answered, some fifty milliseconds
at most: as for `QUICK`."""
_MOST_KEPT = 128
"""Decisions that are kept for the callers that had them computed, of whom fewer compute at once."""
_LONGEST_KEPT = 1000
"""Characters of a description beyond which its hash stands for it."""


class Compute(Protocol):
    """Calls a pure function, here or elsewhere; all that it takes and returns can be pickled."""

    def __call__(self, do: Callable[..., T], *arguments: Any) -> T: ...


def here(do: Callable[..., T], *arguments: Any) -> T:
    """Compute in this thread."""
    return do(*arguments)


def quickly(compute: Compute, do: Callable[..., T], *arguments: Any) -> T:
    """Call a pure function within `QUICK_ANSWER`; `compute` calls it where it takes more."""
    if compute is here:
        return do(*arguments)
    found = attempt("this", QUICK_ANSWER, lambda: do(*arguments))
    return compute(do, *arguments) if isinstance(found, TooExpensive) else found


class Slow(Exception):
    """A decision that takes too long under the lock, and what to compute instead."""

    def __init__(
        self,
        judge: Callable[..., BudgetDecisions],
        budgets: frozenset[str],
        arguments: tuple[Any, ...],
    ):
        super().__init__()
        self.judge, self.budgets, self.arguments = judge, budgets, arguments


class EarlyDecisions:
    """Decisions by what they depend on. Shared by the threads of a process."""

    def __init__(self) -> None:
        self._known: dict[Hashable, BudgetDecisions | ResiduaError] = {}

    def find(
        self, within: int | None, judge: Callable[..., BudgetDecisions], *arguments: Any
    ) -> BudgetDecisions:
        """What `judge` rules: computed early, or now within so many operations.

        Raises `Slow` where it takes more; the first argument has the snapshots by budget.
        """
        known = self._known.get(_key(judge, arguments)) if self._known else None
        if isinstance(known, ResiduaError):
            raise type(known)(*known.args)
        if known is not None:
            return known
        if within is None:
            return judge(*arguments)
        found = attempt("this", within, lambda: judge(*arguments))
        if isinstance(found, TooExpensive):
            raise Slow(judge, frozenset(arguments[0]), arguments)
        return found

    def compute(self, slow: Slow, compute: Compute) -> None:
        """Make a slow decision, for the next attempt to find."""
        found = compute(_outcome, slow.judge, slow.arguments)
        for old in list(self._known)[: max(0, len(self._known) + 1 - _MOST_KEPT)]:
            self._known.pop(old, None)
        self._known[_key(slow.judge, slow.arguments)] = found


def _outcome(
    judge: Callable[..., BudgetDecisions], arguments: tuple[Any, ...]
) -> BudgetDecisions | ResiduaError:
    """The decisions, or the error to raise in their place."""
    try:
        return judge(*arguments)
    except ResiduaError as error:
        return error
    except MemoryError:
        raise
    except Exception as error:
        return LedgerError(f"the decision failed, nothing was spent: {error!r}")


def _key(judge: Callable[..., BudgetDecisions], arguments: tuple[Any, ...]) -> Hashable:
    return judge.__name__, *map(_short, arguments)


def _short(argument: Any) -> Hashable:
    """An argument as part of a key: a caller chooses how long the description of a query is."""
    if isinstance(argument, Mapping):
        return tuple(argument.items())
    if isinstance(argument, DescribedQuery):
        long = len(argument.text) > _LONGEST_KEPT
        return digest(argument.text) if long else argument.text
    found: Hashable = argument
    return found
