"""Work beside which cheap spends are measured, from a process that runs until it is ended.

    python -m benchmarks.harness.disturbance KIND URL TOKEN STORE

`expensive`: eight callers that ask for what takes longest among all that is admissible: the first
query of automatic filters that is sampled, plans, curves and budgets of such filters. `check`: four
callers that check on one automatic filter. `verify` and `export`: the whole ledger, over and over.
`backup`: SQLite's own backup of the file, or `pg_dump`.
"""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import httpx

KINDS = ("expensive", "check", "verify", "export", "backup")
OPENED, FRESH = "opened", ("fresh-0", "fresh-1", "fresh-2", "fresh-3")
"""Budgets with an automatic filter: one that has been spent from, and others."""
AUTO = {"kind": "auto", "eps": 1.0, "delta": 1e-6}
GAUSSIAN = {"kind": "gaussian", "sigma": 50.0}
OFFSET = random.random() / 1000
"""Queries of each process differ by it from those of all others, so that no cache has them."""


def sampled(n: int) -> dict[str, object]:
    """A query that no cache has."""
    sigma = 5.0 + n / 1000 + OFFSET
    return {"kind": "subsampled_gaussian", "sigma": sigma, "sampling_rate": 0.01}


def expensive(client: httpx.Client, caller: int) -> None:
    for n in itertools.count(caller * 10_000):
        budget = FRESH[caller % len(FRESH)]
        if caller % 2:
            client.post(f"/v1/budgets/{budget}/check", json={"mechanism": sampled(n)})
        elif caller % 4:
            body = {"mechanisms": [sampled(n), GAUSSIAN], "n": 10}
            client.post(f"/v1/budgets/{OPENED}/plan", json=body)
        else:
            client.get(f"/v1/budgets/{OPENED}/curves?points={200 + n % 200}")
            client.get(f"/v1/budgets/{OPENED}")


def check(client: httpx.Client, caller: int) -> None:
    for n in itertools.count(caller * 10_000):
        body = {"mechanism": {"kind": "gaussian", "sigma": 40.0 + n / 1000 + OFFSET}}
        client.post(f"/v1/budgets/{OPENED}/check", json=body)


def verify(client: httpx.Client, caller: int) -> None:
    while True:
        client.post("/v1/verification")
        time.sleep(0.05)


def export(client: httpx.Client, caller: int) -> None:
    while True:
        client.get("/v1/export")


WORK: dict[str, tuple[int, Callable[[httpx.Client, int], None]]] = {
    "expensive": (8, expensive),
    "check": (4, check),
    "verify": (1, verify),
    "export": (1, export),
}


def backup(store: str) -> None:
    """Back the store up, again and again."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "backup"
        while True:
            if store.startswith("sqlite"):
                source = sqlite3.connect(store.removeprefix("sqlite:///"))
                copy = sqlite3.connect(target)
                source.backup(copy, pages=100)
                source.close()
                copy.close()
                target.unlink()
            else:
                subprocess.run([dump(), "--file", str(target), store], check=True)


def dump() -> str:
    """`pg_dump` of the server's package: another version may refuse the server."""
    import pgserver

    beside = Path(pgserver.__file__).parent / "pginstall" / "bin" / "pg_dump"
    return str(beside) if beside.exists() else str(shutil.which("pg_dump"))


def main() -> None:
    kind, url, token, store = sys.argv[1:]
    if kind == "backup":
        backup(store)
    callers, work = WORK[kind]

    def call(caller: int) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
            work(client, caller)

    threads = [Thread(target=call, args=(n,), daemon=True) for n in range(callers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


if __name__ == "__main__":
    main()
