"""Spends a second through the service, beside the same gate called in-process.

    python -m benchmarks.service [--seconds N] [--connections N] [--json]

Each store is measured in three ways with the same number of callers: threads at an open ledger;
connections to `residua serve` from a second process that does nothing but send requests and read
answers (`load.py`); and threads of that process that call `rz.Client`. They take turns, second by
second, because a machine is not the same from minute to minute. The service's process, the client's
and PostgreSQL's share the machine, so on few cores they compete: the report says what a spend costs
the first two in processor time. The figures are a trend, and no test demands any of them.
"""

from __future__ import annotations

import argparse
import json
import math
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

import residua as rz
from benchmarks.harness.load import load_of
from residua.service.auth import tokens
from residua.service.auth.token_store import TokenStore

QUERY = rz.Gaussian(sigma=10_000.0)
WAYS = {"gate": "in-process", "service": "service", "client": "through rz.Client"}
SERVE = "from residua.cli import main; main()"


def summary(latencies: list[float], seconds: float) -> dict[str, float]:
    """Rate, and quantiles of the latency in milliseconds."""
    cuts = statistics.quantiles(latencies, n=100)
    return {
        "spends_per_second": len(latencies) / seconds,
        "p50_ms": 1000 * cuts[49],
        "p99_ms": 1000 * cuts[98],
    }


def threads(books: rz.Ledger | rz.Client, seconds: float, callers: int) -> list[float]:
    """Latencies of threads that spend, at the gate or over connections of their own."""
    found: list[float] = []
    end = time.perf_counter() + seconds

    def work() -> None:
        while (start := time.perf_counter()) < end:
            assert books.spend("bench", QUERY).admitted
            found.append(time.perf_counter() - start)

    workers = [Thread(target=work) for _ in range(callers)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return found


def load(url: str, token: str, callers: int) -> None:
    """The client's process: a way and seconds come in, latencies go out."""
    with rz.Client(url, token, connections=callers) as client:
        for line in sys.stdin:
            way, seconds = line.split()
            found = (
                threads(client, float(seconds), callers)
                if way == "client"
                else load_of(url, token, QUERY, float(seconds), callers)
            )
            print(json.dumps(found), flush=True)


@contextmanager
def served(store: str, anchor: Path) -> Iterator[tuple[str, int]]:
    """`residua serve` on a free port; its address, and the id of its process."""
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE, "serve", "--store", store, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={
            **os.environ,
            "RESIDUA_RATE": "0",
            "RESIDUA_LOG_LEVEL": "warning",
            "RESIDUA_ANCHOR": str(anchor),
        },
    )
    try:
        assert child.stdout is not None
        said = ""
        while "}" not in said:
            line = child.stdout.readline()
            assert line, "the service did not start"
            said += line
        yield json.loads(said)["url"], child.pid
    finally:
        child.terminate()
        child.wait()


class Load:
    """The client's process."""

    def __init__(self, url: str, token: str, callers: int):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service", "--load", url, "--token", token,
             "--connections", str(callers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )  # fmt: skip

    def run(self, way: str, seconds: float) -> list[float]:
        """Latencies of spends for so long, over bare connections or through `rz.Client`."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{way} {seconds}\n")
        self.process.stdin.flush()
        found: list[float] = json.loads(self.process.stdout.readline())
        return found

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def processor_time(pid: int) -> float:
    """Seconds of processor that a process has taken; not a number where nobody says."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(store: str, folder: Path, seconds: float, callers: int) -> dict[str, Any]:
    """Both ways of reaching one store, in turns."""
    anchor = folder / "anchor"
    rounds = max(1, round(seconds))
    found: dict[str, list[float]] = {"gate": [], "service": [], "client": []}
    took = {way: [0.0, 0.0] for way in found}
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("bench", rz.GdpResidueFilter(mu=1.0))
        made, token = tokens.made("engine")
        TokenStore(ledger).add(made)
        with served(store, anchor) as (url, pid), Load(url, token, callers) as client:

            def measure(way: str, seconds: float) -> list[float]:
                if way == "gate":
                    return threads(ledger, seconds, callers)
                return client.run(way, seconds)

            for way in found:  # The first requests set up connections and caches on both sides.
                measure(way, 0.5)
            for _ in range(rounds):
                for way, latencies in found.items():
                    before = [processor_time(each) for each in (pid, client.process.pid)]
                    latencies += measure(way, 1.0)
                    after = [processor_time(each) for each in (pid, client.process.pid)]
                    took[way] = [
                        t + b - a for t, a, b in zip(took[way], before, after, strict=True)
                    ]
    report: dict[str, Any] = {way: summary(each, rounds) for way, each in found.items()}
    for way in ("service", "client"):
        report[way]["ratio"] = len(found[way]) / len(found["gate"])
        report[way]["service_us"], report[way]["client_us"] = (
            1e6 * each / len(found[way]) for each in took[way]
        )
    return report


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
        folder = Path(tempfile.mkdtemp(prefix="residua-bench-"))
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
    lines = [
        f"{'':<30}{'spends/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'ratio':>8}"
        f"{'us of service':>14}{'of client':>13}"
    ]
    for name, ways in report["stores"].items():
        for way, label in WAYS.items():
            one = ways[way]
            line = (
                f"{name if way == 'gate' else '':<12}{label:<18}{one['spends_per_second']:>10.0f}"
            )
            line += f"{one['p50_ms']:>9.1f}{one['p99_ms']:>9.1f}"
            if way != "gate":
                line += f"{one['ratio']:>8.2f}{one['service_us']:>14.0f}{one['client_us']:>13.0f}"
            lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each measurement")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--load", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--token", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        load(chosen.load, chosen.token, chosen.connections)
        return
    report = run(chosen.seconds, chosen.connections)
    if chosen.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{report['connections']} callers, {report['cores']} cores,"
          f" load average {report['load_average']:.1f}\n")  # fmt: skip
    print(table(report))


if __name__ == "__main__":
    main()
