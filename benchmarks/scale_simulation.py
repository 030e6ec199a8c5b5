"""Many busy budgets on PostgreSQL, simulated: `python -m benchmarks.scale_simulation`.

Requests arrive at random, for budgets that are all alike or of very different popularity (the
k-th gets `1/k`), at any of several server processes or at the one that their budget is routed to.
A process writes one transaction at a time with everything that waits for it: `commit` seconds and
`cpu` seconds a spend. A transaction waits for others that hold one of its budgets. Printed are
spends a second, how long they take, and how many share a transaction.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.rows import aligned

_MOST = 200
"""Spends in one transaction."""


def simulate(
    budgets: int,
    processes: int,
    rate: float,
    commit: float,
    cpu: float,
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
    place, free, busy = [0] * processes, [0.0] * processes, {}
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
        end = max(now, held) + commit + cpu * taken.size
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


def main() -> None:
    name = "python -m benchmarks.scale_simulation"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--budgets", type=int, default=100_000)
    parser.add_argument("--commit", type=float, default=0.010, help="seconds of a commit")
    parser.add_argument("--cpu", type=float, default=0.0017, help="seconds of a spend in a process")
    parser.add_argument("--seconds", type=float, default=20.0, help="to simulate")
    given = parser.parse_args()
    lines = [("budgets", "processes", "asked/s", "done/s", "median", "99 %", "at once")]
    for work, alike, routed in (
        ("alike, any process", True, False),
        ("1/k, any process", False, False),
        ("1/k, one process each", False, True),
    ):
        for processes, rate in ((1, 400.0), (4, 1600.0), (16, 1600.0), (16, 4000.0)):
            done, middle, late, batch = simulate(
                given.budgets,
                processes,
                rate,
                given.commit,
                given.cpu,
                given.seconds,
                alike,
                routed,
            )
            times = (f"{1000 * middle:.0f} ms", f"{1000 * late:.0f} ms")
            lines.append(
                (work, str(processes), f"{rate:.0f}", f"{done:.0f}", *times, f"{batch:.1f}")
            )
    print(aligned(lines))


if __name__ == "__main__":
    main()
