"""Writers die, servers crash, disks fill: nothing acknowledged is lost and nothing is doubled."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import backups
import residua as rz
from faults import writers
from faults.conftest import KILLS
from faults.harness import _CONTEXT, Place, batched, begun, check, kill_at, kill_within
from residua.ledger.operations.committer import POINTS

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
    for _ in writing:
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
@pytest.mark.parametrize("exported", [True, False])
def test_restored_backup_does_not_unspend(
    places: Callable[[], Place], tmp_path: Path, exported: bool
) -> None:
    """The ledger is behind its anchor, and goes on with what was exported, or without what lost."""
    place = places()
    writers.write(place.url, place.anchor, place.notes("before"), "before", 5, None)
    backup = backups.sqlite if place.url.startswith("sqlite") else backups.postgres
    restore = backup(place.url, tmp_path / "backup")
    kill_at(place, "after", ("answered", 9))
    with place.open() as ledger:
        ledger.export(tmp_path / "export.jsonl")
        heads = {budget.name: budget.seq for budget in ledger.budgets()}
    restore()
    with place.open() as ledger:
        assert ledger.read_only is not None
        with pytest.raises(rz.ReadOnlyLedger, match="recover"):
            ledger.spend("pure", rz.mechanisms.PureDp(eps=0.01))
        behind = {each.name for each in ledger.budgets() if each.seq < heads[each.name]}
        assert behind
        if exported:
            done = ledger.recover(export=tmp_path / "export.jsonl")
            assert done.retired == () and done.applied > 0
        else:
            assert set(ledger.recover(retire=True).retired) == behind
        for name in behind:
            kind = ledger.history(name)[-1].type
            assert kind == ("resume" if exported else "recover"), "on record"
    if exported:
        found = check(place)
        assert found["acknowledged"] > 5
        return
    with place.open() as ledger:
        for name in writers.BUDGETS:
            if name in behind:
                with pytest.raises(rz.RetiredBudget):
                    ledger.spend(name, rz.mechanisms.PureDp(eps=0.01))
            else:
                assert ledger.spend(name, rz.mechanisms.PureDp(eps=0.01)).admitted
        assert ledger.verify().ok


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


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of its own, in memory, that is soon full; only root may mount one."""
    folder = Path(tempfile.mkdtemp(prefix="residua-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=96m,mode=0755", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


@pytest.mark.needs("pgserver", "psycopg", "flint")
def test_full_disk_of_the_server(small_disk: Path, tmp_path: Path) -> None:
    """It refuses, or dies; with room again, everything that was acknowledged is there."""
    import pgserver

    server = pgserver.get_server(small_disk / "data", cleanup_mode="stop")
    try:
        place = Place(server.get_uri(), tmp_path)
        writers.make(place.url, place.anchor)
        writers.write(place.url, place.anchor, place.notes("before"), "before", 5, None)
        ballast = small_disk / "ballast"
        free = os.statvfs(small_disk)
        with ballast.open("wb") as file:
            file.write(bytes(free.f_bavail * free.f_frsize - 200_000))
        writers.write(place.url, place.anchor, place.notes("full"), "full", 150, None)
        notes = place.notes("full").read_text()
        assert '"ack"' in notes and ('"StoreUnavailable"' in notes or '"OutcomeUnknown"' in notes)
        ballast.unlink()
        server.ensure_postgres_running()
        found = check(place)
        assert found["acknowledged"] > 5 and found["lost"] > 0
        print(f"\n{dict(found)}")
    finally:
        server.cleanup()


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
