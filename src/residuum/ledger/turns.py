"""Whose turn it is: callers queue up, and one of them leads for all that wait.

Whoever comes to an idle queue leads. A leader takes everything that waits, and when that is done
wakes each caller by a lock of its own, and passes the lead on to the first who came meanwhile. What
a turn costs hardly depends on how many are in it, and those who were just answered may well come
again; so a leader waits for them for a little while, a part of what the last turn took. Nobody
waits who is alone.
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

    __slots__ = ("_leads", "_turn", "done", "wanted")

    def __init__(self, wanted: Sequence[T]):
        self.wanted = wanted
        self.done = False
        self._leads = False
        self._turn = Lock()
        self._turn.acquire()


class Turns(Generic[T]):
    """The queue."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: list[Ticket[T]] = []
        self._led = False
        self._around = 1
        """How many may come: those of the last turn, and those who waited then."""
        self._patience = 0.0
        self._begun = 0.0
        self._gathered: Lock | None = None
        """Let go when as many wait as are around; None where nobody waits for that."""

    def leads(self, ticket: Ticket[T]) -> bool:
        """Queue up, and wait: True for who must lead now, False for whom it was done."""
        with self._lock:
            self._waiting.append(ticket)
            if not self._led:
                self._led = ticket._leads = True
                return True
            if self._gathered is not None and len(self._waiting) >= self._around:
                self._gathered.release()
                self._gathered = None
        try:
            ticket._turn.acquire()
        except BaseException:
            self.leave(ticket)
            raise
        return not ticket.done

    def take(self) -> list[Ticket[T]]:
        """Everything that waits, for who leads."""
        with self._lock:
            short = len(self._waiting) < self._around and self._patience > 0
            gathered = self._gathered = Lock() if short else None
        if gathered is not None:
            gathered.acquire()
            gathered.acquire(timeout=self._patience)
        with self._lock:
            self._gathered = None
            taken, self._waiting = self._waiting, []
        self._begun = time.monotonic()
        return taken

    def done(self, taken: Sequence[Ticket[T]]) -> None:
        """Wake those for whom it was done, and let the first who waits lead, if anyone does."""
        for ticket in taken:
            ticket.done = True
            ticket._turn.release()
        with self._lock:
            self._around = max(1, len(taken) + len(self._waiting))
            self._patience = min(LONGEST_PAUSE, SHARE * (time.monotonic() - self._begun))
            self._pass_on()

    def leave(self, ticket: Ticket[T]) -> None:
        """Somebody was interrupted while waiting: what nobody took is not done."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                if ticket._leads:
                    self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            first = self._waiting[0]
            first._leads = True
            first._turn.release()
        else:
            self._led = False
