"""Group commit: callers queue up, and the first waiter becomes the leader of all that wait.

A caller that finds nobody leading leads: it takes everything that waits, carries it out, and wakes
all callers. Those that were answered return, and one of the others leads next. The cost of a turn
hardly depends on the number of requests in it, and callers that were just answered often have
another one; so a leader waits for them briefly, which gives 16 callers twice as many spends a
second. An interrupted caller leaves the queue at any point; callers whose requests it took do not
learn what became of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Condition, Lock
from typing import Any

from residua.errors import LedgerError, OutcomeUnknown
from residua.ledger.operations.requests import Request


class Slot:
    """A request in the queue, and then its answer."""

    __slots__ = ("answer", "blocked_by", "done", "error", "request", "within")

    def __init__(self, request: Request, within: int | None = None):
        self.request = request
        self.within = within
        """Operations that its decision may take under the lock; None: as many as it needs."""
        self.blocked_by: frozenset[str] = frozenset()
        """The budgets that it charges, where another request has claimed one of them."""
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = False

    def result(self) -> Any:
        """The answer; raises the error in its place."""
        if self.error is not None:
            raise self.error
        return self.answer


class CommitQueue:
    """The queue. `carry_out` carries out requests, and is called by one caller at a time."""

    def __init__(self, carry_out: Callable[[Sequence[Slot]], None]):
        self._carry_out = carry_out
        lock = Lock()
        self._arrived, self._changed = Condition(lock), Condition(lock)
        self._waiting: list[Slot] = []
        self._leader: Slot | None = None
        self._expected = 1
        """How many callers to wait for: those of the last turn, and those that waited then."""
        self._pause = 0.0

    def run(self, mine: Slot) -> None:
        """Queue up, and return when the request has an answer or an error."""
        taken: list[Slot] = []
        try:
            with self._changed:
                self._waiting.append(mine)
                self._arrived.notify()
                while self._leader is not None and not mine.done:
                    self._changed.wait()
                if mine.done:
                    return
                self._leader = mine
                self._arrived.wait_for(lambda: len(self._waiting) >= self._expected, self._pause)
                taken, self._waiting = self._waiting, []
            begun = time.monotonic()
            self._lead(mine, taken)
            # With a pause more callers come, but their turn begins later.
            self._pause = min(0.02, 0.25 * (time.monotonic() - begun))
            self._leave(mine, taken)
        except BaseException:
            # Only this caller was interrupted, perhaps after the commit.
            for slot in taken:
                if not slot.done:
                    slot.error = OutcomeUnknown(
                        "the transaction was interrupted; repeat the call with the same key (until"
                        " then it counts as spent)"
                    )
            self._leave(mine, taken)
            raise

    def _lead(self, mine: Slot, taken: Sequence[Slot]) -> None:
        try:
            self._carry_out(taken)
        except Exception as error:
            for slot in taken:
                slot.error = error if slot is mine else _copied(error)

    def _leave(self, mine: Slot, taken: Sequence[Slot]) -> None:
        """Wake all callers, and pass the lead on; safe to repeat."""
        with self._changed:
            for slot in (mine, *taken):
                slot.done = True
            self._waiting = [slot for slot in self._waiting if not slot.done]
            self._expected = len(taken) + len(self._waiting)
            if self._leader is mine:
                self._leader = None
            self._changed.notify_all()


def _copied(error: Exception) -> Exception:
    """The same error for another thread, which adds its own traceback."""
    if not isinstance(error, LedgerError):
        return error
    other = type(error)(*error.args)
    other.__cause__ = error.__cause__
    return other
