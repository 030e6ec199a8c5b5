"""The model of the ledger's protocol: Spin finds no state that breaks a promise."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "model" / "ledger.pml"

pytestmark = pytest.mark.skipif(
    shutil.which("spin") is None or shutil.which("gcc") is None, reason="needs spin and gcc"
)

CRASHES = ("RESTORES=0", "RECOVERS=0")
RESTORES = ("CRASHES=0", "POWER=0", "EXPORTS=0", "RECOVERS=1")


def search(folder: Path, *macros: str) -> tuple[str, int]:
    """The assertion that fails, if any, and how many states were visited."""
    given = [f"-D{macro}" for macro in macros]
    subprocess.run(["spin", *given, "-a", str(MODEL)], cwd=folder, check=True, capture_output=True)
    options = ["-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=4000"]
    subprocess.run(["gcc", *options, "-o", "pan", "pan.c"], cwd=folder, check=True)
    found = subprocess.run(
        ["./pan", "-m1000000", "-w24"], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert "error: max search depth too small" not in found.stdout, found.stdout[-2000:]
    errors = re.search(r"errors: (\d+)", found.stdout)
    states = re.search(r"(\d+) states, stored", found.stdout)
    assert errors and states, found.stdout[-2000:]
    violated = re.search(r"assertion violated (.*) \(at depth", found.stdout)
    if errors[1] == "0":
        assert "Search not completed" not in found.stdout
        return "", int(states[1])
    assert violated, found.stdout[:2000]
    return violated[1], int(states[1])


@pytest.mark.parametrize("macros", [CRASHES, RESTORES, ("SERVERS=1",)], ids=" ".join)
def test_every_state_keeps_the_promises(tmp_path: Path, macros: tuple[str, ...]) -> None:
    violated, states = search(tmp_path, *macros)
    assert not violated
    assert states > 100_000


@pytest.mark.parametrize(
    ("macros", "violated"),
    [
        ((*CRASHES, "NO_STORE_SYNC"), "synced"),
        ((*CRASHES, "NO_REPLAY_SYNC"), "synced"),
        ((*CRASHES, "NO_ANCHOR_SYNC"), "anchor_synced"),
        ((*CRASHES, "NO_LOCK"), "runs<="),
        ((*CRASHES, "NO_HOLDS"), "runs<="),
        ((*CRASHES, "CAP=2", "NO_KEYS"), "runs_of"),
        ((*RESTORES, "NO_ANCHOR"), "lost"),
        ((*RESTORES, "NO_CHAIN"), "lost"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_what_the_protocol_needs(tmp_path: Path, macros: tuple[str, ...], violated: str) -> None:
    found, _ = search(tmp_path, *macros)
    assert violated in found


def test_the_readme_names_what_is_tested() -> None:
    page = (MODEL.parent / "README.md").read_text(encoding="utf-8")
    for macros in (CRASHES, RESTORES, ("SERVERS=1",)):
        assert "`" + " ".join(f"-D{macro}" for macro in macros) + "`" in page
