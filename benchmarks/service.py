"""Spends a second through the service: beside the same gate in-process, and beside other work.

    python -m benchmarks.service [--seconds N] [--connections N] [--only PART] [--json]
    python -m benchmarks.service --soak [SECONDS] [--connections N] [--pause SECONDS]

Each store is measured in three ways with the same number of callers: threads at an open ledger;
connections to `residua serve` from a second process that does nothing but send requests and read
answers (`load.py`); and threads of that process that call `rz.Client`. They take turns, second by
second, because a machine is not the same from minute to minute. The service's process, the client's
and PostgreSQL's share the machine, so on few cores they compete: the report says what a spend costs
the first two in processor time.

Then the latency of the same spends alone and beside other work (`harness/disturbance.py`), in
turns, as ratios; and the spends a second of two service processes on one PostgreSQL beside one.
`--soak` spends for an hour, or so long, and says by how much memory, open files, connections,
threads and latency grow in an hour once caches are full, with a verdict (`harness/trend.py`); with
`--pause`, each connection waits so long between two spends. The figures are a trend, and no test
demands any of them.
"""

from __future__ import annotations

import argparse
import itertools
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import residua as rz
from benchmarks.harness import disturbance, trend
from benchmarks.harness.load import load_of
from residua.service import auth
from residua.service.auth import TokenStore

QUERY = rz.Gaussian(sigma=10_000.0)
WAYS = {"gate": "in-process", "service": "service", "client": "through rz.Client"}
WARM_UP = 600.0
"""Seconds of a soak in which caches fill; of a shorter one, the first sixth."""
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


def load(url: str, token: str, callers: int, pause: float) -> None:
    """The client's process: a way and seconds come in, latencies go out."""
    with rz.Client(url, token, connections=callers) as client:
        for line in sys.stdin:
            way, seconds = line.split()
            found = (
                threads(client, float(seconds), callers)
                if way == "client"
                else load_of(url, token, QUERY, float(seconds), callers, pause)
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

    def __init__(self, url: str, token: str, callers: int, pause: float = 0.0):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.service", "--load", url, "--token", token,
             "--connections", str(callers), "--pause", str(pause)],
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
        made, token = auth.new_token("engine")
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


def add_principal(ledger: rz.Ledger, role: str, name: str) -> str:
    """A token for somebody new."""
    made, token = auth.new_token(role, principal=name)
    TokenStore(ledger).add(made)
    return token


@contextmanager
def disturbed(kind: str, url: str, token: str, store: str) -> Iterator[None]:
    """While somebody else keeps the service, or its store, busy."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.harness.disturbance", kind, url, token, store]
    )
    try:
        time.sleep(3.0)  # It starts, and so do the workers of the service.
        assert child.poll() is None, f"{kind} ended"
        yield
    finally:
        child.kill()
        child.wait()


def beside(store: str, folder: Path, seconds: float, callers: int) -> dict[str, Any]:
    """Latencies of spends alone, and beside each kind of other work, in turns."""
    anchor = folder / "anchor-beside"
    found: dict[str, list[float]] = {kind: [] for kind in ("alone", *disturbance.KINDS)}
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("bench", rz.GdpResidueFilter(mu=1.0))
        for name in (disturbance.OPENED, *disturbance.FRESH):
            ledger.create_budget(name, rz.AutoFilter(eps=1.0, delta=1e-6))
        ledger.spend(disturbance.OPENED, rz.Gaussian(sigma=50.0))
        token = add_principal(ledger, "engine", "engine")
        other = add_principal(ledger, "admin", "somebody-else")
    with served(store, anchor) as (url, _), Load(url, token, callers) as client:
        client.run("service", 2.0)
        for _ in range(max(1, round(seconds / 3))):
            for kind, latencies in found.items():
                if kind == "alone":
                    latencies += client.run("service", 3.0)
                    continue
                with disturbed(kind, url, other, store):
                    latencies += client.run("service", 3.0)
                time.sleep(1.0)
    report: dict[str, Any] = {
        kind: summary(each, 3.0 * max(1, round(seconds / 3))) for kind, each in found.items()
    }
    for one in report.values():
        for name in ("p50", "p99"):
            one[f"{name}_ratio"] = one[f"{name}_ms"] / report["alone"][f"{name}_ms"]
    return report


def two_processes(store: str, folder: Path, seconds: float, callers: int) -> dict[str, float]:
    """Spends a second of two service processes on one store beside one, in turns."""
    anchor = folder / "anchor-two"
    with rz.open_ledger(store, anchor=anchor) as ledger:
        ledger.create_budget("bench", rz.GdpResidueFilter(mu=1.0))
        token = add_principal(ledger, "engine", "engine")
    rates: dict[str, list[int]] = {"one": [], "two": []}
    with ExitStack() as stack:
        urls = [stack.enter_context(served(store, anchor))[0] for _ in range(2)]
        whole = stack.enter_context(Load(urls[0], token, callers))
        halves = [stack.enter_context(Load(url, token, max(1, callers // 2))) for url in urls]
        for load_ in (whole, *halves):
            load_.run("service", 1.0)
        for _ in range(max(1, round(seconds))):
            rates["one"].append(len(whole.run("service", 1.0)))
            with ThreadPoolExecutor(2) as pool:
                both = list(pool.map(lambda one: one.run("service", 1.0), halves))
            rates["two"].append(sum(map(len, both)))
    one, two = (sum(each) / len(each) for each in rates.values())
    return {"one": one, "two": two, "ratio": two / one}


def soak(seconds: float, callers: int, pause: float) -> dict[str, Any]:
    """Spend for so long beside expensive requests, and watch what grows."""
    folder = Path(tempfile.mkdtemp(prefix="residua-soak-"))
    samples: list[dict[str, float]] = []
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        store, anchor = f"sqlite:///{folder}/soak.db", folder / "anchor"
        with rz.open_ledger(store, anchor=anchor) as ledger:
            ledger.create_budget("bench", rz.GdpResidueFilter(mu=1.0))
            for name in (disturbance.OPENED, *disturbance.FRESH):
                ledger.create_budget(name, rz.AutoFilter(eps=1.0, delta=1e-6))
            token = add_principal(ledger, "engine", "engine")
            other = add_principal(ledger, "admin", "somebody-else")
        url, pid = stack.enter_context(served(store, anchor))
        client = stack.enter_context(Load(url, token, callers, pause))
        start, slice_, records = time.monotonic(), max(5.0, min(30.0, seconds / 120)), 0
        while time.monotonic() < start + seconds:
            kind = disturbance.KINDS[len(samples) % len(disturbance.KINDS)]
            with disturbed(kind, url, other, store):
                latencies = client.run("service", slice_)
            records += len(latencies)
            passed = {"seconds": time.monotonic() - start, "records": float(records)}
            samples.append({**passed, **summary(latencies, slice_), **trend.held_by(pid)})
            print(f"{len(samples):>4} {kind:<10}"
                  + "  ".join(f"{name} {value:.1f}" for name, value in samples[-1].items()),
                  file=sys.stderr, flush=True)  # fmt: skip
    return {
        "seconds": seconds,
        "slices": len(samples),
        **trend.trends(samples, min(WARM_UP, seconds / 6), len(disturbance.KINDS)),
        "last": samples[-1],
    }


@contextmanager
def sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder}/bench.db"


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgserver.postgres_server import get_server
    server = get_server(folder / "postgres", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


STORES: dict[str, Callable[[Path], Any]] = {"sqlite": sqlite, "postgresql": postgresql}


PARTS: dict[str, Callable[[str, Path, float, int], Any]] = {
    "ways": measured,
    "beside": beside,
    "two": two_processes,
}


def run(seconds: float, callers: int, only: str | None) -> dict[str, Any]:
    """Every store in turn."""
    found: dict[str, dict[str, Any]] = {}
    for (name, store), (part, measure) in itertools.product(STORES.items(), PARTS.items()):
        if only not in (None, part) or (part == "two" and name == "sqlite"):
            continue
        print(f"{name} {part} ...", file=sys.stderr, flush=True)
        folder = Path(tempfile.mkdtemp(prefix="residua-bench-"))
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            url = stack.enter_context(store(folder))
            found.setdefault(part, {})[name] = measure(url, folder, seconds, callers)
    return {
        "connections": callers,
        "seconds": seconds,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        **found,
    }


def table(stores: dict[str, Any]) -> str:
    """For people."""
    lines = [
        f"{'':<30}{'spends/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'ratio':>8}"
        f"{'us of service':>14}{'of client':>13}"
    ]
    for name, ways in stores.items():
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


def table_beside(stores: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{'':<24}{'spends/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'of p50':>9}{'of p99':>9}"]
    for name, kinds in stores.items():
        for kind, one in kinds.items():
            lines.append(
                f"{name if kind == 'alone' else '':<12}{kind:<12}{one['spends_per_second']:>10.0f}"
                f"{one['p50_ms']:>9.1f}{one['p99_ms']:>9.1f}"
                f"{one['p50_ratio']:>9.2f}{one['p99_ratio']:>9.2f}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="for each measurement")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--only", choices=PARTS, help="one part of the figures")
    parser.add_argument("--soak", type=float, nargs="?", const=3600.0, metavar="SECONDS")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--load", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--token", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.load:
        load(chosen.load, chosen.token, chosen.connections, chosen.pause)
        return
    if chosen.soak is not None:
        print(json.dumps(soak(chosen.soak, chosen.connections, chosen.pause), indent=2))
        return
    report = run(chosen.seconds, chosen.connections, chosen.only)
    if chosen.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{report['connections']} callers, {report['cores']} cores,"
          f" load average {report['load_average']:.1f}\n")  # fmt: skip
    if "ways" in report:
        print(table(report["ways"]))
    if "beside" in report:
        print(table_beside(report["beside"]))
    for name, rates in report.get("two", {}).items():
        print(f"{name}: two processes {rates['two']:.0f} spends/s, one {rates['one']:.0f}, ratio"
              f" {rates['ratio']:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
