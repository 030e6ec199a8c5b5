"""Spend: decide and debit at once, all budgets or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from residua.ledger.domain import rules
from residua.ledger.domain.budget_row import Entry
from residua.ledger.domain.described_query import Asked
from residua.ledger.domain.rules import Ruling
from residua.ledger.operations.requests import (
    Done,
    Request,
    append_group,
    binding,
    charged,
    check_holds_provable,
    check_relation,
    held_now,
    relation_rulings,
    replay,
    request_hash,
    standings_now,
    stated_holds,
)
from residua.ledger.operations.unit_of_work import Page
from residua.ledger.storage.rows import KeyRow
from residua.records import Canonical
from residua.sized_cache import sized_cache


@dataclass(frozen=True)
class Asking(Request):
    """A request that asks for a query, under a key."""

    budgets: tuple[str, ...]
    one: bool
    asked: Asked
    under: str
    assumed: bool
    own_key: bool

    @property
    def fresh(self) -> bool:
        return self.own_key

    @property
    def names(self) -> tuple[str, ...]:
        return self.budgets

    @property
    def key(self) -> str:
        return self.under


@dataclass(frozen=True)
class Spend(Asking):
    """A spend."""

    @property
    def request(self) -> str:
        """The fields that distinguish it from other requests."""
        return _request(self.budgets, self.asked.text, self.assumed)

    def run(self, page: Page) -> Done:
        request = self.request
        before = replay(page, self, request, self.one)
        if before is not None:
            return before
        entries, rulings = judged(page, self, rules.spend)
        return settled(page, "spend", self, request, entries, rulings, {})


@sized_cache(maxsize=4096)
def _request(budgets: tuple[str, ...], text: str, assumed: bool) -> str:
    return request_hash("spend", budgets, {"mechanism": text, "assumed": assumed})


def judged(page: Page, asking: Asking, rule: rules.Rule) -> tuple[list[Entry], dict[str, Ruling]]:
    """The budgets that a request charges, and what a rule says of each."""
    check_relation(asking.asked, asking.assumed)
    entries = charged(page, asking.budgets)
    rulings = relation_rulings(asking.asked, entries)
    if not rulings:
        standings = {entry.name: page.standing(entry) for entry in entries}
        rulings = page.early.judge(rule, asking.asked, standings)
    return entries, rulings


def settled(
    page: Page,
    type: str,
    asking: Asking,
    request: str,
    entries: Sequence[Entry],
    rulings: Mapping[str, Ruling],
    fields: Mapping[str, Any],
) -> Done:
    """Record a decision on every budget of a group; debit them all, or none."""
    refused_by, reason = binding(rulings, entries)
    admitted = refused_by is None
    after: dict[str, str] = {}
    held: dict[str, Canonical] = {}
    if admitted and type != "hold":
        after = {entry.name: entry.moved(rulings[entry.name].state) for entry in entries}
    for entry in entries if admitted else ():
        ruling = rulings[entry.name]
        if len(ruling.held) > ruling.kept:
            open_ = [page.holds[id].asked for id in entry.holds if id != fields.get("hold")]
            open_ += [asking.asked] * (type == "hold")
            check_holds_provable(entry, ruling, open_)
            text = after.get(entry.name, entry.state_text)
            held[entry.name] = stated_holds(page, entry, text, ruling.held[ruling.kept :])
    common = {
        "key": asking.under,
        "request": request,
        "mechanism": asking.asked.written,
        "assumed": asking.assumed,
        "admitted": admitted,
        "binding": refused_by,
        "reason": reason,
        **fields,
    }
    # From here on nothing fails.
    # Each budget records what the query costs it.
    reasons = {name: ruling.reason for name, ruling in rulings.items()} if admitted else None
    made = append_group(page, type, asking.principal, entries, common, after, held, reasons)
    if admitted:
        for entry in entries:
            entry.spent, entry.held = True, rulings[entry.name].held
    first = made[asking.budgets[0]]
    # The first of the group, as `derive` finds it.
    place = next(iter(made.values()))
    row = KeyRow(request, place.budget, place.seq, held_now(entries))
    page.add_key(asking.principal, asking.under, row)
    return Done(
        first,
        {name: (each.seq, each.hash) for name, each in made.items()},
        standings_now(page, asking.asked, asking.budgets, asking.one, entries),
        False,
    )
