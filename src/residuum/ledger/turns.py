"""Whose turn it is: callers queue up, and one of them leads for all that wait.

Whoever comes to an idle queue leads. A leader takes everything that waits, passes the lead on to
the first who came meanwhile as soon as it can, and wakes those whose work is done, each by a lock
of its own: nobody else is woken. Whoever is interrupted, wherever that was, leaves: the lead goes
on, and those whose work was taken are woken.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Ticket(Generic[T]):
    """What one caller wants done, and its place in the queue."""

    __slots__ = ("_turn", "done", "taken", "wanted")

    def __init__(self, wanted: Sequence[T]):
        self.wanted = wanted
        self.done = False
        self.taken: list[Ticket[T]] = []
        """Whose work it has taken, when it led."""
        self._turn = Lock()
        self._turn.acquire()

    def finish(self) -> None:
        """Wake the caller: it is done."""
        self.done = True
        if self._turn.locked():
            self._turn.release()


class Turns(Generic[T]):
    """The queue."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Ticket[T]] = []
        self._leader: Ticket[T] | None = None

    def leads(self, ticket: Ticket[T]) -> bool:
        """Queue up, and wait: True for who must lead now, False for whom it was done.

        Who is interrupted from here on, until all is finished that it took, must `leave`.
        """
        with self._lock:
            self._waiting.append(ticket)
            if self._leader is None:
                self._leader = ticket
                return True
        ticket._turn.acquire()
        return not ticket.done

    def take(self, leader: Ticket[T]) -> list[Ticket[T]]:
        """Everything that waits, for who leads."""
        with self._lock:
            leader.taken, self._waiting = self._waiting, []
        return leader.taken

    def pass_on(self, leader: Ticket[T]) -> None:
        """Let the first who waits lead, if anyone does; nothing where it was passed on before."""
        with self._lock:
            self._pass_on(leader)

    def _pass_on(self, leader: Ticket[T]) -> None:
        if self._leader is leader:
            self._leader = self._waiting[0] if self._waiting else None
        following = self._leader
        # Perhaps a second time: who is awake does not mind.
        if following in self._waiting and following._turn.locked():
            following._turn.release()

    def leave(self, ticket: Ticket[T]) -> list[Ticket[T]]:
        """Go away: what nobody took is not done. What it took itself and did not finish."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            self._pass_on(ticket)
        return [each for each in ticket.taken if not each.done]
