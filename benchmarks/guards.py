"""Concurrent guards on one budget: how many a second, and how long each waits.

    python -m benchmarks.guards [--guards 150] [--each 3] [--stores sqlite,postgresql] [--same]

Every thread holds, commits and runs nothing, `--each` times, each with a query of its own unless
`--same` is given. The budget is a `gdp_residue`, whose costs depend on the order of queries. The
processor time of this process is given beside the clock: a machine that is busy changes that less.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guards", description=__doc__)
    parser.add_argument("--guards", type=int, default=150, help="at once")
    parser.add_argument("--each", type=int, default=3, help="how often each")
    parser.add_argument("--stores", default="sqlite,postgresql", help="which, with commas")
    parser.add_argument("--same", action="store_true", help="one query for all")
    given = parser.parse_args()
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
