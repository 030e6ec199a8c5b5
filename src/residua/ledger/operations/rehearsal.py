"""Deciding before queueing, so that a slow decision does not keep everyone else waiting.

Decisions are pure and remembered (`rules.decided`), so a caller may decide beforehand, on the state
it sees, and the gate finds the answer ready. A query that is new is rehearsed once: where the
budgets stood when this process asked them last, if it did, and as the store has them otherwise. If
that was quick it is taken to be quick at every budget. One that proved slow, there or at the gate,
is rehearsed every time, as the store has the budgets then, and if the state moved meanwhile the
gate sends it back instead of deciding it while others wait. After a few rounds it is decided at the
gate all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import TypeVar

from residua.errors import ResiduaError
from residua.ledger.domain import rules
from residua.ledger.domain.rules import Ruling, Standing
from residua.ledger.operations.holding import Reserve
from residua.ledger.operations.requests import Done, Request
from residua.ledger.operations.spending import Asking, Spend, judged
from residua.ledger.operations.unit_of_work import Page

T = TypeVar("T")

ROUNDS = 4
QUICK = 0.01
"""Seconds under which a decision is not worth a rehearsal."""
_SLOW = 0.25
"""Seconds over which the gate does not decide unless it must."""
_MOST = 10000


class Unready(Exception):
    """The decision was rehearsed on another state, and is slow."""


class Rehearsals:
    """How long decisions took, and which are ready."""

    def __init__(self) -> None:
        self._took: dict[Hashable, float] = {}
        self._longest: dict[Hashable, float] = {}
        """What a query took lately at whichever budget it took longest, by its description."""
        self._ready: dict[Hashable, None] = {}
        self._stood: dict[Hashable, Mapping[str, Standing]] = {}
        """Where budgets stood after the last request that named just these."""

    def wanted(self, request: Request) -> bool:
        """Whether a request should be decided before it queues."""
        if not isinstance(request, Spend | Reserve):
            return False
        return not self.quick(request.budgets, request.asked.text)

    def quick(self, budgets: tuple[str, ...], text: str) -> bool:
        """Whether a query is known to be decided at once."""
        known = self._took.get((budgets, text))
        return (self._longest.get(text, _SLOW) if known is None else known) < QUICK

    def tried(self, request: Request) -> bool:
        """Decide on where the budgets stood lately: whether that is known, and it was quick."""
        assert isinstance(request, Asking)
        standings = self._stood.get(request.budgets)
        if standings is None:
            return False
        rule, every = _rule(request), tuple(standings.values())
        if any(rules.unprovable_on(standing, request.asked) for standing in every):
            return True  # rejected at the gate, without a decision
        before = time.thread_time()
        # If it fails, it does at the gate, which says so.
        with suppress(Exception):
            all(rule(standing, request.asked, every).admitted for standing in every)
        seconds = time.thread_time() - before
        self._note(request, seconds)
        return seconds < QUICK

    def rehearse(self, page: Page, request: Request) -> None:
        """Decide on what a page shows; only the time and the memory of it stay."""
        assert isinstance(request, Asking)
        # By the clock, a crowd that rehearses would take itself to be slow, and rehearse again.
        before = time.thread_time()
        with suppress(ResiduaError):
            judged(page, request, _rule(request))
        self._note(request, time.thread_time() - before)
        _keep(self._ready, _situation(page, request), None)

    def answered(self, request: Request, done: object) -> None:
        """A request was answered at the gate."""
        if isinstance(done, Done) and isinstance(request, Asking):
            _keep(self._stood, request.budgets, done.standings.all)

    def decided(self, request: Request, seconds: float) -> None:
        """A request was decided at the gate; one that took long is rehearsed from now on."""
        if seconds >= QUICK and isinstance(request, Spend | Reserve):
            self._note(request, seconds)

    def _note(self, request: Asking, seconds: float) -> None:
        _keep(self._took, _question(request), seconds)
        text = request.asked.text
        _keep(self._longest, text, max(seconds, 0.5 * self._longest.get(text, 0.0)))

    def unready(self, page: Page, request: Request) -> bool:
        """Whether a decision would keep others waiting."""
        if not isinstance(request, Spend | Reserve):
            return False
        if self._took.get(_question(request), 0.0) < _SLOW:
            return False
        known = (request.principal, request.key) in page.keys
        return not known and _situation(page, request) not in self._ready


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
