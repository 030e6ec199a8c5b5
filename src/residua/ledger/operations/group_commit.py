"""Whose turn it is: callers queue up, and one of them leads for all that wait.

Whoever comes to an idle queue leads. A leader takes everything that waits, and when that is done
wakes each caller by a lock of its own, and passes the lead on to the first who came meanwhile. What
a turn costs hardly depends on how many are in it, and those who were just answered may well come
again; so a leader waits for them for a little while, a part of what the last turn took. Nobody
waits who is alone. Whoever is interrupted, wherever that was, leaves: the lead goes on, and those
whose work was taken are woken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST_PAUSE, SHARE = 0.02, 0.25
"""How long a leader waits for who may come, in seconds, and as a share of the last turn."""


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
        self._around = 1
        """How many may come: those of the last turn, and those who waited then."""
        self._patience = 0.0
        self._begun = 0.0
        self._gathered: Lock | None = None
        """Let go when as many wait as are around; None where nobody waits for that."""

    def leads(self, ticket: Ticket[T]) -> bool:
        """Queue up, and wait: True for who must lead now, False for whom it was done.

        Who is interrupted from here on, until all is finished that it took, must `leave`.
        """
        with self._lock:
            self._waiting.append(ticket)
            if self._leader is None:
                self._leader = ticket
                return True
            if self._gathered is not None and len(self._waiting) >= self._around:
                self._gathered.release()
                self._gathered = None
        ticket._turn.acquire()
        return not ticket.done

    def take(self, leader: Ticket[T]) -> list[Ticket[T]]:
        """Everything that waits, for who leads."""
        gathered = Lock()
        gathered.acquire()
        with self._lock:
            short = len(self._waiting) < self._around and self._patience > 0
            self._gathered = gathered if short else None
        if short:
            gathered.acquire(timeout=self._patience)
        with self._lock:
            self._gathered = None
            leader.taken, self._waiting = self._waiting, []
        self._begun = time.monotonic()
        return leader.taken

    def done(self, leader: Ticket[T]) -> None:
        """Wake those for whom it was done, and let the first who waits lead, if anyone does."""
        for ticket in leader.taken:
            ticket.finish()
        with self._lock:
            self._around = max(1, len(leader.taken) + len(self._waiting))
            self._patience = min(LONGEST_PAUSE, SHARE * (time.monotonic() - self._begun))
            self._pass_on(leader)
        # It is among them: what nobody needs any more would wait for the collector of garbage.
        leader.taken = []

    def leave(self, ticket: Ticket[T]) -> list[Ticket[T]]:
        """Go away: what nobody took is not done. What it took itself and did not finish."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            self._pass_on(ticket)
        return [each for each in ticket.taken if not each.done]

    def _pass_on(self, leader: Ticket[T]) -> None:
        """Let the first who waits lead, if anyone does; nothing where it was passed on before."""
        if self._leader is leader:
            self._gathered = None
            self._leader = self._waiting[0] if self._waiting else None
        following = self._leader
        # Perhaps a second time: who is awake does not mind.
        if following in self._waiting and following._turn.locked():
            following._turn.release()
