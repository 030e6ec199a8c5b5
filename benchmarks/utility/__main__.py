"""`python -m benchmarks.utility [--budget EPS,DELTA] [--workload NAME] [--filter KIND] …`."""

from __future__ import annotations

import argparse
import json
import sys
import time

import residua as rz
from benchmarks.utility.held_out import held_out
from residua.planning.candidates import kinds
from residua.planning.suite import named, names

BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument(
        "--budget",
        metavar="EPS,DELTA",
        action="append",
        type=lambda text: tuple(map(float, text.split(","))),
        help="a budget (may be repeated; default: 1,1e-6 and 3,1e-6 and 8,1e-5)",
    )
    parser.add_argument("--workload", action="append", choices=names(), help="one of the suite")
    parser.add_argument("--filter", action="append", choices=kinds(), help="one kind of filter")
    parser.add_argument("--held-out", action="store_true", help="workloads outside the suite")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    found = []
    for eps, delta in chosen.budget or BUDGETS:
        started = time.perf_counter()
        workloads = [named(name, eps, delta) for name in chosen.workload or names()]
        if chosen.held_out:
            workloads = list(held_out())
        measured = rz.compare_filters(eps, delta, workloads, chosen.filter, progress=_tell)
        found.append(measured)
        if not chosen.json:
            print(f"admitted / non-adaptive optimum within ({eps:g}, {delta:g})\n")
            print(f"{measured.table()}\n\n{time.perf_counter() - started:.1f} s\n", flush=True)
    if chosen.json:
        print(json.dumps([one.to_dict() for one in found], indent=2))


def _tell(what: str, done: int, total: int) -> None:
    if what:
        print(f"{done}/{total} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
