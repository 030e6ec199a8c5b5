"""Kill a process in the middle of a spend, again and again, and look at what is left.

    python tests/individual/crash.py ENGINE KILLS DIRECTORY

A child spends without end and says which ids were acknowledged. After some of them it is killed
(SIGKILL), at a random moment of the time that a spend takes. Another child then opens the state and
compares it, bit for bit, with a state in memory after the same spends: it must be the one with all
acknowledged spends, or with one more. Retrying that one must return its set, marked as replayed.
Prints how many kills left the old state, and how many a new one that its caller had not heard of.

Engines: `duckdb`, `parquet` (numpy), `spark` (Python and Java are killed at once), and `orphan`:
Spark of which Python alone is killed, while Java lives on for a moment and may still write. A child
of Spark is started ahead of time and waits for its turn; classes come from an archive that
the first Java writes, which halves its start.
"""

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

PEOPLE = 3000
SPARK = ("spark", "orphan")
AHEAD = 2
"""Children of Spark that are being started."""


def losses(number: int) -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(number)
    subject = rng.choice(PEOPLE + 10 * number, PEOPLE // 2, replace=False)
    return pa.table({"subject": subject, "nu": rng.uniform(0.0, 0.5, subject.size)})


def opened(engine: str, directory: Path, session: Any = None) -> Any:
    import residua as rz

    address = (
        f"duckdb:///{directory}/s.db?threads=1" if engine == "duckdb" else f"parquet:{directory}/s"
    )
    chosen = None if engine == "duckdb" else "numpy" if session is None else "spark"
    filter = rz.GdpResidueFilter(mu=1.0)
    return rz.individual.create(address, filter=filter, engine=chosen, spark=session)


def started(archive: Path) -> Any:
    """A Spark of its own, as small and quick to start as it can be."""
    import warnings

    from pyspark.sql import SparkSession

    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = f"-XX:SharedArchiveFile={archive}" if archive.exists() else ""
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {made}",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def write_archive(archive: Path, directory: Path, pipe: int) -> None:
    """Spend once, and let Java write down which classes that took."""
    from pyspark import SparkContext

    os.environ["JDK_JAVA_OPTIONS"] = f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    session = started(archive)
    opened("spark", directory, session).spend(losses(0), spend_id="0")
    session.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def table(state: Any) -> Any:
    found = state.export_sensitive_state_never_release()
    return found.sort_by("subject") if found.num_rows else found


def spend_for_ever(engine: str, archive: Path, turn: int, pipe: int) -> None:
    """Get ready, wait for a directory and a number, and spend from there on."""
    session = started(archive) if engine in SPARK else None
    os.write(pipe, b"ready\n")
    parent = os.getppid()
    while not select.select([turn], [], [], 1.0)[0]:
        if os.getppid() != parent:
            # Nobody is left to say so: do not wait for ever.
            os.killpg(0, signal.SIGKILL)
    directory, number = json.loads(os.read(turn, 4096))
    state = opened(engine, Path(directory), session)
    os.write(pipe, b"set\n")
    while True:
        state.spend(losses(number), spend_id=str(number))
        os.write(pipe, f"{number}\n".encode())
        number += 1


def look(engine: str, directory: Path, acknowledged: int, pipe: int) -> None:
    """Whether the state is that after `acknowledged` spends, or after one more."""
    import residua as rz

    twin = rz.individual.create("memory:", filter=rz.GdpResidueFilter(mu=1.0))
    for number in range(acknowledged):
        twin.spend(losses(number), spend_id=str(number))
    # What Spark wrote can be read without it.
    state = opened(engine, directory)
    found = table(state)
    more = 0
    if found != table(twin):
        twin.spend(losses(acknowledged), spend_id=str(acknowledged))
        more = 1
        if found != table(twin):
            os.write(pipe, b"-1")
            return
    if more:
        again, same = (
            one.spend(losses(acknowledged), spend_id=str(acknowledged)) for one in (state, twin)
        )
        same_set = again.active.sort_by("subject") == same.active.sort_by("subject")
        if not (again.replayed and same_set) or table(state) != found:
            os.write(pipe, b"-2")
            return
    os.write(pipe, str(more).encode())


def child(work: Any, *arguments: Any) -> tuple[int, int]:
    """Fork; the child's process id, and the end of a pipe that it writes to."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # A group of its own, with whatever it starts.
        os.setpgid(0, 0)
        os.close(reading)
        try:
            work(*arguments, writing)
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    os.close(writing)
    return pid, reading


class Spender:
    """A child that gets ready at once, spends when it is told to, and is killed."""

    def __init__(self, engine: str, archive: Path):
        turn, self._turn = os.pipe()
        self._engine = engine
        self.pid, self._pipe = child(spend_for_ever, engine, archive, turn)
        os.close(turn)
        self._heard = b""

    def _hear(self, lines: int) -> None:
        while self._heard.count(b"\n") < lines:
            part = os.read(self._pipe, 65536)
            assert part, "the child died by itself"
            self._heard += part

    def go(self, directory: Path, number: int) -> None:
        self._hear(1)
        os.write(self._turn, json.dumps([str(directory), number]).encode())
        self._hear(2)

    def hear_a_spend(self) -> float:
        """Wait until one more is acknowledged; how long that took."""
        start = time.monotonic()
        self._hear(self._heard.count(b"\n") + 1)
        return time.monotonic() - start

    def kill(self) -> list[int]:
        """Kill it; which spends it had acknowledged."""
        if self._engine == "orphan":
            os.kill(self.pid, signal.SIGKILL)
        else:
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        while part := os.read(self._pipe, 65536):
            self._heard += part
        os.close(self._pipe)
        os.close(self._turn)
        return [int(line) for line in self._heard.split() if line.isdigit()]


def main(engine: str, kills: int, directory: Path) -> None:
    # Imported once; no thread runs before the forks.
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import residua as rz

    rz.individual.create("memory:", filter=rz.GdpResidueFilter(mu=1.0))
    rng = random.Random(engine)
    done, lost, unheard, spends = 0, 0, 0, 0
    # How long the first spend of a child takes, and how long later ones.
    first, later = (8.0, 2.0) if engine in SPARK else (0.2, 0.2)
    archive = directory / "classes.jsa"
    if engine in SPARK and kills > 2:
        os.waitpid(child(write_archive, archive, directory / "first")[0], 0)
    waiting: list[Spender] = []
    try:
        for kill in range(kills):
            if kill % 20 == 0:
                # A new state now and then: the check replays every spend.
                spends, done = spends + done, 0
                directory = directory / "next"
                directory.mkdir()
            ahead = min(AHEAD if engine in SPARK else 1, kills - kill)
            waiting += [Spender(engine, archive) for _ in range(ahead - len(waiting))]
            spender = waiting.pop(0)
            spender.go(directory, done)
            count = rng.randrange(2 if engine in SPARK else 3)
            for number in range(count):
                lasted = spender.hear_a_spend()
                first, later = (first, lasted) if number else (lasted, later)
            # At any moment of a spend; every other time near its end, where old becomes new.
            share = rng.uniform(0.75 * (kill % 2), 1.1)
            time.sleep(share * (later if count else first))
            done = max([done, *(number + 1 for number in spender.kill())])
            pid, pipe = child(look, engine, directory, done)
            os.waitpid(pid, 0)
            answer = os.read(pipe, 64)
            os.close(pipe)
            assert answer in (b"0", b"1"), f"neither old nor new after {done} spends: {answer!r}"
            unheard += int(answer)
            lost += 1 - int(answer)
            done += int(answer)
            print(f"{kill + 1} of {kills} kills, {unheard} new", file=sys.stderr, flush=True)
    finally:
        for spender in waiting:
            spender.kill()
    print(json.dumps({"kills": kills, "spends": spends + done, "old": lost, "new": unheard}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
