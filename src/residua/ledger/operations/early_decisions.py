"""Slow queries are decided off the lock, so that they do not keep other callers waiting.

Decisions are pure and cached (`rules.decided`), so a caller may decide before it queues, on the
state that it sees, and the committer finds the answer in the cache. A query that is new is decided
early once: on the last known snapshots of its budgets where this process has them, and otherwise on
what the store has. If that is quick, the query counts as quick on every budget. One that proves
slow, there or under the lock, is decided early each time, on what the store has then; if the state
moves meanwhile, the committer returns it instead of deciding it while others wait. After a few
attempts it is decided under the lock all the same.

Some decisions are slow on one budget only, such as a spend beside many open holds. The committer
decides what is quick first, and then one that is slow; the others are returned and queue again, so
that spends from other budgets wait for one of them at most.

Without the last known snapshots, each new query costs a read transaction: with 16 threads and a
new query each time, PostgreSQL then does less than half as many spends a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import TypeVar

from residua.errors import ResiduaError
from residua.ledger.domain import rules
from residua.ledger.domain.rules import Ruling, Standing
from residua.ledger.operations.holding import Commit, Reserve
from residua.ledger.operations.requests import Done, Request
from residua.ledger.operations.spending import Asking, Spend, judged
from residua.ledger.operations.unit_of_work import Page

T = TypeVar("T")

ATTEMPTS = 4
QUICK = 0.01
"""Seconds under which a decision need not be made early."""
_SLOW = 0.25
"""Seconds over which the committer does not decide unless it must."""
_MOST = 10000


class Stale(Exception):
    """The decision is slow, and was made on another state."""


class EarlyDecisions:
    """How long decisions took, and which are made already."""

    def __init__(self) -> None:
        self._took: dict[Hashable, float] = {}
        self._longest: dict[Hashable, float] = {}
        """The time of a query on the budget where it recently took longest, by its description."""
        self._made: dict[Hashable, None] = {}
        self._commits: dict[Hashable, float] = {}
        """The time of the last commit of a hold on budgets, by their names."""
        self._last: dict[Hashable, Mapping[str, Standing]] = {}
        """The snapshots of budgets after the last request that named exactly these."""

    def wanted(self, request: Request) -> bool:
        """Whether a request should be decided before it queues."""
        if not isinstance(request, Spend | Reserve):
            return False
        return not self.is_quick(request.budgets, request.asked.text)

    def is_quick(self, budgets: tuple[str, ...], text: str) -> bool:
        """Whether a query, by its description, is known to be decided quickly."""
        known = self._took.get((budgets, text))
        return (self._longest.get(text, _SLOW) if known is None else known) < QUICK

    def decide_on_last(self, request: Request) -> bool:
        """Decide on the last known snapshots: whether there are any, and it was quick."""
        assert isinstance(request, Asking)
        standings = self._last.get(request.budgets)
        if standings is None:
            return False
        rule, every = _rule(request), tuple(standings.values())
        if any(rules.unprovable_on(standing, request.asked) for standing in every):
            return True  # rejected under the lock, without a decision
        before = time.thread_time()
        # What fails here fails under the lock too, which reports it.
        with suppress(Exception):
            all(rule(standing, request.asked, every).admitted for standing in every)
        seconds = time.thread_time() - before
        self._note(request, seconds)
        return seconds < QUICK

    def decide(self, page: Page, request: Request) -> None:
        """Decide on what the store has; only the time and the cached decision remain."""
        assert isinstance(request, Asking)
        # By the clock, a crowd that decides early would look slow to itself, and do it again.
        before = time.thread_time()
        with suppress(ResiduaError):
            judged(page, request, _rule(request))
        self._note(request, time.thread_time() - before)
        _keep(self._made, _situation(page, request), None)

    def note_answer(self, request: Request, done: object) -> None:
        """Remember where the budgets stand after a request."""
        if isinstance(done, Done) and isinstance(request, Asking):
            _keep(self._last, request.budgets, done.standings.all)

    def note_time(self, request: Request, seconds: float) -> None:
        """Remember how long a decision under the lock took, if it should be early next time."""
        if seconds >= QUICK and isinstance(request, Spend | Reserve):
            self._note(request, seconds)

    def note_commit(self, members: tuple[str, ...], seconds: float) -> None:
        """Remember how long a commit of a hold on budgets took."""
        if seconds >= QUICK or members in self._commits:
            _keep(self._commits, members, seconds)

    def _note(self, request: Asking, seconds: float) -> None:
        _keep(self._took, _question(request), seconds)
        text = request.asked.text
        _keep(self._longest, text, max(seconds, 0.5 * self._longest.get(text, 0.0)))

    def is_slow(self, page: Page, request: Request) -> bool:
        """Whether a decision is known to keep others waiting for a while."""
        if (request.principal, request.key) in page.keys:
            return False
        if isinstance(request, Commit):
            row = page.holds.get(request.id)
            return row is not None and self._commits.get(row.members, 0.0) >= QUICK
        known = self._took.get(_question(request), 0.0) if isinstance(request, Asking) else 0.0
        return known >= QUICK

    def is_stale(self, page: Page, request: Request) -> bool:
        """Whether a decision would keep others waiting."""
        if not isinstance(request, Spend | Reserve):
            return False
        if self._took.get(_question(request), 0.0) < _SLOW:
            return False
        known = (request.principal, request.key) in page.keys
        return not known and _situation(page, request) not in self._made


def _rule(request: Asking) -> Callable[..., Ruling]:
    return rules.hold if isinstance(request, Reserve) else rules.spend


def _question(request: Asking) -> Hashable:
    return request.budgets, request.asked.text


def _situation(page: Page, request: Asking) -> Hashable:
    found = []
    for name in request.budgets:
        if name in page.entries:
            for entry in page.line(name):
                found.append((entry.name, entry.state_text, entry.holds))
    return tuple(found), request.asked.text


def _keep(known: dict[Hashable, T], key: Hashable, value: T) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value
