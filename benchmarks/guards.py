"""Concurrent guards on one budget: how many a second, and how long each waits.

    python -m benchmarks.guards [--guards 150] [--each 3] [--stores sqlite,postgresql] [--same]
    python -m benchmarks.guards --open 0,50,250

Every thread holds, commits and runs nothing, `--each` times, each with a query of its own unless
`--same` is given. The budget is a `gdp_residue`, whose costs depend on the order of queries. The
processor time of this process is given beside the clock: a machine that is busy changes that less.

With `--open`, instead, what a spend and a new hold take beside so many open holds, under several
filters, as processor time of one thread on SQLite.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import residua as rz
from benchmarks.ledger import postgres


def measured(url: str, anchor: Path, guards: int, each: int, same: bool) -> str:
    """One line about so many guards at once."""
    waited: list[float] = []
    with rz.open_ledger(url, anchor=anchor) as ledger:
        ledger.create_budget("b", rz.GdpResidueFilter(mu=1.0))

        def work(number: int) -> None:
            query = rz.Laplace(scale=300.0 if same else 300.0 + 0.37 * number)
            for _ in range(each):
                begun = time.perf_counter()
                with ledger.guard("b", query):
                    waited.append(time.perf_counter() - begun)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(guards)]
        begun, worked = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took, worked = time.perf_counter() - begun, time.process_time() - worked
    return (
        f"{len(waited) / took:.0f} a second, median {statistics.median(waited):.2f} s, longest"
        f" {max(waited):.2f} s, {1000 * worked / len(waited):.1f} ms of processor time each"
    )


FILTERS: dict[str, Callable[[], rz.Filter]] = {
    "pure": lambda: rz.PureFilter(50.0),
    "gdp": lambda: rz.GdpFilter(mu=20.0),
    "gdp_residue": lambda: rz.GdpResidueFilter(mu=20.0),
    "auto": lambda: rz.AutoFilter(eps=50.0, delta=1e-6),
}


def beside_holds(name: str, count: int, each: int = 20) -> tuple[float, float]:
    """The median processor milliseconds of a spend, and of a hold, beside so many open holds."""
    spends, holds = [], []
    with (
        tempfile.TemporaryDirectory(prefix="residua-bench-") as folder,
        rz.open_ledger(f"sqlite:///{folder}/ledger.db") as ledger,
    ):
        ledger.create_budget("b", FILTERS[name]())
        for number in range(count):
            assert ledger.reserve("b", rz.Laplace(scale=50.0 + number % 7))
        query = rz.Laplace(scale=100.0)
        for _ in range(3):
            assert ledger.spend("b", query)
        for _ in range(each):
            begun = time.process_time()
            assert ledger.spend("b", query)
            spends.append(time.process_time() - begun)
            begun = time.process_time()
            hold = ledger.reserve("b", query)
            holds.append(time.process_time() - begun)
            hold.cancel()
    return 1000 * statistics.median(spends), 1000 * statistics.median(holds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guards", description=__doc__)
    parser.add_argument("--guards", type=int, default=150, help="at once")
    parser.add_argument("--each", type=int, default=3, help="how often each")
    parser.add_argument("--stores", default="sqlite,postgresql", help="which, with commas")
    parser.add_argument("--same", action="store_true", help="one query for all")
    parser.add_argument("--open", help="open holds beside which a spend is timed, with commas")
    given = parser.parse_args()
    if given.open is not None:
        for name in FILTERS:
            for count in map(int, given.open.split(",")):
                spend, hold = beside_holds(name, count)
                print(f"{name}, {count} open: spend {spend:.1f} ms, hold {hold:.1f} ms", flush=True)
        return
    for store in given.stores.split(","):
        with tempfile.TemporaryDirectory(prefix="residua-bench-") as name, ExitStack() as stack:
            folder = Path(name)
            url = f"sqlite:///{folder}/ledger.db"
            if store == "postgresql":
                url = stack.enter_context(postgres())[0]
            line = measured(url, folder / "anchor", given.guards, given.each, given.same)
            print(f"{store}: {line}", flush=True)


if __name__ == "__main__":
    main()
