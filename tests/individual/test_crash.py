"""A process that is killed during a spend leaves the old state or the new one, never a mixture."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def killed(engine: str, kills: int, directory: Path) -> dict[str, int]:
    script = Path(__file__).with_name("crash.py")
    result = subprocess.run(
        [sys.executable, str(script), engine, str(kills), str(directory)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    found: dict[str, int] = json.loads(result.stdout)
    return found


THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", ["duckdb", "parquet"])
def test_old_or_new(engine: str, tmp_path: Path) -> None:
    kills = 100 if THOROUGH else 6
    found = killed(engine, kills, tmp_path)
    assert found["kills"] == found["old"] + found["new"] == kills
    assert found["spends"] >= 1


@pytest.mark.needs("pyspark")
@pytest.mark.parametrize(
    ("engine", "kills"), [("spark", 100), ("orphan", 20)] if THOROUGH else [("spark", 1)]
)
def test_old_or_new_with_spark(engine: str, kills: int, tmp_path: Path) -> None:
    """Java takes seconds to start, so the short form kills once."""
    found = killed(engine, kills, tmp_path)
    assert found["kills"] == found["old"] + found["new"] == kills
