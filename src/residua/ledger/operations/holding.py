"""Reserve, commit, cancel, expire: holds by the rule of `rules.py`, all budgets or none."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from residua.errors import UnknownHold
from residua.ledger.domain import clock, rules
from residua.ledger.domain.budget_row import Entry
from residua.ledger.operations.requests import (
    LEDGER,
    Done,
    Request,
    append_group,
    held_now,
    replay,
    replayed,
    request_hash,
    standings_now,
)
from residua.ledger.operations.spending import Asking, judged, settled
from residua.ledger.operations.unit_of_work import Page
from residua.ledger.storage.rows import HoldRow, KeyRow


@dataclass(frozen=True)
class Reserve(Asking):
    """A hold for a mechanism that has not started."""

    ttl: float
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def request(self) -> str:
        """The fields that distinguish it from other requests."""
        fields = {"mechanism": self.asked.text, "assumed": self.assumed, "ttl": self.ttl}
        return request_hash("reserve", self.budgets, fields)

    def run(self, page: Page) -> Done:
        before = replay(page, self, self.request, self.one)
        if before is not None:
            return before
        entries, rulings = judged(page, self, rules.hold)
        made = max(page.now, *(entry.time for entry in entries))
        expires = clock.later(made, self.ttl)
        done = settled(
            page, "hold", self, self.request, entries, rulings,
            {"hold": self.id, "expires": expires},
        )  # fmt: skip
        if not done.record.admitted:
            return replace(done, standings=replace(done.standings, rule=rules.holds))
        members = tuple(sorted(entry.name for entry in entries))
        page.add_hold(
            HoldRow(
                self.id, self.principal, self.under, members, self.asked.text, self.assumed,
                made, expires, "open",
            )
        )  # fmt: skip
        standings = standings_now(page, self.asked, self.budgets, self.one, entries, rules.holds)
        page.set_held(self.principal, self.under, held_now(entries))
        return replace(done, standings=standings)


@dataclass(frozen=True)
class Commit(Request):
    """Debit a hold and permit its run."""

    id: str
    under: str | None
    spare: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def hold(self) -> str:
        return self.id

    @property
    def key(self) -> str | None:
        return self.under

    @property
    def request(self) -> str:
        """The fields that distinguish it from other requests."""
        return request_hash("commit", (), {"hold": self.id})

    def run(self, page: Page) -> Done:
        row = page.holds.get(self.id)
        named = () if row is None else leaves(page, row.members)
        before = replay(page, self, self.request, len(named) == 1, named)
        if before is not None:
            return before
        if row is not None and row.status == "committed" and row.ended_by is not None:
            budget, seq, kept = row.ended_by.split("\n")
            place = KeyRow("", budget, int(seq), kept or None)
            return replayed(page, place, named, len(named) == 1)
        row, entries = open_hold(page, self.id)
        for name in row.members:
            page.open_line(name)
        asking = _asking(self, row, named)
        rulings = page.early.judge_commit(*places_of(page, row.id, entries))
        done = settled(page, "commit", asking, self.request, entries, rulings, {"hold": row.id})
        if not done.record.admitted:
            return done
        page.end_hold(row, "committed", None)
        held = held_now(entries)
        row.ended_by = committed_at(done.budgets, held)
        page.set_held(asking.principal, asking.under, held)
        standings = standings_now(page, asking.asked, asking.budgets, asking.one, entries)
        return replace(done, standings=standings)


@dataclass(frozen=True)
class _Committing(Asking):
    def run(self, page: Page) -> Done:
        raise NotImplementedError


def _asking(commit: Commit, row: HoldRow, named: tuple[str, ...]) -> Asking:
    """A commit as the question that its hold asked."""
    under = commit.under if commit.under is not None else commit.spare
    one = len(named) == 1
    return _Committing(commit.principal, named, one, row.asked, under, row.assumed, False)


def places_of(
    page: Page, id: str, entries: Sequence[Entry]
) -> tuple[dict[str, rules.Standing], dict[str, int]]:
    """Snapshots of the budgets of a hold, and the place of the hold in each."""
    standings = {entry.name: page.standing(entry) for entry in entries}
    return standings, {entry.name: entry.holds.index(id) for entry in entries}


def leaves(page: Page, members: Sequence[str]) -> tuple[str, ...]:
    """The budgets of a group that are not there as the ancestors of others."""
    above = {entry.name for name in members for entry in page.line(name)[1:]}
    return tuple(sorted(name for name in members if name not in above))


def committed_at(places: Mapping[str, tuple[int, str]], held: str | None) -> str:
    """Where a group's commit is found, and the holds that were open after it, for a hold's row."""
    name = min(places)
    return f"{name}\n{places[name][0]}\n{held or ''}"


@dataclass(frozen=True)
class Cancel(Request):
    """Let a hold go: its mechanism never started."""

    id: str
    reason: str

    @property
    def hold(self) -> str:
        return self.id

    def run(self, page: Page) -> None:
        row, entries = open_hold(page, self.id)
        let_go(page, row, entries, "cancel", self.principal, self.reason)


@dataclass(frozen=True)
class Expire(Request):
    """Let a hold go whose time is over."""

    id: str = ""

    def run(self, page: Page) -> None:
        row = page.holds[self.id]
        if row.status == "open":
            entries = [page.entry(name) for name in row.members]
            let_go(page, row, entries, "expire", LEDGER, f"its time was over at {row.expires}")


def let_go(page: Page, row: HoldRow, entries: list[Entry], type: str, by: str, reason: str) -> None:
    """Record that a hold is gone from every budget of its group. No state moves."""
    append_group(page, type, by, entries, {"hold": row.id, "reason": reason}, {})
    page.end_hold(row, "cancelled" if type == "cancel" else "expired", None)


def open_hold(page: Page, id: str) -> tuple[HoldRow, list[Entry]]:
    """An open reservation and its budgets."""
    row = page.holds.get(id)
    if row is None:
        raise UnknownHold(f"there is no reservation {id!r}")
    if row.status != "open":
        raise UnknownHold(f"reservation {id!r} is not open: it was {row.status}")
    return row, [page.entry(name) for name in row.members]
