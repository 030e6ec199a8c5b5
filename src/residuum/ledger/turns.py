"""Whose turn it is: callers queue up, and one of them leads for all that wait.

Whoever comes to an idle queue leads. A leader takes everything that waits, passes the lead on to
the first who came meanwhile as soon as it can, and wakes those whose work is done, each by a lock
of its own: nobody else is woken.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Ticket(Generic[T]):
    """What one caller wants done, and its place in the queue."""

    __slots__ = ("_leads", "_turn", "done", "wanted")

    def __init__(self, wanted: Sequence[T]):
        self.wanted = wanted
        self.done = False
        self._leads = False
        self._turn = Lock()
        self._turn.acquire()

    def finish(self) -> None:
        """Wake the caller: it is done."""
        self.done = True
        self._turn.release()


class Turns(Generic[T]):
    """The queue."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Ticket[T]] = []
        self._led = False

    def leads(self, ticket: Ticket[T]) -> bool:
        """Queue up, and wait: True for who must lead now, False for whom it was done."""
        with self._lock:
            self._waiting.append(ticket)
            if not self._led:
                self._led = ticket._leads = True
                return True
        try:
            ticket._turn.acquire()
        except BaseException:
            self._leave(ticket)
            raise
        return not ticket.done

    def take(self) -> list[Ticket[T]]:
        """Everything that waits, for who leads."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken

    def pass_on(self) -> None:
        """Let the first who waits lead, if anyone does."""
        with self._lock:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            first = self._waiting[0]
            first._leads = True
            first._turn.release()
        else:
            self._led = False

    def _leave(self, ticket: Ticket[T]) -> None:
        """Somebody was interrupted while waiting: what nobody took is not done."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                if ticket._leads:
                    self._pass_on()
