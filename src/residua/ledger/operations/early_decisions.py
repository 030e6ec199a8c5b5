"""Decide slow queries off the lock, so that they do not keep other callers waiting.

Decisions are pure, so a caller may decide before it queues, on the state that it sees, and the
committer finds the ruling (`early_rulings.py`). What a closed form decides (`closed_forms.py`) is
never decided early. Any other query that is new on a budget is decided early once: on the last
known snapshots of its budgets where this process has them, and otherwise on what the store has. If
that is quick, it is decided under the lock from then on. One that proves slow, there or under the
lock, is decided early each time, on what the store has then; if the state moves meanwhile, the
committer returns it instead of deciding it while others wait. A commit of a hold is treated alike.

A caller that computes in its own thread gets its way after a few attempts: it is then decided under
the lock all the same. One that computes elsewhere, such as the service, claims the budgets instead
(`claims.py`).

Some decisions are slow on one budget only, such as a spend beside many open holds. The committer
decides what is quick first, and then one that is slow; the others are returned and queue again, so
that spends from other budgets wait for one of them at most.

Without the last known snapshots, each new query costs a read transaction: with 16 threads and a
new query each time, PostgreSQL then does less than half as many spends a second.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import TypeVar

from residua.errors import ResiduaError
from residua.ledger.domain import rules
from residua.ledger.domain.closed_forms import is_simple
from residua.ledger.domain.described_query import Asked
from residua.ledger.domain.rules import Rule, Standing
from residua.ledger.operations.early_rulings import (
    Compute,
    Found,
    Rulings,
    are_closed_forms,
    commit_key,
    here,
    short_of,
    spending_key,
    timed,
)
from residua.ledger.operations.holding import Commit, Reserve, places_of
from residua.ledger.operations.requests import (
    Done,
    Request,
    charged,
    check_relation,
    relation_rulings,
)
from residua.ledger.operations.spending import Asking, Spend
from residua.ledger.operations.unit_of_work import Page

T = TypeVar("T")

ATTEMPTS = 4
LOSSES = 2
"""Attempts after which the budgets are claimed for a query that is decided elsewhere."""
QUICK = 0.01
"""Seconds under which a decision need not be made early."""
SLOW = 0.25
"""Seconds over which the committer does not decide unless it must."""
_MOST = 10000


class Stale(Exception):
    """The decision is slow, and was made on another state."""


class EarlyDecisions:
    """How long decisions took, and which are made already."""

    def __init__(self) -> None:
        self.rulings = Rulings()
        self._took: dict[Hashable, float] = {}
        self._closed: dict[Hashable, None] = {}
        """Spends and holds that closed forms decide, where there are no open holds."""
        self._last: dict[Hashable, Mapping[str, Standing]] = {}
        """The snapshots of budgets after the last request that named exactly these."""
        self._holds: dict[Hashable, tuple[tuple[str, ...], Asked]] = {}
        """The budgets and the query of each hold whose commit may be slow."""

    def wanted(self, request: Request) -> bool:
        """Whether a request should be decided before it queues."""
        if isinstance(request, Spend | Reserve):
            return not self._is_quick(_question(request), request.budgets, request.asked)
        if isinstance(request, Commit) and request.id in self._holds:
            members, asked = self._holds[request.id]
            return not self._is_quick(_commits(members, asked), members, asked)
        return False

    def _is_quick(self, question: Hashable, budgets: tuple[str, ...], asked: Asked) -> bool:
        """Whether a query is decided quickly, as far as is known before the store is asked."""
        known = self._took.get(question)
        if known is not None:
            return known < QUICK
        standings = self._last.get(budgets)
        return is_simple(asked) if standings is None else are_closed_forms(asked, standings)

    def decide_on_last(self, request: Request, compute: Compute = here) -> bool:
        """Decide on the last known snapshots: whether there are any, and it was quick."""
        standings = self._last.get(request.budgets) if isinstance(request, Asking) else None
        if standings is None:
            return False
        assert isinstance(request, Asking)
        return self._decide(_rule(request), request, standings, compute) < QUICK

    def decide(self, page: Page, request: Request, compute: Compute = here) -> None:
        """Decide on what the store has, unless a closed form does or the key was used before.

        What is wrong with a request is said under the lock.
        """
        if (request.principal, request.key) in page.keys:
            return
        with suppress(ResiduaError):
            if isinstance(request, Commit):
                self._decide_commit(page, request, compute)
                return
            assert isinstance(request, Asking)
            standings = _standings(page, request)
            if standings is None:
                return
            _keep(self._last, request.budgets, standings)
            if not are_closed_forms(request.asked, standings):
                self._decide(_rule(request), request, standings, compute)

    def _decide(
        self, rule: Rule, request: Asking, standings: Mapping[str, Standing], compute: Compute
    ) -> float:
        found = compute(timed, rules.judge, rule, request.asked, dict(standings))
        self.rulings.add(spending_key(rule, request.asked, standings), found)
        took = _seconds(found, compute)
        _keep(self._took, _question(request), took)
        return took

    def _decide_commit(self, page: Page, request: Commit, compute: Compute) -> None:
        row = page.holds.get(request.id)
        if row is None or row.status != "open":
            return
        entries = [page.entry(name) for name in row.members]
        standings, places = places_of(page, row.id, entries)
        _keep(self._last, row.members, standings)
        if not are_closed_forms(row.asked, standings):
            found = compute(timed, rules.judge_commit, standings, places)
            self.rulings.add(commit_key(standings, places), found)
            _keep(self._took, _commits(row.members, row.asked), _seconds(found, compute))

    def note_answer(self, request: Request, done: object) -> None:
        """Remember the snapshots of the budgets after a request."""
        if isinstance(done, Done) and isinstance(request, Asking):
            _keep(self._last, request.budgets, done.standings.all)

    def note_time(self, page: Page, request: Request, seconds: float) -> None:
        """Remember how long a decision under the lock took, if it should be early next time."""
        question = _question_on(page, request)
        if question is not None and seconds >= QUICK:
            _keep(self._took, question, seconds)

    def time_on(self, page: Page, request: Request) -> float:
        """About how long the committer would take to decide: 0 where the ruling is there.

        Infinity where nothing is known of a decision that no closed form makes.
        """
        question = _question_on(page, request)
        if question is None or (request.principal, request.key) in page.keys:
            return 0.0
        known = self._took.get(question)
        if (known is not None and known < QUICK) or (question in self._closed and not page.holds):
            return 0.0
        try:
            return self._unknown(page, request, known)
        except ResiduaError:
            return 0.0  # It fails before anything is decided.

    def _unknown(self, page: Page, request: Request, known: float | None) -> float:
        if isinstance(request, Commit):
            row = page.holds[request.id]
            if row.status != "open":
                return 0.0
            members, asked = row.members, row.asked
            standings, places = places_of(page, row.id, [page.entry(name) for name in members])
            key = commit_key(standings, places)
            _keep(self._holds, request.id, (members, asked))
        else:
            assert isinstance(request, Asking)
            found = _standings(page, request)
            if found is None:
                return 0.0
            members, asked, standings = request.budgets, request.asked, found
            key = spending_key(_rule(request), asked, standings)
        if known is None and are_closed_forms(asked, standings):
            _keep(self._closed, (members, short_of(asked)), None)
            return 0.0
        # The next attempt knows then that it is to be decided early.
        _keep(self._last, members, standings)
        if key in self.rulings:
            return 0.0
        return math.inf if known is None else known


def _seconds(found: Found, compute: Compute) -> float:
    """The seconds that a decision takes in this process, which has not the caches of another one.

    A worker that has asked the same of another budget answers at once; here, and under the lock,
    the same decision could take a minute.
    """
    return found.seconds if compute is here else found.seconds_anywhere


def _rule(request: Asking) -> Rule:
    return rules.hold if isinstance(request, Reserve) else rules.spend


def _standings(page: Page, request: Asking) -> dict[str, Standing] | None:
    """Snapshots of the budgets that a request charges; None where nothing is to be decided."""
    check_relation(request.asked, request.assumed)
    entries = charged(page, request.budgets)
    if relation_rulings(request.asked, entries):
        return None
    return {entry.name: page.standing(entry) for entry in entries}


def _question(request: Asking) -> Hashable:
    return request.budgets, short_of(request.asked)


def _commits(members: tuple[str, ...], asked: Asked) -> Hashable:
    return "commit", members, short_of(asked)


def _question_on(page: Page, request: Request) -> Hashable | None:
    """The query of a request; None where it decides nothing."""
    if isinstance(request, Spend | Reserve):
        return _question(request)
    if isinstance(request, Commit) and request.id in page.holds:
        row = page.holds[request.id]
        return _commits(row.members, row.asked)
    return None


def _keep(known: dict[Hashable, T], key: Hashable, value: T) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value
