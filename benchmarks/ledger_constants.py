"""What a transaction of the ledger costs on PostgreSQL: the constants of `scale_simulation`.

A process writes `k` spends in one transaction in `fixed + k handed` seconds, if they are handed
over together. Both come from timing transactions of several sizes on random budgets of many, so
that states are read and not remembered; of the times of one size the lower quartile is taken, so
that other work on the machine counts little. Callers that wait in threads of their own must be
woken, each in turn: what a spend takes then, `each`, is worked out from the rate of `CLIENTS`
threads, and held against that of half as many. What the database takes of a processor is read from
the system.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import residua as rz
from benchmarks.ledger import QUERY, Call, many, postgres, rate

SIZES = (1, 4, 16, 64)
CLIENTS = 16


@dataclass(frozen=True)
class Constants:
    """Seconds, and bytes."""

    fixed: float
    handed: float
    database_cpu: float
    """Of the database's processors, a spend."""
    own_cpu: float
    """Of the ledger's own process, a spend."""
    written: float
    """Bytes of the write-ahead log, a spend."""
    budget: float
    """Bytes in the database, a budget with one record."""
    measured: float
    """Spends a second of `CLIENTS` threads on one process."""
    half: float
    """And of half as many, to hold the model against."""

    @property
    def each(self) -> float:
        """Seconds of a spend in a transaction whose callers are threads."""
        return max(self.handed, (CLIENTS / self.measured - self.fixed) / CLIENTS)

    @property
    def most(self) -> float:
        """Spends a second of one process at best."""
        return 1.0 / self.each

    @property
    def predicted(self) -> float:
        """What the model says of half as many threads, each of which waits for its answer."""
        return 1.0 / (2.0 * self.fixed / CLIENTS + self.each)


def told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def processor_seconds(root: int) -> float:
    """What a process and those that it started have used so far."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                text = Path("/proc", name, "stat").read_text()
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            parents[int(name)] = int(fields[1])
            # Own time, and that of children that have ended.
            used[int(name)] = sum(int(field) for field in fields[11:15])
    family, grown = {root}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return sum(used.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """`work(0)` to `work(count - 1)`, by several threads: they share transactions."""

    def run(first: int) -> None:
        for number in range(first, count, CLIENTS):
            work(number)

    threads = [threading.Thread(target=run, args=(first,)) for first in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def timed(ledger: rz.Ledger, names: list[str], size: int, seconds: float) -> list[float]:
    """Times of transactions of one size."""
    rng = random.Random(size)
    found: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 5:
        chosen = rng.sample(names, size)
        calls = [Call("spend", {"budgets": name, "query": QUERY}) for name in chosen]
        start = time.perf_counter()
        answers = many(ledger, calls)
        found.append(time.perf_counter() - start)
        assert all(answer.admitted for answer in answers)
    return found


def from_any(ledger: rz.Ledger, names: list[str], seed: int) -> Callable[[], object]:
    """What a client does to hold the model against: spend from any of the budgets, as it does."""
    rng = random.Random(seed)
    return lambda: ledger.spend(rng.choice(names), QUERY)


def scalar(address: str, query: str) -> Any:
    import psycopg

    with psycopg.connect(address) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def measured(budgets: int, seconds: float) -> Constants:
    """Constants on a database with so many budgets, in about `8 seconds` and their creation."""
    with tempfile.TemporaryDirectory() as folder, postgres() as (address, _, _):
        # Some process of the server that outlives the question; all have one parent.
        living = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        postmaster = _parent(int(scalar(address, living)))
        empty = int(scalar(address, "SELECT pg_database_size(current_database())"))
        with rz.open_ledger(address, anchor=Path(folder) / "anchor") as ledger:
            names = [f"budget-{number}" for number in range(budgets)]
            told(f"creating {budgets:,} budgets on PostgreSQL ...")
            filter = rz.GdpResidueFilter(mu=1.0)
            in_threads(budgets, lambda number: ledger.create_budget(names[number], filter))
            full = int(scalar(address, "SELECT pg_database_size(current_database())"))
            timed(ledger, names, 1, 0.5)
            points = []
            for size in SIZES:
                told(f"transactions of {size} spends ...")
                points.append(float(np.quantile(timed(ledger, names, size, seconds), 0.25)))
            each, fixed = np.polyfit(SIZES, points, 1, w=1.0 / np.array(points))
            told("processors and log ...")
            log = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"
            before = processor_seconds(postmaster), time.process_time(), int(scalar(address, log))
            count = 16 * len(timed(ledger, names, 16, seconds))
            after = processor_seconds(postmaster), time.process_time(), int(scalar(address, log))
            base, own, log_bytes = ((b - a) / count for a, b in zip(before, after, strict=True))
            told(f"{CLIENTS} threads ...")
            together, half = (
                rate(count, seconds, lambda number: from_any(ledger, names, number))
                for count in (CLIENTS, CLIENTS // 2)
            )
    return Constants(
        max(float(fixed), 0.0),
        float(each),
        base,
        own,
        log_bytes,
        (full - empty) / budgets,
        together,
        half,
    )


def _parent(pid: int) -> int:
    return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
