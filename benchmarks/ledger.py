"""Durable spends a second, beside the bare transactions of the same database.

    python -m benchmarks.ledger [--seconds 3] [--records 100000] [--json]

Bare is what the database does by itself with the same settings: for SQLite two inserts a
transaction by hand, from as many threads; for PostgreSQL `pgbench -N` (one update, one insert),
with as many clients. A spend is decided, recorded, committed and anchored before it counts.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import residuum as rz
from residuum.ledger.calls import Call

CLIENTS = (1, 4, 16)
QUERY = rz.mechanisms.Laplace(scale=1e6)


def rate(clients: int, seconds: float, work: Callable[[int], Callable[[], object]]) -> float:
    """Calls a second by so many threads; each thread makes its own call."""
    counts = [0] * clients
    ready = threading.Barrier(clients + 1)
    stop = threading.Event()

    def run(number: int) -> None:
        call = work(number)
        ready.wait()
        while not stop.is_set():
            call()
            counts[number] += 1

    threads = [threading.Thread(target=run, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.perf_counter()
    time.sleep(seconds)
    done = sum(counts)
    elapsed = time.perf_counter() - begun
    stop.set()
    for thread in threads:
        thread.join()
    return done / elapsed


def spends(ledger: rz.Ledger, clients: int, seconds: float, hot: bool) -> float:
    """Spends a second, all from one budget or each client from its own."""
    names = [f"b{clients}-{hot}-{n}" for n in range(1 if hot else clients)]
    for name in names:
        ledger.create_budget(name, rz.GdpResidueFilter(mu=1.0))

    def work(number: int) -> Callable[[], object]:
        name = names[number % len(names)]
        return lambda: ledger.spend(name, QUERY)

    return rate(clients, seconds, work)


def bare_sqlite(folder: Path, pragmas: list[str], clients: int, seconds: float) -> float:
    """Two inserts a transaction by hand."""
    path = folder / f"bare-{clients}.db"
    with sqlite3.connect(path) as made:
        for pragma in pragmas:
            made.execute(pragma)
        made.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, text TEXT)")
        made.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, text TEXT)")
    made.close()
    text = "x" * 900

    def work(number: int) -> Callable[[], object]:
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=60.0, check_same_thread=False
        )
        for pragma in pragmas:
            connection.execute(pragma)

        def once() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO a (text) VALUES (?)", (text,))
            connection.execute("INSERT INTO b (text) VALUES (?)", (text[:80],))
            connection.execute("COMMIT")

        return once

    return rate(clients, seconds, work)


def pragmas_of() -> list[str]:
    """The settings that the ledger chooses for this library."""
    from residuum.ledger.sqlite import wal_is_safe

    if wal_is_safe(sqlite3.sqlite_version_info):
        return ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"]
    return ["PRAGMA journal_mode=DELETE", "PRAGMA synchronous=EXTRA"]


@contextmanager
def postgres() -> Iterator[tuple[str, Path]]:
    """A server in a folder of its own: its address, and where its programs are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    server = pgserver.get_server(tempfile.mkdtemp(prefix="residuum-bench-"), cleanup_mode="delete")
    try:
        yield server.get_uri(), Path(pgserver.__file__).parent / "pginstall" / "bin" / "pgbench"
    finally:
        server.cleanup()


def bare_postgres(address: str, program: Path, clients: int, seconds: float) -> float:
    """What pgbench reports for its simple update."""
    command = [str(program), "-N", "-n", "-c", str(clients), "-j", str(min(clients, 2))]
    command += ["-T", str(max(1, round(seconds))), address]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    assert found is not None, done.stdout
    return float(found.group(1))


def rows(
    store: str, ledger: rz.Ledger, bare: Callable[[int], float], seconds: float
) -> Iterator[dict[str, object]]:
    for clients in CLIENTS:
        limit = bare(clients)
        for hot in (False, True):
            ours = spends(ledger, clients, seconds, hot)
            yield {
                "store": store,
                "clients": clients,
                "budgets": "one" if hot else "each its own",
                "spends_a_second": round(ours),
                "bare_a_second": round(limit),
                "share": round(ours / limit, 2),
            }


def flat(ledger: rz.Ledger, store: str, records: int, seconds: float) -> dict[str, object]:
    """The rate with ten records in the chain, and with very many."""
    ledger.create_budget("long", rz.GdpResidueFilter(mu=1.0))

    def work(_: int) -> Callable[[], object]:
        return lambda: ledger.spend("long", QUERY)

    few = rate(1, seconds, work)
    while ledger.budget("long").seq < records:
        ledger.many([Call("spend", {"budgets": "long", "query": QUERY})] * 1000)
    many = rate(1, seconds, work)
    return {
        "store": store, "few": round(few), "records": records, "many": round(many),
        "share": round(many / few, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--records", type=int, default=100_000, help="of a long history")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: list[dict[str, object]] = []

    def told(row: dict[str, object]) -> None:
        found.append(row)
        if not given.json:
            print(row, flush=True)

    with tempfile.TemporaryDirectory(prefix="residuum-bench-") as name:
        folder = Path(name)
        path = folder / "ledger.db"
        with rz.open_ledger(path) as ledger:
            pragmas = pragmas_of()
            for row in rows(
                "sqlite",
                ledger,
                lambda n: bare_sqlite(folder, pragmas, n, given.seconds),
                given.seconds,
            ):
                told(row)
            told(flat(ledger, "sqlite", given.records, given.seconds))
        with postgres() as (address, program):
            subprocess.run([str(program), "-i", "-q", address], capture_output=True, check=True)
            with rz.open_ledger(address, anchor=folder / "pg.anchor") as ledger:
                for row in rows(
                    "postgresql",
                    ledger,
                    lambda n: bare_postgres(address, program, n, given.seconds),
                    given.seconds,
                ):
                    told(row)
                told(flat(ledger, "postgresql", given.records, given.seconds))
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        print()


if __name__ == "__main__":
    main()
