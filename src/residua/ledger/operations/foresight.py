"""Deciding what is likely to be asked next, while the store commits.

Decisions are pure and remembered (`rules.decided`), and a leader that has sent its transaction has
nothing to do until the server answers. A budget that was asked the same query in two turns is taken
to be asked it again, as often as in the last one. Those decisions are made meanwhile, one after
another, until the answer is there; the next turn finds them ready. Where the guess was wrong, time
is lost that the caller spent waiting anyway; so only decisions that are known to be quick are made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from residua.filters.state import State
from residua.ledger.domain import rules
from residua.ledger.domain.budget_row import Entry
from residua.ledger.domain.described_query import Asked
from residua.ledger.operations.spending import Spend
from residua.ledger.operations.unit_of_work import Page

T = TypeVar("T")

_QUICK = 0.0005
"""Seconds that a decision may take; about what a server needs to commit."""
_PATIENCE, _REST = 3, 1.0
"""How often in a row it may take longer, and for how many seconds it is left alone after that."""
_MOST = 4096


class Foresight:
    """Of one gate; used by who leads there."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        """What each budget was asked last, by its description."""
        self._rests: dict[str, float] = {}
        """Until when queries are left alone, by their description."""
        self._slow: dict[str, int] = {}
        """How often in a row they took long."""

    def look_ahead(self, page: Page, spends: Iterable[Spend], answered: Callable[[], bool]) -> None:
        """Decide what may follow these, which have been done on a page, until `answered`."""
        repeated: list[tuple[Entry, Asked]] = []
        states: dict[str, State] = {}
        last: dict[str, str] = {}
        for each in spends:
            for name in each.budgets:
                for entry in page.line(name):
                    last[entry.name] = each.asked.text
                    if self._last.get(entry.name) == each.asked.text and not entry.holds:
                        repeated.append((entry, each.asked))
                        states[entry.name] = entry.state
        _keep(self._last, last)
        for entry, asked in repeated:
            if self._rests and self._rests.get(asked.text, 0.0) > time.monotonic():
                continue
            if answered():
                return
            begun = time.thread_time()
            states[entry.name] = _decided(entry, states[entry.name], asked)
            self._note(asked.text, time.thread_time() - begun)

    def _note(self, text: str, took: float) -> None:
        if took <= _QUICK:
            self._slow.pop(text, None)
            return
        times = self._slow.get(text, 0) + 1
        _keep(self._slow, {text: times})
        if times >= _PATIENCE:
            _keep(self._rests, {text: time.monotonic() + _REST})


def _decided(entry: Entry, state: State, asked: Asked) -> State:
    """The state that follows, with everything that a record says of it."""
    decision = rules.decided(entry.filter, state, asked.query, entry.relation)
    if decision.admitted:
        rules.admitted(asked, decision)
        entry.filter.state_to_json(decision.state)
    return decision.state


def _keep(known: dict[str, T], more: Mapping[str, T]) -> None:
    if len(known) >= _MOST:
        known.clear()
    known.update(more)
