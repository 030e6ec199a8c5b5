"""The power fails: nothing that was acknowledged is missing, and the ledger verifies.

Runs of writers, and of the database server, are recorded; `faults.power` says what a disk may hold
after a failure at some moment. `RESIDUA_KILLS` says how many failures there are for each store.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from faults import power, writers
from faults.conftest import KILLS
from faults.harness import Place, check, noted
from residua.ledger.storage.anchor import FileAnchor

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    warnings.simplefilter("ignore")
    import pgserver

pytestmark = [
    pytest.mark.needs("flint"),
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or shutil.which("cc") is None,
        reason="needs Linux and a C compiler",
    ),
]

A_LIFE = 10
"""Power failures that are tried with one recorded run; the next run begins after one of them."""
LIVES = 3
"""Runs before a new ledger is taken, so that checks do not take longer and longer."""
REQUESTS = 12
"""Requests of a writer in one run."""


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # Not in a folder of pytest's, which another user's server could not enter.
    with tempfile.TemporaryDirectory(prefix="residua-recorder-") as folder:
        Path(folder).chmod(0o755)
        yield power.build(Path(folder))


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder with a short path, for the sake of sockets, that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="residua-power-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@dataclass(frozen=True)
class Writer:
    """How writers write, under record."""

    wal: bool = False
    careless: str = ""

    def start(self, place: Place, recording: power.Recording, run: str) -> subprocess.Popen[bytes]:
        given = {
            "url": place.url,
            "anchor": str(place.anchor),
            "notes": str(place.notes(run)),
            "run": run,
            "most": REQUESTS,
            "wal": self.wal,
            "careless": self.careless,
        }
        command = [sys.executable, "-m", "faults.recorded_writer", json.dumps(given)]
        return subprocess.Popen(command, env=recording.environment)


def finished(writing: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in writing:
        assert process.wait(120) == 0


def is_made(folder: Path) -> bool:
    """Whether somebody was told that the budgets are there."""
    return any(word == "made" for path in folder.glob("*.notes") for word, *_ in noted(path))


def check_after(place: Place) -> Counter[str]:
    """All that must be true after a power failure."""
    if is_made(place.folder):
        check_anchored(place)
        return check(place)
    with rz.open_ledger(place.url, anchor=place.anchor) as ledger:
        # It was not there yet, or not all of it: whoever began can go on.
        assert ledger.read_only is None
        known = {budget.name for budget in ledger.budgets()}
        for name, filter in writers.BUDGETS.items():
            if name not in known:
                ledger.create_budget(name, filter)
        assert ledger.verify().ok
    return Counter({"unmade": 1})


def check_anchored(place: Place) -> None:
    """The anchor knows of every answer: without it, a restored backup would go unnoticed."""
    said = FileAnchor(place.anchor).read()
    assert said is not None
    for path in place.folder.glob("*.notes"):
        for word, *rest in noted(path):
            for name, (seq, _) in rest[3].items() if word == "ack" else ():
                assert said.marks[name][0] >= seq, "anchored before the caller is told"


def check_found(run: Callable[[], object]) -> None:
    """A ledger that does not wait for the disk fails the checks."""
    with pytest.raises((AssertionError, IndexError, rz.LedgerError)) as caught:
        run()
    assert any(note.startswith("life") for note in caught.value.__notes__), "found by a check"


# -- SQLite ----------------------------------------------------------------------------------


def sqlite_failures(
    recorder: Path, home: Path, writer: Writer, failures: int, seed: str
) -> Counter[str]:
    """Record, let the power fail, check, and go on with what is left."""
    total: Counter[str] = Counter()
    chance = random.Random(seed)
    for life in range(failures // A_LIFE):
        if life % LIVES == 0:
            root = home / f"{life}"
            root.mkdir()
        place = Place(f"sqlite:///{root}/ledger.db", root)
        recording = power.Recording(recorder, root, home / f"{life}.log")
        disk = power.Disk(root)
        finished([writer.start(place, recording, f"{seed}-{life}")])
        log = power.events(recording.log)
        images = home / f"{life}.left"
        for left in power.failures(disk, log, A_LIFE, images, chance):
            shutil.copytree(left, checked := left.with_name(f"{left.name}-checked"))
            try:
                total += check_after(Place(f"sqlite:///{checked}/ledger.db", checked))
            except Exception as error:
                error.add_note(f"life {life} of {seed!r}, {left.name}, {power.describe(log)}")
                raise
            shutil.rmtree(checked)
            total["failures"] += 1
        root = chance.choice(sorted(images.iterdir()))
    return total


JOURNALS = pytest.mark.parametrize("wal", [False, True], ids=["journal", "write-ahead log"])


@JOURNALS
def test_power_failures_with_sqlite(recorder: Path, home: Path, wal: bool) -> None:
    failures = max(2 * A_LIFE, KILLS)
    total = sqlite_failures(recorder, home, Writer(wal), failures, f"sqlite-{wal}")
    print(f"\n{total['failures']} power failures, wal={wal}: {dict(total)}")
    assert total["acknowledged"] > failures and total["lost"] > 0 and total["proven"] > 0


@JOURNALS
@pytest.mark.parametrize("careless", ["store", "anchor"])
def test_sqlite_that_does_not_wait_for_the_disk_is_found(
    recorder: Path, home: Path, wal: bool, careless: str
) -> None:
    writer = Writer(wal, careless)
    check_found(lambda: sqlite_failures(recorder, home, writer, 2 * A_LIFE, careless))


# -- PostgreSQL ------------------------------------------------------------------------------


@pytest.fixture
def cluster(server: Any, home: Path) -> Path:
    """The data of a new PostgreSQL server, owned by the user that it runs as."""
    data = home / "base" / "data"
    data.mkdir(parents=True)
    give_to(server, data)
    # Small segments of the write-ahead log, so that many are begun and used again.
    options = ["--auth=trust", "--username=postgres", "--wal-segsize=1", "--no-sync"]
    pgserver.initdb(options, pgdata=data, user=server.system_user)
    return data


def give_to(server: Any, data: Path) -> None:
    """Let the server's user own its data, and nobody else enter."""
    for place, _, names in os.walk(data):
        os.chmod(place, 0o700)
        if server.system_user is not None:
            for path in (place, *(os.path.join(place, name) for name in names)):
                shutil.chown(path, server.system_user)


@contextlib.contextmanager
def running(
    server: Any, data: Path, sockets: Path, recording: power.Recording, fsync: str = "on"
) -> Iterator[str]:
    """The address of a server with this data. It ends as in a crash."""
    import psycopg

    sockets.mkdir(exist_ok=True)
    sockets.chmod(0o777)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(sockets),
        "fsync": fsync,
        "shared_buffers": "1MB",  # So few that changed pages are written in between.
        "max_wal_size": "2MB",
        "min_wal_size": "2MB",
    }
    settings = [word for pair in options.items() for word in ("-c", "=".join(pair))]
    log = sockets / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [pgserver._commands.POSTGRES_BIN_PATH / "postgres", "-D", str(data), *settings],
            stdout=output,
            stderr=output,
            env=recording.environment,
            user=server.system_user,
        )
    try:
        url, deadline = f"postgresql://postgres:@/postgres?host={sockets}", time.monotonic() + 60
        while True:
            try:
                psycopg.connect(url).close()
                break
            except psycopg.OperationalError:
                alive = process.poll() is None and time.monotonic() < deadline
                assert alive, f"PostgreSQL does not start: {log.read_text()[-2000:]}"
                time.sleep(0.02)
        yield url
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(60)


@contextlib.contextmanager
def checkpoints(url: str) -> Iterator[None]:
    """Many of them, so that the server writes and syncs its tables and reuses its log."""
    import psycopg

    over = threading.Event()

    def work() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.wait(0.1):
                connection.execute("CHECKPOINT")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def postgres_failures(
    recorder: Path,
    home: Path,
    server: Any,
    cluster: Path,
    failures: int,
    seed: str,
    fsync: str = "on",
) -> Counter[str]:
    """The same with a server; its start after a failure is recorded, so that may be cut too."""
    total: Counter[str] = Counter()
    chance = random.Random(seed)
    writer = Writer(careless="store" if fsync == "off" else "")
    life = 0
    while total["failures"] < failures:
        if life % LIVES == 0:
            root = home / f"{life}"
            shutil.copytree(cluster.parent, root)
            give_to(server, root / "data")
        recording = power.Recording(recorder, root, home / f"{life}.log")
        disk = power.Disk(root, syncs_new_names=True)
        with running(server, root / "data", home / "s", recording, fsync) as url, checkpoints(url):
            place = Place(url, root)
            runs = [f"{seed}-{life}-{number}" for number in range(2)]
            first = writer.start(place, recording, runs[0])
            while first.poll() is None and not is_made(root):
                time.sleep(0.01)
            finished([first, writer.start(place, recording, runs[1])])
        log = power.events(recording.log)
        images = home / f"{life}.left"
        count = min(A_LIFE, failures - total["failures"])
        for left in power.failures(disk, log, count, images, chance):
            shutil.copytree(left, checked := left.with_name(f"{left.name}-checked"))
            give_to(server, checked / "data")
            try:
                # Recorded only because it is faster: nothing is really synced.
                again = power.Recording(recorder, checked, home / "checked.log")
                with running(server, checked / "data", home / "s", again) as url:
                    total += check_after(Place(url, checked))
            except Exception as error:
                error.add_note(f"life {life} of {seed!r}, {left.name}, {power.describe(log)}")
                raise
            shutil.rmtree(checked)
            total["failures"] += 1
        shutil.rmtree(root)
        root = chance.choice(sorted(images.iterdir()))
        give_to(server, root / "data")
        life += 1
    return total


@pytest.mark.needs("pgserver", "psycopg")
def test_power_failures_with_postgres(
    recorder: Path, home: Path, server: Any, cluster: Path
) -> None:
    total = postgres_failures(recorder, home, server, cluster, KILLS, "postgres")
    print(f"\n{total['failures']} power failures, PostgreSQL: {dict(total)}")
    assert total["acknowledged"] > 0 and total["proven"] > 0


@pytest.mark.needs("pgserver", "psycopg")
def test_postgres_that_does_not_wait_for_the_disk_is_found(
    recorder: Path, home: Path, server: Any, cluster: Path
) -> None:
    check_found(
        lambda: postgres_failures(recorder, home, server, cluster, A_LIFE, "careless", "off")
    )
