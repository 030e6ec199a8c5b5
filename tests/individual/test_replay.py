"""A charge permits one release: a repeated `spend_id` is marked as replayed, on every engine."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pytest

import residua as rz
from individual.conftest import STORES
from individual.engine_runs import by_key, state_of

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

LOSSES = {"subject": [1, 2, 3], "nu": [0.5, 0.7, 2.0]}
"""Subject 3 cannot pay."""
OTHERS = [
    {"losses": {"subject": [1, 2, 3], "nu": [0.5, 0.7, 2.5]}},
    {"losses": {"subject": [1, 2], "nu": [0.5, 0.7]}},
    {"losses": {"subject": [1, 2, 3], "eps": [0.5, 0.7, 2.0]}},
    {"losses": {"subject": [1, 2, 3]}, "mechanism": rz.mechanisms.Laplace(scale=9.0)},
    {"losses": {"subject": [1, 2, 3], "eps": [0.5, 0.7, 2.0]}, "levels": [1.0, 2.0]},
]
"""Other requests under the same id."""


def check_repetition(make: Callable[..., Any], engine: str, **more: Any) -> None:
    """The first call is the charge, every later one says that it is not."""
    state = make(engine, **more)
    first = state.spend(LOSSES, spend_id="q-17")
    assert (first.spend_id, first.replayed) == ("q-17", False)
    assert sorted(first.active["subject"].to_pylist()) == [1, 2]
    after = state_of(state)
    states = [state] if engine == "memory" else [state, make(engine, **more)]
    for again in [one.spend(LOSSES, spend_id="q-17") for one in states]:
        assert (again.spend_id, again.replayed) == ("q-17", True)
        assert by_key(again.active) == by_key(first.active)
    for other in OTHERS:
        with pytest.raises(rz.ArgumentError, match="'q-17' was used for another table of losses"):
            state.spend(**other, spend_id="q-17")
    assert state_of(state) == after, "repetitions charge nothing"
    assert not state.spend(LOSSES, spend_id="q-18").replayed


def check_race(states: list[Any]) -> None:
    """Threads that ask for the same at the same time: one charge, and one of them made it."""
    ready, results, failures = Barrier(len(states)), [], []

    def spend(state: Any) -> None:
        try:
            ready.wait()
            results.append(state.spend(LOSSES, spend_id="raced"))
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=spend, args=(state,)) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(one.replayed for one in results) == [False] + [True] * (len(states) - 1)
    assert all(by_key(one.active) == by_key(results[0].active) for one in results)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_a_repetition_is_marked(make: Callable[..., Any], engine: str) -> None:
    check_repetition(make, engine)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_one_thread_of_many_makes_the_charge(make: Callable[..., Any], engine: str) -> None:
    check_race([make(engine)] * 4 if engine == "memory" else [make(engine) for _ in range(4)])


@pytest.mark.needs("pyspark")
def test_spark_marks_repetitions_too(make: Callable[..., Any], spark: Any, tmp_path: Path) -> None:
    check_repetition(make, "spark", spark=spark)
    check_race([make("spark", spark=spark) for _ in range(2)])
    # An engine that did not make the charge knows of it.
    with rz.individual.open(f"parquet:{tmp_path}/state-spark", engine="numpy") as other:
        assert other.spend(LOSSES, spend_id="raced").replayed


def test_one_process_of_many_makes_the_charge(make: Callable[..., Any], tmp_path: Path) -> None:
    make("parquet")
    script = (
        "import sys, residua as rz\n"
        f"state = rz.individual.open('parquet:{tmp_path}/state', engine='numpy')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for number in range(10):\n"
        f"    print(state.spend({LOSSES!r}, spend_id=f'raced-{{number}}').replayed)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0].split() for process in processes]
    charges = [sorted(answers) for answers in zip(*said, strict=True)]
    assert charges == [["False", "True", "True"]] * 10


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", ["duckdb", "parquet"])
def test_a_retry_after_a_crash_is_a_replay(engine: str, tmp_path: Path) -> None:
    """Killed after the charge and before the release: the retry gets the set, and the mark."""
    address = f"duckdb:///{tmp_path}/s.db" if engine == "duckdb" else f"parquet:{tmp_path}/s"
    chosen = None if engine == "duckdb" else "numpy"
    script = (
        "import os, signal, residua as rz\n"
        "filter = rz.GdpResidueFilter(mu=1.0)\n"
        f"state = rz.individual.create({address!r}, filter=filter, engine={chosen!r})\n"
        f"state.spend({LOSSES!r}, spend_id='q-17')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with rz.individual.open(address, engine=chosen) as state:
        before = state_of(state)
        retried = state.spend(LOSSES, spend_id="q-17")
        assert retried.replayed and sorted(retried.active["subject"].to_pylist()) == [1, 2]
        assert state_of(state) == before


def test_a_result_reads_like_its_active_set_and_shows_none_of_it(make: Callable[..., Any]) -> None:
    spent = make("memory").spend({"subject": [123456, 7], "nu": [0.5, 3.0]}, spend_id="q")
    assert repr(spent) == "SpendResult(spend_id='q', replayed=False)"
    assert spent["subject"].to_pylist() == [123456] and spent.num_rows == 1
    assert pa.table(spent) == spent.active
    with pytest.raises(AttributeError):
        spent.replayed = True
