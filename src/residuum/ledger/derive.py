"""Rows from records: what `budgets`, `keys` and `holds` say follows from the chains alone.

Recovery re-applies lost records with it; a test rebuilds whole ledgers. Records of one request are
in several chains; each is applied to its own budget, and a hold or a key once.
"""

from __future__ import annotations

from residuum.ledger import clock
from residuum.ledger.entry import Entry, new_entry
from residuum.ledger.page import Page
from residuum.ledger.requests import held_now
from residuum.ledger.rows import HoldRow, KeyRow
from residuum.records import Record, canonical, state_after


def apply(page: Page, record: Record, id: int) -> None:
    """Take over a record that is the next of its chain; a new budget gets the number `id`."""
    body = record.body
    if record.type == "create":
        entry = new_entry(id, record.budget, body["time"], body)
        if entry.window is not None:
            entry.window_ends = clock.boundary(entry.created, entry.window, body["time"])
        page.add(entry)
        if entry.parent is not None:
            parent = page.entry(entry.parent)
            parent.children = "quotas" if entry.partition is None else "partitions"
            page.touch(parent)
    else:
        entry = page.entry(record.budget)
    page.adopt(entry, record, canonical(state_after(record)))
    _follow(page, entry, record)


def _follow(page: Page, entry: Entry, record: Record) -> None:
    body, type = record.body, record.type
    if type in ("spend", "commit", "hold") and body["admitted"]:
        entry.spent = True
    if type == "hold" and body["admitted"]:
        _held(page, entry, record)
    elif type in ("commit", "cancel", "expire") and body.get("admitted", True):
        _ended(page, entry, record)
    elif type == "refresh":
        entry.generation = body["generation"]
        assert entry.window is not None
        entry.window_ends = clock.boundary(entry.created, entry.window, body["time"])
    elif type in ("retire", "recover"):
        entry.retired = True
    if type in ("spend", "commit", "hold"):
        who = (body["by"], body["key"])
        if who not in page.keys:
            held = held_now(page, [entry])
            page.add_key(*who, KeyRow(body["request"], record.budget, record.seq, held))


def _held(page: Page, entry: Entry, record: Record) -> None:
    body = record.body
    members = tuple(each["budget"] for each in body["group"])
    row = page.holds.get(body["hold"])
    if row is None:
        row = HoldRow(
            body["hold"], body["by"], body["key"], members, canonical(body["mechanism"]),
            body["assumed"], body["time"], body["expires"], "open",
        )  # fmt: skip
        page.new_hold(row)
    if row.status == "open":
        entry.holds = (*entry.holds, row.id)


def _ended(page: Page, entry: Entry, record: Record) -> None:
    body = record.body
    row = page.holds.get(body["hold"])
    entry.holds = tuple(id for id in entry.holds if id != body["hold"])
    if row is None or row.status != "open":
        return
    ended = {"commit": "committed", "cancel": "cancelled", "expire": "expired"}[record.type]
    by = f"{record.budget}\n{record.seq}\n" if ended == "committed" else None
    page.close_hold(row, ended, by)
