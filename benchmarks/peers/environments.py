"""Where a peer can be imported: here, or in an environment of its own that is made once.

Peers that other packages here cannot live with (they pin numpy or mpmath) or that are large (torch)
are installed under `.venv-peers/NAME`. What cannot be had is a reason, not an error: the report
says it in the place of numbers.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = Path(__file__).resolve().parent / "adapters"
PATIENCE = 1200.0
"""Seconds that an installation may take."""


@dataclass(frozen=True)
class Home:
    """The interpreter that has a peer, and its version there; or why there is none."""

    python: Path | None
    version: str = ""
    why: str = ""


def folder() -> Path:
    return Path(os.environ.get("RESIDUA_PEERS", ROOT / ".venv-peers"))


def find(package: str, requirements: tuple[tuple[str, ...], ...], install: bool) -> Home:
    """The environment with this package: this one, one made before, or a new one."""
    if version := installed(Path(sys.executable), package):
        return Home(Path(sys.executable), version)
    place = folder() / package
    python, stamp = place / "bin" / "python", place / ".ready"
    wanted = hashlib.sha256(repr((requirements, sys.version)).encode()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        if not install:
            return Home(None, why="not installed: this run installs nothing")
        if why := _make(place, requirements):
            return Home(None, why=f"not installed: {why}")
        stamp.write_text(wanted)
    version = installed(python, package)
    return Home(python, version) if version else Home(None, why="installed, but not to be found")


def installed(python: Path, package: str) -> str:
    """The version of a package in an environment; empty if it is not there."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    found = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else ""


def _make(place: Path, requirements: tuple[tuple[str, ...], ...]) -> str:
    """Make the environment, one group of requirements after the other; the reason if it fails."""
    print(f"  installing {' '.join(requirements[-1])} into {place}", file=sys.stderr, flush=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-qq"]
    steps = [[sys.executable, "-m", "venv", "--clear", str(place)]]
    steps += [[*pip, "--disable-pip-version-check", *group] for group in requirements]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"no end in {PATIENCE:g} s"
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (lines or done.stderr.strip().splitlines() or ["pip failed"])[-1][:200]
    return ""
