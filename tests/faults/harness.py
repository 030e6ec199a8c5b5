"""Kill writers, then hold the ledger against what they noted.

What must be true after any kill: every acknowledged request is in the books under the hash it was
acknowledged with, none is there twice, a request whose answer was lost has one outcome that asking
again returns, all chains are whole, every step is proven, and no capacity was exceeded.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import residua as rz
from faults import writers

# The server that forks imports what it preloads by the environment's path alone (until 3.13).
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
_CONTEXT = mp.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["faults.warm"])


@dataclass(frozen=True)
class Place:
    """A ledger under attack, and where its writers keep their notes."""

    url: str
    folder: Path

    @property
    def anchor(self) -> Path:
        return self.folder / "anchor"

    def notes(self, run: str) -> Path:
        return self.folder / f"{run}.notes"

    def start(self, run: str, most: int, fault: tuple[str, int] | None = None) -> BaseProcess:
        """A writer in a process of its own."""
        given = (self.url, self.anchor, self.notes(run), run, most, fault)
        process = _CONTEXT.Process(target=writers.write, args=given)
        process.start()
        return process

    def open(self) -> rz.Ledger:
        return rz.open_ledger(self.url, anchor=self.anchor, create=False)


def kill_at(place: Place, run: str, fault: tuple[str, int]) -> None:
    """Run a writer that dies at a named point."""
    process = place.start(run, 200, fault)
    process.join(120)
    assert process.exitcode == -9, f"{run} should have died at {fault}, got {process.exitcode}"


def kill_within(place: Place, run: str, seconds: float) -> None:
    """Run a writer and kill it at some moment after its first note."""
    process = place.start(run, 100_000)
    chance = random.Random(run)
    begun(place, run, process)
    process.join(chance.uniform(0.0, seconds))
    process.kill()
    process.join(60)
    assert process.exitcode == -9


def begun(place: Place, run: str, process: BaseProcess) -> None:
    """Wait until a writer was answered for the first time."""
    notes = place.notes(run)
    while process.is_alive() and not (notes.exists() and '"ack"' in notes.read_text()):
        process.join(0.01)


def noted(path: Path) -> Iterator[list[Any]]:
    """The whole lines of a writer's notes."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield json.loads(line)


def batched(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def check(place: Place) -> Counter[str]:
    """All that must be true; how many were acknowledged, lost on the way, and asked again."""
    counts: Counter[str] = Counter()
    with place.open() as ledger:
        assert ledger.read_only is None
        books = {name: ledger.history(name) for name in writers.BUDGETS}
        for path in sorted(place.folder.glob("*.notes")):
            _check_notes(ledger, books, path, counts)
        _check_books({name: ledger.history(name) for name in writers.BUDGETS})
        report = ledger.verify()
        wrong = [step for step in report.steps if step.verdict != "proven"]
        assert report.ok, (wrong[:3], report.problems)
        counts["proven"] = report.proven
    return counts


def _check_notes(
    ledger: rz.Ledger, books: dict[str, Any], path: Path, counts: Counter[str]
) -> None:
    """One writer: what it was told is so; what it was not told has one outcome."""
    lost: dict[str, list[Any]] = {}
    for word, key, *rest in noted(path):
        if word == "try":
            lost[key] = rest
        elif word == "ack":
            lost.pop(key)
            verb, admitted, places = rest
            counts["acknowledged"] += 1
            for name, (seq, head) in places.items():
                record = books[name][seq]
                assert record.hash == head and record.admitted is admitted
                assert record.key == key and record.type == verb
    for key, (verb, names, query) in lost.items():
        counts["lost"] += 1
        mechanism = rz.mechanisms.Mechanism.from_json(query)
        seen = [r for name in names for r in ledger.history(name) if r.key == key]
        try:
            first = writers.ask(ledger, key, verb, tuple(names), mechanism)
        except rz.UnknownHold:
            assert verb == "cancel"  # it was let go before the writer died
            continue
        if verb != "cancel":
            assert writers.ask(ledger, key, verb, tuple(names), mechanism) == first
        again = [r for name in names for r in ledger.history(name) if r.key == key]
        if seen:
            assert [r.hash for r in seen] == [r.hash for r in again]
        counts["asked again"] += 1


def _check_books(books: dict[str, Any]) -> None:
    """Nothing stands twice, and what was admitted fits, counted by other means."""
    for name, records in books.items():
        asked = [(r.type, r.body["by"], r.key) for r in records if r.key is not None]
        assert len(set(asked)) == len(asked), name
    spent = sum(
        (
            _pure(record.mechanism)
            for record in books["pure"]
            if record.admitted and record.type in ("spend", "commit")
        ),
        Fraction(0),
    )
    assert spent <= 3


def _pure(mechanism: Any) -> Fraction:
    if mechanism["kind"] == "pure_dp":
        return Fraction(str(mechanism["eps"]))
    return Fraction(str(mechanism["sensitivity"])) / Fraction(str(mechanism["scale"]))
