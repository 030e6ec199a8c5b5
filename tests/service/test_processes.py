"""Services in processes of their own: several on one database, and an orderly end."""

from __future__ import annotations

import json
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Event

import pytest

import residua as rz
from residua.errors import LedgerError, ResiduaError
from residua.records import follows
from residua.service import auth
from residua.service.auth import TokenStore
from service.running import process

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

PROCESSES = 4


def prepared(store: str, anchor: Path, **filters: rz.Filter) -> str:
    """A ledger with budgets; the text of a token for an engine."""
    with rz.open_ledger(store, anchor=anchor) as ledger:
        for name, filter in filters.items():
            ledger.create_budget(name, filter)
        made, text = auth.new_token("engine", principal="engine")
        TokenStore(ledger).add(made)
    return text


@pytest.mark.needs("pgserver", "psycopg")
def test_four_processes_one_database(postgres: str, tmp_path: Path) -> None:
    """Together they admit exactly what one filter admits, and a key counts for all of them."""
    query = rz.mechanisms.Laplace(scale=5.0)
    anchor = tmp_path / "anchor"
    text = prepared(postgres, anchor, web=rz.GdpResidueFilter(mu=1.0), log=rz.PureFilter(eps=100))
    fits = rz.how_many(rz.GdpResidueFilter(mu=1.0), query)
    with ExitStack() as stack:
        running = [stack.enter_context(process(postgres, anchor)) for _ in range(PROCESSES)]
        clients = [stack.enter_context(rz.Client(one.url, text)) for one in running]
        barrier = Barrier(2 * PROCESSES)

        def spend(place: int) -> list[rz.Receipt]:
            client, found = clients[place % PROCESSES], []
            barrier.wait()
            for turn in range(2 * fits // PROCESSES):
                # Two threads, at two processes, bring each key.
                found.append(client.spend("web", query, key=f"{place // 2}-{turn}"))
                found.append(client.spend(["log", "web"], query))
            return found

        with ThreadPoolExecutor(2 * PROCESSES) as pool:
            receipts = [one for found in pool.map(spend, range(2 * PROCESSES)) for one in found]
    first = [one for one in receipts if one.admitted and not one.replayed]
    assert len(first) == fits
    assert Counter(one.replayed for one in receipts)[True] == len(receipts) // 4
    with rz.open_ledger(postgres, anchor=anchor) as ledger:
        assert ledger.read_only is None
        chain = ledger.history("web")
        assert sum(one.admitted is True for one in chain) == fits
        before = None
        for record in chain:
            assert follows(before, record) is None
            before = record
        assert sum(one.admitted is True for one in ledger.history("log")) <= fits
        assert {one.head for one in first if "log" not in one.budgets} <= {r.hash for r in chain}


def test_what_is_being_answered_is_finished(tmp_path: Path) -> None:
    """Told to stop under load: all that was acknowledged is there, and nothing was cut off."""
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    text = prepared(store, anchor, web=rz.PureFilter(eps=100.0))
    query, warm = rz.mechanisms.PureDp(eps=0.001), Event()
    with process(store, anchor) as running:
        url = running.url

        def spend(place: int) -> tuple[list[rz.Receipt], list[ResiduaError]]:
            found: list[rz.Receipt] = []
            with rz.Client(url, text, attempts=1) as client:
                for turn in range(10_000):
                    try:
                        found.append(client.spend("web", query, key=f"{place}-{turn}"))
                    except LedgerError as error:
                        return found, [error]
                    if turn == 2:
                        warm.set()
            return found, []

        with ThreadPoolExecutor(8) as pool:
            spending = [pool.submit(spend, place) for place in range(8)]
            assert warm.wait(60)
            running.child.send_signal(signal.SIGTERM)
            ended = [one.result() for one in spending]
        assert running.child.wait(60) == 0
        said = running.child.stderr.read() if running.child.stderr else ""
    assert all(errors for _, errors in ended), "each one met the end"
    with rz.open_ledger(store, anchor=anchor) as ledger:
        kept = {record.key: record.hash for record in ledger.history("web")}
    acknowledged = [one for found, _ in ended for one in found]
    assert acknowledged and all(kept[one.key] == one.head for one in acknowledged)
    # Nobody's spend was recorded without an answer: those in flight were finished.
    assert len(kept) - 1 == len(acknowledged), [str(e) for _, errors in ended for e in errors]
    events = [json.loads(line)["event"] for line in said.splitlines()]
    assert events[-1] == "stopped" and "internal error" not in events
