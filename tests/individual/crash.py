"""Kill a process in the middle of a spend, again and again, and look at what is left.

    python tests/individual/crash.py ENGINE KILLS DIRECTORY

A child spends without end and says which ids were acknowledged. After some of them it is killed
(SIGKILL), at a random moment of the time that a spend takes. Another child then opens the state and
compares it, bit for bit, with a state in memory after the same spends: it must be the one with all
acknowledged spends, or with one more. Retrying that one must return its set. Prints how many kills
left the old state, and how many a new one that its caller had not heard of.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

PEOPLE = 3000


def losses(number: int) -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(number)
    subject = rng.choice(PEOPLE + 10 * number, PEOPLE // 2, replace=False)
    return pa.table({"subject": subject, "nu": rng.uniform(0.0, 0.5, subject.size)})


def opened(engine: str, directory: Path) -> Any:
    import residuum as rz

    address = (
        f"duckdb:///{directory}/s.db?threads=1" if engine == "duckdb" else f"parquet:{directory}/s"
    )
    chosen = {"duckdb": None, "parquet": "numpy", "spark": "spark"}[engine]
    return rz.individual.create(address, filter=rz.GdpResidueFilter(mu=1.0), engine=chosen)


def table(state: Any) -> Any:
    found = state.export_sensitive_state_never_release()
    return found.sort_by("subject") if found.num_rows else found


def spend_for_ever(engine: str, directory: Path, start: int, pipe: int) -> None:
    state = opened(engine, directory)
    os.write(pipe, b"ready\n")
    number = start
    while True:
        state.spend(losses(number), spend_id=str(number))
        os.write(pipe, f"{number}\n".encode())
        number += 1


def look(engine: str, directory: Path, acknowledged: int, pipe: int) -> None:
    """Whether the state is that after `acknowledged` spends, or after one more."""
    import residuum as rz

    twin = rz.individual.create("memory:", filter=rz.GdpResidueFilter(mu=1.0))
    for number in range(acknowledged):
        twin.spend(losses(number), spend_id=str(number))
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
        again = state.spend(losses(acknowledged), spend_id=str(acknowledged)).sort_by("subject")
        same = twin.spend(losses(acknowledged), spend_id=str(acknowledged)).sort_by("subject")
        if again != same or table(state) != found:
            os.write(pipe, b"-2")
            return
    os.write(pipe, str(more).encode())


def child(work: Any, *arguments: Any) -> tuple[int, int]:
    """Fork; the child's process id, and the end of a pipe that it writes to."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
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


def main(engine: str, kills: int, directory: Path) -> None:
    # Imported once; no thread runs before the forks.
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import residuum as rz

    rz.individual.create("memory:", filter=rz.GdpResidueFilter(mu=1.0))
    rng = random.Random(engine)
    done, lost, unheard, lasts, spends = 0, 0, 0, 0.2, 0
    for kill in range(kills):
        if kill % 20 == 0:
            # A new state now and then: the check replays every spend.
            spends, done = spends + done, 0
            directory = directory / "next"
            directory.mkdir()
        pid, pipe = child(spend_for_ever, engine, directory, done)
        heard = b""
        # Spark starts with the first spend; what is of interest comes after that.
        for _ in range(1 + rng.randrange(3) + (engine == "spark")):
            start = time.monotonic()
            heard += os.read(pipe, 65536)
            assert heard.startswith(b"ready"), "the child did not start"
            lasts = time.monotonic() - start if heard.count(b"\n") > 1 else lasts
        time.sleep(rng.uniform(0.0, 1.1 * lasts))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while part := os.read(pipe, 65536):
            heard += part
        os.close(pipe)
        done = max([done, *(int(line) + 1 for line in heard.split()[1:])])
        # What Spark wrote can be read without it.
        pid, pipe = child(look, "parquet" if engine == "spark" else engine, directory, done)
        os.waitpid(pid, 0)
        answer = os.read(pipe, 64)
        os.close(pipe)
        assert answer in (b"0", b"1"), f"neither old nor new after {done} spends: {answer!r}"
        unheard += int(answer)
        lost += 1 - int(answer)
        done += int(answer)
    print(json.dumps({"kills": kills, "spends": spends + done, "old": lost, "new": unheard}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
