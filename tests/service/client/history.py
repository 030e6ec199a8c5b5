"""A history: what clients asked, when, and what they were told; and its check against the records.

The check is a function of the history and the records alone. The records of a budget are in one
order, and each must be what a plain account of the budget would decide at that place.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import residua as rz

CAPACITY = {"a": 2.0, "b": 1.0, "c": 0.5}
GROUPS: tuple[tuple[str, ...], ...] = (("a",), ("b",), ("c",), ("a", "b"), ("c", "a"))
SIZES = (0.01, 0.02, 0.05)
TTL = 3600.0


@dataclass(frozen=True)
class Request:
    """What a client asks for; the end of a hold names the hold."""

    verb: str
    key: str
    names: tuple[str, ...]
    eps: float
    hold: str = ""

    @property
    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Those of the client's method."""
        if self.verb == "cancel":
            return [self.hold, self.key], {}
        if self.verb == "commit":
            return [self.hold, self.key], {}
        more = {"ttl": TTL} if self.verb == "reserve" else {}
        query = rz.mechanisms.PureDp(eps=self.eps)
        return [list(self.names), query], {"key": self.key, **more}


@dataclass(frozen=True)
class Entry:
    """A request, the time in which it was asked, and its outcome: told, unspent or unknown."""

    request: Request
    begun: float
    ended: float
    outcome: str
    answer: Any = None
    """A receipt, or a reservation; None for a hold that was cancelled."""


def requests(worker: str, seed: object, most: int) -> Generator[Request, Entry, None]:
    """What one client asks for; it is sent the entry of each request."""
    chance = random.Random(f"{seed} {worker}")
    for turn in range(most):
        key, names, eps = f"{worker}-{turn}", chance.choice(GROUPS), chance.choice(SIZES)
        if chance.random() < 0.5:
            yield Request("spend", key, names, eps)
            continue
        held = (yield Request("reserve", key, names, eps)).answer
        end = chance.choice(("commit", "commit", "cancel", ""))
        if held and end:
            yield Request(end, f"{key}-end", names, eps, held.id)


def check(entries: Sequence[Entry], books: Mapping[str, Sequence[Any]]) -> Counter[str]:
    """Raise where somebody was told something that the records do not bear out."""
    for name, records in books.items():
        _check_account(name, records)
    _check_groups(books)
    found: dict[str, dict[str, Any]] = {}
    cancelled: set[str] = set()
    for name, records in books.items():
        for record in records:
            if record.type == "cancel":
                cancelled.add(record.body["hold"])
            if record.key is not None:
                places = found.setdefault(record.key, {})
                assert name not in places, f"{record.key} is recorded once"
                places[name] = record
    counts: Counter[str] = Counter(entry.outcome for entry in entries)
    for entry in entries:
        _check_entry(entry, found, cancelled)
    assert found.keys() <= {entry.request.key for entry in entries}, "nothing else is recorded"
    _check_order(entries)
    return counts


def _check_entry(entry: Entry, found: Mapping[str, dict[str, Any]], cancelled: set[str]) -> None:
    request, answer = entry.request, entry.answer
    if request.verb == "cancel":
        if entry.outcome != "unknown":
            assert (request.hold in cancelled) is (entry.outcome == "told"), request
        return
    places = found.get(request.key, {})
    if entry.outcome == "unspent":
        assert not places, f"{request}: nothing was spent"
    if places:
        assert places.keys() == set(request.names), f"{request}: in all budgets or in none"
        kind = {"reserve": "hold"}.get(request.verb, request.verb)
        assert {record.type for record in places.values()} == {kind}, request
        assert {record.mechanism["eps"] for record in places.values()} == {request.eps}, request
    if entry.outcome == "told":
        assert answer.key == request.key, request
        told = {name: (seq, head, answer.admitted) for name, (seq, head) in answer.budgets.items()}
        assert told == {n: (r.seq, r.hash, r.admitted) for n, r in places.items()}, request


def _check_account(name: str, records: Sequence[Any]) -> None:
    """Nothing is admitted that does not fit, beside what is spent and held at that place."""
    spent, held = Fraction(0), dict[str, Fraction]()
    for place, record in enumerate(records):
        assert record.seq == place, name
        if record.type == "cancel":
            held.pop(record.body["hold"])
        if record.admitted is not True:
            continue
        cost = Fraction(str(record.mechanism["eps"]))
        if record.type == "hold":
            held[record.body["hold"]] = cost
        elif record.type == "commit":
            assert held.pop(record.body["hold"]) == cost, f"{name}: a hold is committed once"
            spent += cost
        else:
            spent += cost
        assert spent + sum(held.values()) <= Fraction(str(CAPACITY[name])), f"{name} is overspent"


def _check_groups(books: Mapping[str, Sequence[Any]]) -> None:
    """A refusal has a reason: one of its budgets has too little left."""
    left = {name: _left(name, records) for name, records in books.items()}
    for records in books.values():
        for record in records:
            if record.admitted is not False:
                continue
            group = record.body.get("group") or [{"budget": record.budget, "seq": record.seq}]
            cost = Fraction(str(record.mechanism["eps"]))
            fits = [cost <= left[one["budget"]][one["seq"]] for one in group]
            assert not all(fits), f"{record.key} was refused and would fit"


def _left(name: str, records: Sequence[Any]) -> list[Fraction]:
    """What is free just before each record."""
    free, found = Fraction(str(CAPACITY[name])), []
    for record in records:
        found.append(free)
        cost = Fraction(str(record.mechanism["eps"])) if record.mechanism else Fraction(0)
        if record.type == "cancel":
            free += next(
                Fraction(str(other.mechanism["eps"]))
                for other in records
                if other.type == "hold" and other.body["hold"] == record.body["hold"]
            )
        elif record.admitted is True and record.type in ("spend", "hold"):
            free -= cost
    return found


def _check_order(entries: Sequence[Entry]) -> None:
    """Whoever asks after another was answered comes after it in the records."""
    for name in CAPACITY:
        answered = [e for e in entries if e.answer is not None and name in e.answer.budgets]
        latest = 0.0
        for entry in sorted(answered, key=lambda e: e.answer.budgets[name][0]):
            assert entry.ended >= latest, f"{entry.request.key} comes too late in {name}"
            latest = max(latest, entry.begun)
