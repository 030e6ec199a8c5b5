"""Proofs in several processes, which run nothing but the proofs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from residua.errors import LedgerError
from residua.verify.chains.steps import spread

SCRIPT = """
import sys
import residua as rz
print("run")
with rz.open_ledger(sys.argv[1]) as ledger:
    ledger.create_budget("b", rz.GdpResidueFilter(1.0))
    for n in range(3):
        ledger.spend("b", rz.mechanisms.Laplace(20.0 + n))
    report = ledger.verify(jobs=2)
    print(report.ok, report.proven, len(ledger.history("b")))
"""


@pytest.mark.needs("flint")
def test_a_script_that_is_not_guarded_is_not_run_again(tmp_path: Path) -> None:
    """What it spends before it verifies is spent once."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "a.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("run\nTrue 4 4\n", "")


def test_answers_come_in_order() -> None:
    assert list(spread(abs, [-n for n in range(100)], 3)) == list(range(100))


def test_what_is_printed_in_a_worker_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(spread(print, ["one ", "two "], 2)) == [None, None]
    assert sorted(capfd.readouterr().err.split()) == ["one", "two"]


def test_an_error_in_a_worker_is_raised_here() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(spread(int, ["1", "x"], 2))


def test_a_worker_that_dies_is_told() -> None:
    with pytest.raises(LedgerError, match="ended with 3"):
        list(spread(os._exit, [3, 3], 2))


def test_who_stops_asking_does_not_wait(tmp_path: Path) -> None:
    import time

    start = time.monotonic()
    answers = spread(time.sleep, [0.0, 600.0], 2)
    assert next(answers) is None
    answers.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 60.0
