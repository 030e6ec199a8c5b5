"""Durable spends a second, beside the bare transactions of the same database.

    python -m benchmarks.ledger [--seconds 6] [--records 100000] [--stores sqlite,…] [--json]

Bare is what the database does by itself with the same settings: for SQLite two inserts a
transaction by hand, from as many threads; for PostgreSQL `pgbench -N` (one update, one insert),
with as many clients. A spend is decided, recorded, committed and anchored before it counts. Clients
are threads at one open ledger, or threads of two processes, as two services would be; they ask the
same query again and again, of a budget each or of one, or each time a new one. A machine
is not the same from minute to minute, so what is compared takes turns, second by second.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import track

import residua as rz

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from batches import Call, many

CLIENTS = (1, 4, 16)
PROCESSES = 2
QUERY = rz.Laplace(scale=1e6)
_NEW = itertools.count(1)
WAYS = {
    "each its own": (False, False),
    "one": (True, False),
    "each its own, new queries": (False, True),
}
"""What clients spend from: whether from one budget of all, and whether each query is a new one."""


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


def spending(
    ledger: rz.Ledger, clients: int, hot: bool, new: bool = False
) -> Callable[[int], Callable[[], object]]:
    """What each client does: spend from one budget of all, or each from its own."""
    names = ["all"] if hot else [f"{os.getpid()}-{clients}-{n}" for n in range(clients)]
    for name in names:
        with contextlib.suppress(rz.BudgetExists):
            ledger.create_budget(name, rz.GdpResidueFilter(mu=1.0))

    def work(number: int) -> Callable[[], object]:
        name = names[number % len(names)]
        if new:
            family = rz.Laplace
            return lambda: ledger.spend(name, family(scale=1e6 + next(_NEW)))
        return lambda: ledger.spend(name, QUERY)

    return work


class Workers:
    """Clients in processes of their own, each with the ledger open, that spend when told."""

    def __init__(self, url: str, anchor: Path, clients: int, hot: bool):
        self.started = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.ledger", "--work", url, "--anchor", str(anchor),
                 "--clients", str(clients // PROCESSES), *(["--hot"] if hot else [])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
            )
            for _ in range(PROCESSES)
        ]  # fmt: skip
        for one in self.started:
            assert one.stdout is not None
            one.stdout.readline()

    def rate(self, seconds: float) -> float:
        """Spends a second of all together."""
        for one in self.started:
            assert one.stdin is not None
            one.stdin.write(f"{seconds}\n")
            one.stdin.flush()
        return sum(float(one.stdout.readline()) for one in self.started if one.stdout)

    def close(self) -> None:
        for one in self.started:
            one.communicate()


def worker(url: str, anchor: str, clients: int, hot: bool) -> None:
    """One such process: a line with seconds comes in, a rate goes out."""
    with rz.open_ledger(url, anchor=anchor) as ledger:
        work = spending(ledger, clients, hot)
        print("ready", flush=True)
        for line in sys.stdin:
            print(rate(clients, float(line), work), flush=True)


def bare_sqlite(folder: Path, pragmas: list[str], clients: int, seconds: float) -> float:
    """Two inserts a transaction by hand."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "bare.db"
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
    from residua.ledger.storage.sqlite import wal_is_safe

    if wal_is_safe(sqlite3.sqlite_version_info):
        return ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"]
    return ["PRAGMA journal_mode=DELETE", "PRAGMA synchronous=EXTRA"]


@contextmanager
def postgres() -> Iterator[tuple[str, str, Path]]:
    """A server in a folder of its own: addresses of two databases, and where its pgbench is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    server = pgserver.get_server(tempfile.mkdtemp(prefix="residua-bench-"), cleanup_mode="delete")
    try:
        server.psql("CREATE DATABASE long")
        program = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pgbench"
        yield server.get_uri(), server.get_uri(database="long"), program
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
    store: str, url: str, anchor: Path, bare: Callable[[int, float], float], seconds: float
) -> Iterator[dict[str, object]]:
    rounds = max(1, round(seconds))
    with rz.open_ledger(url, anchor=anchor) as ledger:
        for clients in CLIENTS:
            works = {way: spending(ledger, clients, *how) for way, how in WAYS.items()}
            limit, ours, cpu = 0.0, dict.fromkeys(works, 0.0), dict.fromkeys(works, 0.0)
            for _ in range(rounds):
                limit += bare(clients, 1.0) / rounds
                for way, work in works.items():
                    before = time.process_time()
                    ours[way] += rate(clients, 1.0, work) / rounds
                    cpu[way] += (time.process_time() - before) / rounds
            for way in works:
                row = row_of(store, f"{clients} threads", clients, way, ours[way], limit)
                yield {**row, "cpu_us_a_spend": round(1e6 * cpu[way] / ours[way])}
    for hot in (False, True):
        clients = CLIENTS[-1]
        workers = Workers(url, anchor, clients, hot)
        limit = together = 0.0
        for _ in range(rounds):
            limit += bare(clients, 1.0) / rounds
            together += workers.rate(1.0) / rounds
        workers.close()
        way = "one" if hot else "each its own"
        yield row_of(store, f"{PROCESSES} processes", clients, way, together, limit)


def row_of(
    store: str, by: str, clients: int, way: str, ours: float, limit: float
) -> dict[str, object]:
    return {
        "store": store,
        "by": by,
        "clients": clients,
        "budgets": way,
        "spends_a_second": round(ours),
        "bare_a_second": round(limit),
        "share": round(ours / limit, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def flat(
    store: str, short: str, long: str, folder: Path, records: int, seconds: float
) -> dict[str, object]:
    """One client at a ledger with a few records, and at one with very many."""

    def work(ledger: rz.Ledger) -> Callable[[int], Callable[[], object]]:
        return lambda _: lambda: ledger.spend("long", QUERY)

    few = grown = 0.0
    rounds = max(1, round(seconds))
    with (
        rz.open_ledger(short, anchor=folder / f"{store}.anchor") as one,
        rz.open_ledger(long, anchor=folder / f"{store}-long.anchor") as two,
    ):
        two.create_budget("long", rz.GdpResidueFilter(mu=1.0))
        call = Call("spend", {"budgets": "long", "query": QUERY})
        for _ in progress(range(0, records, 1000), f"{store}: {records} records"):
            many(two, [call] * 1000)
        one.create_budget("long", rz.GdpResidueFilter(mu=1.0))
        for _ in range(rounds):
            few += rate(1, 1.0, work(one)) / rounds
            grown += rate(1, 1.0, work(two)) / rounds
    return {
        "store": store, "few": round(few), "records": records, "many": round(grown),
        "share": round(grown / few, 2), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def progress(items: Iterable[int], what: str) -> Iterator[int]:
    yield from track(list(items), what, console=Console(stderr=True), transient=True)


def sqlite_rows(folder: Path, seconds: float, records: int) -> Iterator[dict[str, object]]:
    pragmas = pragmas_of()

    def bare(clients: int, seconds: float) -> float:
        return bare_sqlite(folder, pragmas, clients, seconds)

    url = f"sqlite:///{folder}/ledger.db"
    yield from rows("sqlite", url, folder / "sqlite-rows.anchor", bare, seconds)
    short, long = f"sqlite:///{folder}/short.db", f"sqlite:///{folder}/long.db"
    yield flat("sqlite", short, long, folder, records, seconds)


def postgresql_rows(folder: Path, seconds: float, records: int) -> Iterator[dict[str, object]]:
    with postgres() as (short, long, program):
        subprocess.run([str(program), "-i", "-q", short], capture_output=True, check=True)

        def bare(clients: int, seconds: float) -> float:
            return bare_postgres(short, program, clients, seconds)

        yield flat("postgresql", short, long, folder, records, seconds)
        anchor = folder / "postgresql.anchor"
        yield from rows("postgresql", short, anchor, bare, seconds)


STORES = {"sqlite": sqlite_rows, "postgresql": postgresql_rows}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--records", type=int, default=100_000, help="of a long history")
    parser.add_argument("--stores", default=",".join(STORES), help="which, with commas")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--work", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--anchor", help=argparse.SUPPRESS)
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--hot", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        worker(given.work, given.anchor, given.clients, given.hot)
        return
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="residua-bench-") as name:
        for store in given.stores.split(","):
            for row in STORES[store](Path(name), given.seconds, given.records):
                found.append(row)
                if not given.json:
                    print(row, flush=True)
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        print()


if __name__ == "__main__":
    main()
