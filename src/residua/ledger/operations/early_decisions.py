"""Slow decisions are made off the lock, so that they do not keep other callers waiting.

The committer decides each request under the lock within `QUICK` operations of counted work. A
decision that needs more ends with `Slow`, which has the snapshots of its budgets. The caller then
computes the decision from these, in its own thread or in another process (`Compute`), and queues
again. A decision is a pure function of the snapshots and the query, so the committer takes it as it
is, unless the budgets have moved meanwhile.

After two such losses a request *claims* the budgets that it charges: other requests of this process
that charge one of them wait until it is over, which is after `LONGEST` seconds at the latest.
Requests on other budgets go on. A request that would wait too long, or behind too many others,
fails with an error that asks the caller to retry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from threading import Condition
from typing import Any, Protocol, TypeVar

from residua.errors import Contended, LedgerError, ResiduaError, TooExpensive
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
    """An argument as part of a key.

    The hash of a long description stands for it: a caller chooses how long it is.
    """
    if isinstance(argument, Mapping):
        return tuple(argument.items())
    if isinstance(argument, DescribedQuery):
        return digest(argument.text) if len(argument.text) > 1000 else argument.text
    found: Hashable = argument
    return found


# -- claims ---------------------------------------------------------------------------


LONGEST = 5.0
"""Seconds that a claim lasts at most."""
LONGEST_WAIT = 15.0
"""Seconds that a request waits at most for the claims of others, all waits together."""
MOST_WAITING = 24
"""Requests of one process that wait at a time: fewer than the service has threads for spends."""


class WaitLimit:
    """How long one request may still wait for claims."""

    def __init__(self) -> None:
        self.left = LONGEST_WAIT


class Claims:
    """The claims on budgets. Shared by the threads of a process."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._claimed: dict[int, tuple[frozenset[str], float]] = {}
        """By the id of a request, the budgets and until when."""
        self._waiting = 0

    def __bool__(self) -> bool:
        return bool(self._claimed)

    def until(self, request: object, names: frozenset[str]) -> float | None:
        """Until when another request has claimed one of these budgets; None where none has."""
        now = time.monotonic()
        for owner, (claimed, until) in list(self._claimed.items()):
            if owner != id(request) and now < until and claimed & names:
                return until
        return None

    def wait(self, request: object, wanted: frozenset[str], limit: WaitLimit) -> None:
        """Wait until no other request claims one of these budgets."""
        begun = time.monotonic()
        end = begun + limit.left
        with self._changed:
            if self._waiting >= MOST_WAITING:
                raise _contended()
            self._waiting += 1
            try:
                while (until := self.until(request, wanted)) is not None:
                    now = time.monotonic()
                    if now >= end:
                        raise _contended()
                    self._changed.wait(min(until, end) - now + 0.001)
            finally:
                self._waiting -= 1
                limit.left -= time.monotonic() - begun

    @contextmanager
    def claimed(self, request: object, wanted: frozenset[str], limit: WaitLimit) -> Iterator[None]:
        """Keep budgets still, once no other request does."""
        while True:
            self.wait(request, wanted, limit)
            with self._changed:
                if self.until(request, wanted) is None:
                    self._claimed[id(request)] = wanted, time.monotonic() + LONGEST
                    break
        try:
            yield
        finally:
            with self._changed:
                del self._claimed[id(request)]
                self._changed.notify_all()


def _contended() -> Contended:
    return Contended("a slow query is being decided on the budget; nothing was spent; retry in 1 s")
