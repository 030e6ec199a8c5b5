"""Early rulings: computed before a request queues, and looked up by the committer.

A ruling is a pure function of the budgets' snapshots and of the query, so it may be computed before
a request queues, in this process or in another one (`Compute`). The committer then finds it here,
as long as the budgets have not moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from residua.errors import ResiduaError
from residua.ledger.domain import rules
from residua.ledger.domain.closed_forms import is_closed_form
from residua.ledger.domain.described_query import Asked
from residua.ledger.domain.rules import Rule, Ruling, Standing
from residua.records import digest
from residua.work_limit import OPERATIONS, UNLIMITED, limited

T = TypeVar("T")
_MOST = 1024
_LONG = 1000
"""Characters of a description beyond which its hash stands for it."""
OPERATIONS_A_SECOND = OPERATIONS / 20
"""About what a core does."""


class Compute(Protocol):
    """Calls a pure function, here or elsewhere; all that it takes and returns can be pickled."""

    def __call__(self, do: Callable[..., T], *arguments: Any) -> T: ...


def here(do: Callable[..., T], *arguments: Any) -> T:
    """Compute in this thread."""
    return do(*arguments)


class Found(NamedTuple):
    """The result of a computation, and the processor seconds that it took."""

    rulings: dict[str, Ruling] | None
    error: ResiduaError | None
    """The request is wrong."""
    failure: str | None
    """Something else went wrong."""
    seconds: float
    operations: int = 0
    """The counted work of it, cached values included (`work_limit.py`)."""

    @property
    def seconds_anywhere(self) -> float:
        """The seconds that it takes a process that has nothing of it in a cache."""
        return max(self.seconds, self.operations / OPERATIONS_A_SECOND)

    def result(self) -> dict[str, Ruling]:
        """The rulings, or what was raised in their place."""
        if self.error is not None:
            raise type(self.error)(*self.error.args)
        if self.rulings is None:
            raise RuntimeError(self.failure)
        return self.rulings


def timed(judge: Callable[..., dict[str, Ruling]], *arguments: Any) -> Found:
    """A function's ruling and its processor time; by the clock, a busy machine would look slow.

    What fails here fails under the lock as well, which reports it.
    """
    rulings, error, failure = None, None, None
    before = time.thread_time()
    budget = limited("this", UNLIMITED)
    try:
        with budget:
            rulings = judge(*arguments)
    except ResiduaError as wrong:
        error = wrong
    except MemoryError:
        raise
    except Exception as failed:
        failure = repr(failed)
    return Found(rulings, error, failure, time.thread_time() - before, budget.budget.done)


class Rulings:
    """Rulings by where the budgets stood. Shared by the threads of a process."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Found] = {}

    def judge(
        self, rule: Rule, asked: Asked, standings: Mapping[str, Standing]
    ) -> dict[str, Ruling]:
        """A rule's decisions on the budgets that a request charges."""
        found = self._find(spending_key, rule, asked, standings)
        return rules.judge(rule, asked, standings) if found is None else found.result()

    def judge_commit(
        self, standings: Mapping[str, Standing], places: Mapping[str, int]
    ) -> dict[str, Ruling]:
        """Whether each budget releases the hold at its place."""
        found = self._find(commit_key, standings, places)
        return rules.judge_commit(standings, places) if found is None else found.result()

    def _find(self, key: Callable[..., Hashable], *arguments: Any) -> Found | None:
        return self._known.get(key(*arguments)) if self._known else None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._known

    def add(self, key: Hashable, found: Found) -> None:
        """Keep a ruling."""
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = found


def short_of(asked: Asked) -> str:
    """A short text for a query alone: a caller chooses how long its description is."""
    return asked.text if len(asked.text) <= _LONG else digest(asked.text.encode())


def spending_key(rule: Rule, asked: Asked, standings: Mapping[str, Standing]) -> Hashable:
    """By what the rulings on a spend or a hold are found."""
    return rule.__name__, short_of(asked), tuple(standings.items())


def commit_key(standings: Mapping[str, Standing], places: Mapping[str, int]) -> Hashable:
    """By what the rulings on a commit are found."""
    return "commit", tuple(places.items()), tuple(standings.items())


def are_closed_forms(asked: Asked, standings: Mapping[str, Standing]) -> bool:
    """Whether a query is decided by closed forms on every budget."""
    return all(is_closed_form(standing, asked) for standing in standings.values())
