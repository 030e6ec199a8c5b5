"""Many busy budgets on PostgreSQL: measured, then simulated.

    python -m benchmarks.scale_simulation [--budgets 100000] [--measure 8192]

First a database is started and transactions of the ledger are timed (`ledger_constants.py`); with
`--fixed` and `--each` those seconds are taken instead. Then requests arrive at random, for budgets
that are all alike or of very different popularity (the k-th gets `1/k`), at any of several server
processes or at the one that their budget is routed to. A process writes one transaction at a time
with everything that waits for it: `fixed` seconds and `each` seconds a spend. A transaction waits
for others that hold one of its budgets. Asked is a share of what the processes could do at best.
Printed are spends a second, how long they take, how many share a transaction, and how many
processors the database needs for them. First of all the model is held against the rate of sixteen
threads, and says how far it is off. `--write docs/scale.md` puts all of it there.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

import numpy as np

from benchmarks.harness import pages
from benchmarks.harness.rows import aligned
from benchmarks.ledger_constants import CLIENTS, Constants, measured

_MOST = 200
"""Spends in one transaction."""


def simulate(
    budgets: int,
    processes: int,
    rate: float,
    fixed: float,
    each: float,
    seconds: float,
    alike: bool,
    routed: bool,
) -> tuple[float, float, float, float]:
    """Spends a second, median and 99th percentile of the time they take, spends a transaction."""
    rng = np.random.default_rng(1)
    count = int(rate * seconds)
    arrivals = np.sort(rng.uniform(0.0, seconds, count))
    weights = np.ones(budgets) if alike else 1.0 / np.arange(1, budgets + 1)
    asked = np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(count))
    at = asked % processes if routed else rng.integers(processes, size=count)
    queues = [np.flatnonzero(at == process) for process in range(processes)]
    place, free = [0] * processes, [0.0] * processes
    busy: dict[int, float] = {}
    ends = np.empty(count)
    transactions = 0
    while True:
        # The process that can start its next transaction first.
        starts = [
            max(free[p], arrivals[queues[p][place[p]]]) if place[p] < queues[p].size else np.inf
            for p in range(processes)
        ]
        process = int(np.argmin(starts))
        now = starts[process]
        if now == np.inf:
            break
        waiting = queues[process][place[process] : place[process] + _MOST]
        taken = waiting[arrivals[waiting] <= now]
        held = max((busy.get(int(b), 0.0) for b in asked[taken]), default=0.0)
        end = max(now, held) + fixed + each * taken.size
        for budget in asked[taken].tolist():
            busy[budget] = end
        ends[taken] = end
        place[process] += taken.size
        free[process] = end
        transactions += 1
    times = ends - arrivals
    span = max(float(ends.max()), seconds)
    return (
        count / span,
        float(np.median(times)),
        float(np.quantile(times, 0.99)),
        count / transactions,
    )


def sized(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1.0 else f"{1000 * seconds:.0f} ms"


def off(found: Constants) -> float:
    """How far the model is from what was measured."""
    return found.predicted / found.half - 1.0


def busiest(budgets: int) -> float:
    """The share of all requests that the most popular budget gets."""
    return 1.0 / float(np.sum(1.0 / np.arange(1, budgets + 1)))


def computed_play(found: Constants, budgets: int) -> str:
    """What follows from the constants without a simulation."""
    share = busiest(budgets)
    return (
        f"{budgets:,} budgets are {budgets * found.budget / 1e6:.0f} MB. A core of the database"
        f" does {1 / found.database_cpu:,.0f} spends a second and writes"
        f" {found.written / found.database_cpu / 1e6:.0f} MB/s of log for them. One process does"
        f" {found.most:,.0f} a second at best, and so does one budget. The busiest of"
        f" {budgets:,} gets {share:.1%} of all requests: routed, all together do at most"
        f" {found.most / share:,.0f} a second, if the process of that one does nothing else."
    )


def report(found: Constants) -> list[tuple[str, ...]]:
    return [
        ("on PostgreSQL, one process", "measured", ""),
        ("a transaction", f"{1000 * found.fixed:.2f} ms", "and for each spend in it"),
        ("a spend, if all are handed over at once", f"{1000 * found.handed:.2f} ms", ""),
        ("a spend, each by a thread", f"{1000 * found.each:.2f} ms", f"{found.most:.0f} a second"),
        ("of the ledger's processor", f"{1000 * found.own_cpu:.2f} ms", "a spend"),
        ("of the database's processors", f"{1000 * found.database_cpu:.2f} ms", "a spend"),
        ("write-ahead log", f"{found.written / 1000:.1f} kB", "a spend"),
        ("a budget on disk", f"{found.budget / 1000:.1f} kB", "with one record"),
        (
            f"{CLIENTS} threads",
            f"{found.measured:.0f} a second",
            "from which the line before is worked out",
        ),
        (
            f"{CLIENTS // 2} threads",
            f"{found.half:.0f} a second",
            f"the model says {found.predicted:.0f}, {off(found):+.0%}",
        ),
    ]


def main() -> None:
    name = "python -m benchmarks.scale_simulation"
    parser = argparse.ArgumentParser(
        prog=name, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budgets", type=int, default=100_000)
    parser.add_argument("--measure", type=int, default=8192, help="budgets while measuring")
    parser.add_argument("--measure-seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--fixed", type=float, help="seconds of a transaction")
    parser.add_argument("--each", type=float, help="seconds of a spend in it")
    parser.add_argument("--load", type=float, default=0.6, help="asked, as a share of the most")
    parser.add_argument("--seconds", type=float, default=20.0, help="to simulate")
    parser.add_argument("--write", type=Path, help="a page with marks to put the tables between")
    given = parser.parse_args()
    if given.write and given.fixed is not None:
        parser.error("--write goes with what is measured here, not with --fixed and --each")
    if (given.fixed is None) != (given.each is None):
        parser.error("--fixed and --each go together")
    base, found = math.nan, None
    if given.fixed is None:
        found = measured(given.measure, given.measure_seconds)
        print(aligned(report(found)))
        print(computed_play(found, given.budgets))
        print()
        fixed, each, base = found.fixed, found.each, found.database_cpu
    else:
        fixed, each = given.fixed, given.each
    lines = [("budgets", "processes", "asked/s", "done/s", "median", "99 %", "at once", "cores")]
    for work, alike, routed in (
        ("alike, any process", True, False),
        ("1/k, any process", False, False),
        ("1/k, one process each", False, True),
    ):
        for processes in (1, 4, 16):
            rate = given.load * processes / each
            done, middle, late, batch = simulate(
                given.budgets, processes, rate, fixed, each, given.seconds, alike, routed
            )
            times = (sized(middle), sized(late), f"{batch:.1f}")
            cores = "" if math.isnan(base) else f"{done * base:.1f}"
            lines.append((work, str(processes), f"{rate:.0f}", f"{done:.0f}", *times, cores))
    print(f"simulated, {given.budgets:,} budgets, {1000 * fixed:.2f} ms and {1000 * each:.2f} ms")
    print(aligned(lines))
    if given.write and found is not None:
        tables = (pages.markdown(report(found)), computed_play(found, given.budgets))
        pages.fill(given.write, "constants", "\n\n".join((*tables, pages.moment())))
        pages.fill(given.write, "simulated", pages.markdown(lines))
    print(f"load average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
