"""Writers die, servers crash, disks fill: nothing acknowledged is lost and nothing is doubled."""

from __future__ import annotations

import resource
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import residuum as rz
from faults import writers
from faults.conftest import KILLS
from faults.harness import _CONTEXT, Place, batched, begun, check, kill_at, kill_within
from residuum.ledger.faults import POINTS

A_TRIAL = 25
"""Kills before the books are closed and a new ledger is taken, so that budgets do not run dry."""
A_WHILE = 0.1
"""Seconds within which a writer is killed: dozens of transactions, and each is verified."""


def test_killed_at_every_named_point(places: Callable[[], Place]) -> None:
    kills = max(KILLS, len(POINTS))
    faults = [(POINTS[n % len(POINTS)], 2 + n % 11) for n in range(kills)]
    total: Counter[str] = Counter()
    for trial in batched(faults, A_TRIAL):
        place = places()
        for number, fault in enumerate(trial):
            kill_at(place, f"at-{number}-{fault[0]}", fault)
        total += check(place)
    print(f"\n{kills} kills at {len(POINTS)} points: {dict(total)}")
    assert total["acknowledged"] > 0 and total["proven"] > 0
    whole = kills // len(POINTS)
    assert total["lost"] >= whole * (len(POINTS) - 1)  # who died after the answer may have noted it


def test_killed_at_random_moments(places: Callable[[], Place]) -> None:
    total: Counter[str] = Counter()
    for trial in batched(range(KILLS), A_TRIAL):
        place = places()
        for number in trial:
            kill_within(place, f"kill-{number}", A_WHILE)
        total += check(place)
    print(f"\n{KILLS} kills at random moments: {dict(total)}")
    assert total["acknowledged"] > 0


@pytest.mark.needs("pgserver", "psycopg", "flint")
def test_server_crashes_in_the_middle(server: Any, schema_url: str, tmp_path: Path) -> None:
    """The server loses everything that is not on disk; writers go on when it is back."""
    folder = tmp_path / "trial"
    folder.mkdir()
    place = Place(schema_url, folder)
    writers.make(place.url, place.anchor)
    writing = [place.start(f"crash-{n}", 150) for n in range(2)]
    for number, process in enumerate(writing):
        begun(place, f"crash-{number}", process)
        _crash(server)
    for process in writing:
        process.join(120)
        assert process.exitcode == 0
    found = check(place)
    assert found["acknowledged"] > 0 and found["lost"] > 0


def _crash(server: Any) -> None:
    import pgserver

    pgserver.pg_ctl(
        ["-w", "-m", "immediate", "stop"], pgdata=server.pgdata, user=server.system_user
    )
    server.ensure_postgres_running()


@pytest.mark.needs("flint")
def test_restored_backup_does_not_unspend(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    place = Place(f"sqlite:///{folder}/ledger.db", folder)
    writers.make(place.url, place.anchor)
    writers.write(place.url, place.anchor, place.notes("before"), "before", 5, None)
    backup = tmp_path / "backup.db"
    shutil.copy(folder / "ledger.db", backup)
    kill_at(place, "after", ("answered", 6))
    for journal in folder.glob("ledger.db-*"):
        journal.unlink()
    shutil.copy(backup, folder / "ledger.db")
    with place.open() as ledger:
        assert ledger.read_only is not None
        with pytest.raises(rz.ReadOnlyLedger, match="recover"):
            ledger.spend("pure", rz.mechanisms.PureDp(eps=0.01))


@pytest.mark.needs("flint")
def test_full_disk(tmp_path: Path) -> None:
    """A file that may not grow: an error that says so, and the ledger is as it was."""
    folder = tmp_path / "trial"
    folder.mkdir()
    place = Place(f"sqlite:///{folder}/ledger.db", folder)
    writers.make(place.url, place.anchor)
    room = (folder / "ledger.db").stat().st_size + 40_000
    process = _CONTEXT.Process(target=_write_with_little_room, args=(place, room))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    notes = place.notes("full").read_text()
    assert '"StoreUnavailable"' in notes and '"ack"' in notes
    check(place)


def _write_with_little_room(place: Place, room: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    notes = place.notes("full")
    writers.write(place.url, place.anchor, notes, "full", 60, None)


def test_many_threads_and_processes(place: Place) -> None:
    """Overlapping groups from everywhere at once: no deadlock, no overspend."""
    begun = time.perf_counter()
    processes = [place.start(f"process-{n}", 12) for n in range(8)]
    errors: list[BaseException] = []
    with place.open() as ledger:

        def work(number: int) -> None:
            try:
                for step in range(4):
                    names = list(writers.GROUPS[(number + step) % len(writers.GROUPS)])
                    query = writers.QUERIES[(number * 7 + step) % 2]
                    ledger.spend(names, query, key=f"thread-{number}-{step}")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
            assert not thread.is_alive()
    for process in processes:
        process.join(240)
        assert process.exitcode == 0
    assert errors == []
    elapsed = time.perf_counter() - begun
    found = check(place)
    assert found["acknowledged"] == 8 * 12 and found.get("lost", 0) == 0
    rate = (8 * 12 + 32 * 4) / elapsed
    print(f"\n{place.url.split(':')[0]}: {rate:.0f} requests a second from 40 writers")
