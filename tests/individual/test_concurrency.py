"""Spends that overlap: none is lost, whoever comes first."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

import residua as rz
from individual.engine_runs import state_of


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", ["memory", "duckdb", "parquet"])
def test_no_update_is_lost(make: Callable[..., Any], engine: str, tmp_path: Path) -> None:
    states = [make(engine)] * 3 if engine == "memory" else [make(engine) for _ in range(3)]
    failures: list[BaseException] = []

    def spend(who: int) -> None:
        try:
            for number in range(4):
                losses = {"subject": [1, 2, 10 + who], "nu": [0.1, 0.2, 0.3]}
                assert states[who].spend(losses, spend_id=f"{who}-{number}").active.num_rows == 3
                # Others ask for the same at the same time: one spend, one answer.
                states[who].spend({"subject": [3], "nu": [0.5]}, spend_id=f"shared-{number}")
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=spend, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not [*tmp_path.glob("*.wal")], "DuckDB's log is in the file"
    left = dict(
        zip(*(state_of(states[0])[name].to_pylist() for name in ("subject", "left")), strict=True)
    )
    cents = 10**16
    assert left == {
        1: (100 - 12) * cents, 2: (100 - 48) * cents, 3: 0,
        10: (100 - 36) * cents, 11: (100 - 36) * cents, 12: (100 - 36) * cents,
    }  # fmt: skip


def test_two_processes_on_one_directory(make: Callable[..., Any], tmp_path: Any) -> None:
    script = (
        "import sys, residua as rz\n"
        f"state = rz.individual.open('parquet:{tmp_path}/state', engine='numpy')\n"
        "for number in range(10):\n"
        "    state.spend({'subject': [1], 'nu': [0.2]}, spend_id=f'{sys.argv[1]}-{number}')\n"
        "    state.spend({'subject': [2], 'nu': [0.2]}, spend_id=f'shared-{number}')\n"
    )
    state = make("parquet")
    processes = [subprocess.Popen([sys.executable, "-c", script, who]) for who in ("a", "b")]
    assert [process.wait() for process in processes] == [0, 0]
    assert state_of(state)["left"].to_pylist() == [20 * 10**16, 60 * 10**16]


def test_the_first_table_sets_the_types_of_keys(make: Callable[..., Any]) -> None:
    """Two threads that are the first to say what keys are: one of them is told."""
    state = make("memory")
    ready, told = Barrier(2), []

    def spend(subject: Any) -> None:
        ready.wait()
        try:
            state.spend({"subject": [subject] * 1, "nu": [0.1]}, spend_id=repr(subject))
        except rz.ArgumentTypeError as error:
            told.append(error)

    threads = [Thread(target=spend, args=(subject,)) for subject in (1, "1")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 1 and state_of(state).num_rows == 1


@pytest.mark.needs("duckdb")
def test_another_process_gets_an_error(make: Callable[..., Any], tmp_path: Any) -> None:
    make("duckdb").spend({"subject": [1], "nu": [0.1]}, spend_id="q")
    script = (
        "import residua as rz\n"
        f"try: rz.individual.open('duckdb:///{tmp_path}/state.db?threads=1')\n"
        "except rz.StateUnavailable as error: print('told', error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.stdout.startswith("told duckdb:"), result.stderr
