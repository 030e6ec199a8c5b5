"""`residua bench` and `residua version`: how fast this machine is, and what it runs."""

import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import typer

from residua.cli import output
from residua.cli.command import Result, command
from residua.errors import ArgumentError

app = typer.Typer(add_completion=False, rich_markup_mode=None)

CALLERS = 16
"""Callers that spend at once."""


class Rate(NamedTuple):
    """How often something was done, and how long that took."""

    what: str
    times: int
    seconds: float

    @property
    def a_second(self) -> float:
        return self.times / self.seconds


@command(app)
def bench(
    seconds: float = 1.0,
) -> Result:
    """Measure decisions, spends and verification on this machine.

    Decisions are made by filters in memory, each from the state that the last one left. Spends are
    decided, recorded and synced in a new ledger in the directory for temporary files (TMPDIR), by
    one caller and by several at once; the verifier then proves them again. To compare with other
    libraries, run `make bench` in the source tree.

    Options:
      seconds: Measure each row for about this many seconds.

    Example:
      residua bench --seconds 0.2
      residua bench --seconds 0.2 --json
    """
    if not 0.01 <= seconds <= 600:
        raise ArgumentError(f"seconds must be between 0.01 and 600, got {seconds!r}")
    with output.progress("measuring") as report:
        works = [*_decisions(), _ledger]
        rates = []
        for place, work in enumerate(works):
            report("measuring", place, len(works))
            rates += work(seconds)
    shown = [
        {"what": each.what, "count": each.times, "seconds": round(each.seconds, 6),
         "a_second": round(each.a_second, 3)}
        for each in rates
    ]  # fmt: skip
    rows = [(r.what, f"{r.a_second:,.0f}", f"{1000 / r.a_second:.3g}") for r in rates]
    columns = ("", "a second", "ms each")
    return Result(
        {"rates": shown}, lambda: output.print_table("on this machine, now", columns, rows)
    )


def _measure(work: Callable[[], object], seconds: float) -> tuple[int, float]:
    """How often `work` was done in about `seconds`, and how long that took; one warm-up first."""
    work()
    count, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        work()
        count += 1
    return max(1, count), max(passed, 1e-9)


def _decisions() -> list[Callable[[float], list[Rate]]]:
    """Decisions of one filter after another, each on the state that the last one left."""
    from residua.filters.additive.basic import BasicFilter
    from residua.filters.residue.gdp_residue import GdpResidueFilter
    from residua.filters.union.auto import AutoFilter
    from residua.mechanisms.noise import Laplace

    query = Laplace(scale=1e3)

    def measure_filter(filter: Any) -> Callable[[float], list[Rate]]:
        def work(seconds: float) -> list[Rate]:
            state = filter.initial()

            def decide() -> None:
                nonlocal state
                state = filter.decide(state, query).state

            return [Rate(f"decisions of {filter!r}", *_measure(decide, seconds))]

        return work

    filters = (BasicFilter(1.0, 1e-6), GdpResidueFilter(1.0), AutoFilter(1.0, 1e-6))
    return [measure_filter(filter) for filter in filters]


def _ledger(seconds: float) -> list[Rate]:
    """Durable spends by one caller and by several, and their verification."""
    from residua.filters.residue.gdp_residue import GdpResidueFilter
    from residua.ledger.api.opening import open_ledger
    from residua.mechanisms.noise import Laplace

    query = Laplace(scale=1e3)
    with TemporaryDirectory(prefix="residua-bench-") as folder:
        path = Path(folder) / "bench.db"
        with open_ledger(path) as ledger:
            ledger.create_budget("bench", GdpResidueFilter(mu=1.0))

            def spend() -> None:
                ledger.spend("bench", query)

            rates = [Rate("durable spends, one caller", *_measure(spend, seconds))]
            begun = time.perf_counter()
            with ThreadPoolExecutor(CALLERS) as callers:
                running = [callers.submit(_measure, spend, seconds) for _ in range(CALLERS)]
            passed = time.perf_counter() - begun
            count = sum(each.result()[0] for each in running)
            rates.append(Rate(f"durable spends, {CALLERS} callers", count, passed))
            if find_spec("flint"):
                begun = time.perf_counter()
                proven = ledger.verify().proven
                passed = time.perf_counter() - begun
                rates.append(Rate("steps verified, equal ones once", proven, passed))
    return rates


@command(app)
def version() -> Result:
    """Print the versions of residua, Python, numpy and scipy.

    Example:
      residua version
    """
    versions = {"residua": installed("residua"), "python": platform.python_version()}
    versions |= {name: installed(name) for name in ("numpy", "scipy")}
    lines = [f"{name} {number}" for name, number in versions.items()]
    return Result(versions, lambda: print(*lines, sep="\n"))
