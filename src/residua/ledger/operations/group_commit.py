"""Group commit: callers queue up, and the first waiter becomes the leader of all that wait.

A caller that finds the queue idle leads. A leader takes everything that waits. When that is done it
wakes each caller through that caller's lock, and passes the lead to the first that arrived
meanwhile. The cost of a turn hardly depends on the number of requests in it, and callers that were
just answered often have another request; so a leader waits for them briefly, for a share of the
time that the last turn took. A caller that is alone does not wait. An interrupted caller leaves the
queue at any point: it passes the lead on, and wakes the callers whose work it took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST_PAUSE, SHARE = 0.02, 0.25
"""How long a leader waits for more callers, in seconds, and as a share of the last turn."""


class Ticket(Generic[T]):
    """The requests of one caller, and its place in the queue."""

    __slots__ = ("_turn", "done", "taken", "wanted")

    def __init__(self, wanted: Sequence[T]):
        self.wanted = wanted
        self.done = False
        self.taken: list[Ticket[T]] = []
        """The tickets whose work it took as the leader."""
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
        """How many callers to expect: those of the last turn, and those that waited then."""
        self._patience = 0.0
        self._begun = 0.0
        self._gathered: Lock | None = None
        """Released when as many wait as are expected; None where no leader waits for that."""

    def leads(self, ticket: Ticket[T]) -> bool:
        """Queue up and wait: True if this caller must lead now, False if its work was done.

        A caller that is interrupted from here on, until all that it took is finished, must `leave`.
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
        """Take everything that waits, as the leader."""
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
        """Wake the callers whose work was done, and pass the lead to the first waiter, if any."""
        for ticket in leader.taken:
            ticket.finish()
        with self._lock:
            self._around = max(1, len(leader.taken) + len(self._waiting))
            self._patience = min(LONGEST_PAUSE, SHARE * (time.monotonic() - self._begun))
            self._pass_on(leader)
        # The leader is among them: the cycle would wait for the garbage collector.
        leader.taken = []

    def leave(self, ticket: Ticket[T]) -> list[Ticket[T]]:
        """Leave the queue; returns the tickets that it took as leader and did not finish."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            self._pass_on(ticket)
        return [each for each in ticket.taken if not each.done]

    def _pass_on(self, leader: Ticket[T]) -> None:
        """Pass the lead to the first waiter, if any; do nothing if it was passed on before."""
        if self._leader is leader:
            self._gathered = None
            self._leader = self._waiting[0] if self._waiting else None
        following = self._leader
        # Perhaps a second time, which does no harm to a caller that is awake.
        if following in self._waiting and following._turn.locked():
            following._turn.release()
