"""Spends that overlap: none is lost, whoever comes first."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from individual.engines import state_of


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", ["memory", "duckdb", "parquet"])
def test_no_update_is_lost(make: Callable[..., Any], engine: str) -> None:
    states = [make(engine)] * 3 if engine == "memory" else [make(engine) for _ in range(3)]
    failures: list[BaseException] = []

    def spend(who: int) -> None:
        try:
            for number in range(4):
                losses = {"subject": [1, 2, 10 + who], "nu": [0.1, 0.2, 0.3]}
                assert states[who].spend(losses, spend_id=f"{who}-{number}").num_rows == 3
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
    left = dict(
        zip(*(state_of(states[0])[name].to_pylist() for name in ("subject", "left")), strict=True)
    )
    cents = 10**16
    assert left == {
        1: (100 - 12) * cents, 2: (100 - 48) * cents, 3: 0,
        10: (100 - 36) * cents, 11: (100 - 36) * cents, 12: (100 - 36) * cents,
    }  # fmt: skip


@pytest.mark.needs("duckdb")
def test_another_process_is_told(make: Callable[..., Any], tmp_path: Any) -> None:
    import subprocess
    import sys

    make("duckdb").spend({"subject": [1], "nu": [0.1]}, spend_id="q")
    script = (
        "import residuum as rz\n"
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
