"""What this process itself wrote last, so that it need not be read again.

A transaction leaves its budgets behind as it wrote them. The next one that spends from the same
budgets decides on that, and the store says whether it still holds: SQLite before the decision,
since nobody else writes meanwhile; PostgreSQL together with the writes, which are made only where
the rows, and what `meta` says, are what they were then (`guarded.py`). Where they are not, nothing
was written and everything is read afresh; and so it is for a while, because where another process
wrote, it is likely to write again.

Nothing is remembered for longer than a second from when it was read. For as long the database's
time is carried on by this process's clock, and so is never ahead. Budgets with open holds, in
partitions, or retired are not remembered: what a spend asks of these is more than their own rows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from residua.ledger.domain import clock
from residua.ledger.domain.budget_row import Entry
from residua.ledger.operations.unit_of_work import Page

LIFETIME = 1.0
DISTRUST = 0.5
"""Seconds for which budgets are read afresh after what was remembered proved old."""
_MOST = 4096


class _Known(NamedTuple):
    """A budget as it was left, its row, and when that was last read."""

    entry: Entry
    row: Mapping[str, Any]
    read: float


class Memory:
    """Of one gate; used by who leads there."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._out: dict[str, float] = {}
        """When those were read that were recalled and have not been kept again."""
        self._doubted: dict[str, float] = {}
        """Until when budgets are read afresh."""
        self._seen: object = None
        """What the store said of itself in the transaction that this is from."""
        self._facts: Mapping[str, str] = {}
        self._read, self._base = -LIFETIME, 0.0
        """When the time was read, by this process's clock, and what it was."""

    def recall(self, page: Page, names: Collection[str], seen: object) -> bool:
        """Put these budgets on a page as they were left; False where that is not known.

        They are forgotten with that, until they are kept again.
        """
        now = time.monotonic()
        if self._out:
            self._doubt(now)
        known = [each for name in names if (each := self._known.pop(name, None)) is not None]
        if seen != self._seen or now - self._read > LIFETIME:
            return False
        if len(known) < len(names) or now - min(each.read for each in known) > LIFETIME:
            return False
        if self._doubted and any(self._doubted.get(name, now) > now for name in names):
            return False
        page.now = clock.written(self._base + (now - self._read))
        if any(clock.is_over(each.entry.window_ends, page.now) for each in known):
            return False
        self._out = {each.entry.name: each.read for each in known}
        page.recall([(each.entry, each.row) for each in known], self._facts)
        return True

    def keep(self, page: Page, seen: object) -> None:
        """Remember what a page has written."""
        if seen != self._seen or len(self._known) > _MOST:
            self._known.clear()
        self._seen = seen
        times, self._out = self._out, {}
        if page.recalled is None:
            self._facts, self._read, self._base = page.facts, page.read, clock.seconds(page.now)
        for name, entry in page.entries.items():
            row = page.written.get(name)
            if row is not None and not (entry.holds or entry.partition or entry.retired):
                self._known[name] = _Known(entry, row, times.get(name, page.read))

    def _doubt(self, now: float) -> None:
        """What was recalled last was not kept: it proved old."""
        self._doubted = {name: until for name, until in self._doubted.items() if until > now}
        self._doubted.update(dict.fromkeys(self._out, now + DISTRUST))
        self._out = {}

    def forget(self, names: Iterable[str]) -> None:
        """These are about to change, and who changes them may not come to say how."""
        for name in names:
            self._known.pop(name, None)
