"""How much of random workloads every filter admits, beside peers that are installed.

Choose constants on the default seed; publish figures from another (REPORT_SEED of
residua.planning.suite).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import residua as rz
from benchmarks.harness import pages
from benchmarks.peers.participants import Field, open_field
from benchmarks.utility.peers import with_peers
from benchmarks.utility.pooled import pooled
from residua.planning.candidates import kinds
from residua.planning.comparison import SuiteComparison
from residua.planning.suite import COUNT, DEVELOPMENT_SEED, REPORT_SEED, draw_suite

BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument(
        "--seed",
        type=int,
        action="append",
        help="random seed (may be repeated to pool workloads;"
        f" default: {DEVELOPMENT_SEED}; the published tables: {REPORT_SEED})",
    )
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"workloads per budget and seed (default: {COUNT})"
    )
    parser.add_argument(
        "--budget",
        metavar="EPS,DELTA",
        action="append",
        type=budget,
        help="a budget (may be repeated; default: 1,1e-6 and 3,1e-6 and 8,1e-5)",
    )
    parser.add_argument(
        "--filter",
        metavar="KIND",
        action="append",
        choices=kinds(),
        help=f"one kind of filter (may be repeated): {', '.join(kinds())}",
    )
    parser.add_argument(
        "--nothing-expected",
        action="store_true",
        help="add the automatic filter without what the workloads list as expected",
    )
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--write", metavar="FILE", type=Path, help="put the tables between the marks of this page"
    )
    return parser.parse_args(given)


def budget(text: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    try:
        eps, delta = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be EPS,DELTA, got {text!r}") from None
    return eps, delta


def measured(
    chosen: argparse.Namespace, eps: float, delta: float, field: Field | None
) -> tuple[SuiteComparison, list[str]]:
    """Every filter, and every peer of the field, at one budget; and notes on the peers."""
    parts, notes = [], dict[str, None]()
    filters: dict[str, Any] = {kind: kind for kind in chosen.filter or kinds()}
    if chosen.nothing_expected:
        filters["auto, nothing expected"] = rz.AutoFilter(eps, delta)
    for seed in chosen.seed or [DEVELOPMENT_SEED]:
        drawn: dict[str, Any] = {"seed": seed, "count": chosen.count}
        found = rz.compare_filters(eps, delta, "suite", filters, progress=_tell, **drawn)
        assert isinstance(found, SuiteComparison)
        if field is not None:
            found, told = with_peers(found, draw_suite(eps, delta, **drawn), field, _tell)
            notes |= dict.fromkeys(told)
        parts.append(found)
    return pooled(parts), list(notes)


def report(found: SuiteComparison, notes: list[str]) -> str:
    """The table of one budget with its title, as it is printed and as pages show it."""
    title = f"admitted / non-adaptive optimum within ({found.eps:g}, {found.delta:g})"
    return "\n".join([title, "", found.table(), *notes])


def main(given: list[str] | None = None) -> None:
    chosen = arguments(given)
    reports, texts = [], []
    with nullcontext() if chosen.no_peers else open_field(install=False) as field:
        for eps, delta in chosen.budget or BUDGETS:
            started = time.perf_counter()
            found, notes = measured(chosen, eps, delta, field)
            reports.append({**found.to_dict(), "notes": notes})
            texts.append(report(found, notes))
            if not chosen.json:
                print(texts[-1])
                print(f"\n{time.perf_counter() - started:.1f} s\n", flush=True)
    if chosen.json:
        print(json.dumps(reports, indent=2))
    if chosen.write:
        pages.fill(chosen.write, "suite", "\n\n".join(f"```text\n{text}\n```" for text in texts))


def _tell(what: str, done: int, total: int) -> None:
    if what:
        print(f"{done}/{total} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except rz.ResiduaError as error:
        raise SystemExit(f"error: {error}") from None
