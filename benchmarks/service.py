"""Spends a second through the service, beside the same gate called in-process.

    python -m benchmarks.service [--seconds N] [--connections N] [--json]

Each store is measured twice with the same number of callers: threads at an open ledger, and
connections of the client, from a second process, to `residuum serve`. The service's process, the
client's and PostgreSQL's share the machine, so on few cores they compete.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import residuum as rz
from residuum.service import tokens
from residuum.service.token_store import TokenStore

QUERY = rz.mechanisms.Gaussian(sigma=10_000.0)
TARGET = 0.6
SERVE = "from residuum.cli import main; main()"


def summary(latencies: list[float], seconds: float) -> dict[str, float]:
    """Rate, and quantiles of the latency in milliseconds."""
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "spends_per_second": len(latencies) / seconds,
        "p50_ms": 1000 * cuts[49],
        "p99_ms": 1000 * cuts[98],
    }


def threads(books: rz.Ledger | rz.Client, seconds: float, callers: int) -> dict[str, float]:
    """Threads that spend, at the gate or over connections of their own."""
    found: list[float] = []
    end = time.perf_counter() + seconds

    def work() -> None:
        while (start := time.perf_counter()) < end:
            assert books.spend("bench", QUERY).admitted
            found.append(time.perf_counter() - start)

    workers = [Thread(target=work) for _ in range(callers)]
    begun = time.perf_counter()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return summary(found, time.perf_counter() - begun)


def load(url: str, token: str, seconds: float, callers: int) -> dict[str, float]:
    """Connections to the service, a thread for each."""
    with rz.Client(url, token, connections=callers) as client:
        # The first requests set up connections and caches on both sides.
        threads(client, 0.5, callers)
        return threads(client, seconds, callers)


@contextmanager
def served(store: str, anchor: Path) -> Iterator[str]:
    """`residuum serve` on a free port; its address."""
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve", "--store", store, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={
            **os.environ,
            "RESIDUUM_RATE": "0",
            "RESIDUUM_LOG_LEVEL": "warning",
            "RESIDUUM_ANCHOR": str(anchor),
        },
    )
    try:
        assert child.stdout is not None
        said = ""
        while "}" not in said:
            line = child.stdout.readline()
            assert line, "the service did not start"
            said += line
        yield json.loads(said)["url"]
    finally:
        child.terminate()
        child.wait()


def through_service(store: str, anchor: Path, token: str, arguments: list[str]) -> dict[str, float]:
    """A load process against a service process."""
    with served(store, anchor) as url:
        result = subprocess.run(
            [sys.executable, "-m", "benchmarks.service", "--load", url, "--token", token,
             *arguments],
            check=True,
            capture_output=True,
            encoding="utf-8",
        )  # fmt: skip
    found: dict[str, float] = json.loads(result.stdout)
    return found


def measured(store: str, folder: Path, seconds: float, callers: int) -> dict[str, Any]:
    """Both ways of reaching one store."""
    anchor = folder / "anchor"
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("bench", rz.GdpResidueFilter(mu=1.0))
        made, token = tokens.made("engine")
        TokenStore(ledger).add(made)
        gate = threads(ledger, seconds, callers)
    arguments = ["--seconds", str(seconds), "--connections", str(callers)]
    service = through_service(store, anchor, token, arguments)
    ratio = service["spends_per_second"] / gate["spends_per_second"]
    return {"gate": gate, "service": service, "ratio": ratio}


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder}/bench.db"


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver
    server = pgserver.get_server(folder / "postgres", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


STORES: dict[str, Callable[[Path], Any]] = {"sqlite": sqlite, "postgresql": postgresql}


def run(seconds: float, callers: int) -> dict[str, Any]:
    """Every store in turn."""
    found = {}
    for name, store in STORES.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        folder = Path(tempfile.mkdtemp(prefix="residuum-bench-"))
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            url = stack.enter_context(store(folder))
            found[name] = measured(url, folder, seconds, callers)
    return {
        "connections": callers,
        "seconds": seconds,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "stores": found,
    }


def table(report: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'':<12}{'':<10}{'spends/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'ratio':>8}"]
    for name, both in report["stores"].items():
        for way in ("gate", "service"):
            one = both[way]
            ratio = f"{both['ratio']:>8.2f}" if way == "service" else ""
            lines.append(
                f"{name if way == 'gate' else '':<12}{way:<10}{one['spends_per_second']:>10.0f}"
                f"{one['p50_ms']:>9.1f}{one['p99_ms']:>9.1f}{ratio}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each measurement")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--load", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--token", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        print(json.dumps(load(chosen.load, chosen.token, chosen.seconds, chosen.connections)))
        return
    report = run(chosen.seconds, chosen.connections)
    if chosen.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{report['connections']} callers, {report['cores']} cores,"
          f" load average {report['load_average']:.1f};"
          f" target for the ratio: {TARGET}\n")  # fmt: skip
    print(table(report))


if __name__ == "__main__":
    main()
