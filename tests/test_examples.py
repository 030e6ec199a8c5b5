"""The example scripts run, in a small form, and draw their figures."""

import subprocess
import sys
from pathlib import Path

import pytest

from snippets import ROOT


def run(name: str, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", f"examples.{name}", *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.needs("sklearn", "pyarrow", "matplotlib")
def test_training(tmp_path: Path) -> None:
    out = tmp_path / "training.png"
    said = run("training", "--steps", "4", "--runs", "1", "--out", str(out))
    assert out.stat().st_size > 10_000
    for name in ("worst-case filter", "worst-case filter, more noise", "individual filter"):
        assert f"{name}: " in said


@pytest.mark.needs("pyarrow", "matplotlib")
def test_attribution(tmp_path: Path) -> None:
    out = tmp_path / "attribution.png"
    said = run("attribution", "--devices", "500", "--queries", "60", "--out", str(out))
    assert out.stat().st_size > 10_000
    counts = [int(line.split(": ")[1].split(" of ")[0]) for line in said.splitlines()[:3]]
    assert counts == sorted(counts) and counts[2] > 2 * counts[0]
