"""The install line of the README, in a fresh environment, and then the README's first blocks.

The wheel is built and put into a local directory, which stands in for the package index. What the
package depends on is linked from this environment, so nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from snippets import ROOT, blocks, commands

README = ROOT / "README.md"
TIMEOUT = 300.0
"""Seconds for one command: the slowest one builds the wheel."""


def wheels(folder: Path) -> Path:
    """A directory with the wheel of this checkout."""
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    execute([sys.executable, "-m", "pip", "wheel", "-q", *options, str(ROOT)])
    return folder


def environment(home: Path) -> Path:
    """The programs of a fresh environment in which everything but the package itself is there."""
    venv.create(home, with_pip=True)
    packages = next(home.glob("lib/python*/site-packages"))
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if "residua" not in found.name and not (packages / found.name).exists():
            (packages / found.name).symlink_to(found)
    return home / "bin"


def execute(command: Sequence[str | Path], **options: Any) -> str:
    """What a command prints; a failure shows everything that it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        **options,
    )
    assert done.returncode == 0, (
        f"{command} exits with {done.returncode}: {done.stdout}{done.stderr}"
    )
    return done.stdout


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    """What a command prints, run as a user would, without this checkout on the path."""
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(folder)} | variables
    return execute(command, env=surroundings, cwd=folder)


@pytest.mark.needs("hatchling", "typer", "sqlalchemy")
def test_the_readme_works_after_its_install_lines(tmp_path: Path) -> None:
    index, programs = wheels(tmp_path / "wheels"), environment(tmp_path / "environment")
    python = programs / "python"
    lines = re.findall(r"`(pip install (?:residua|'residua\[[^']*'))`", README.read_text("utf-8"))
    assert len(lines) >= 2, "README.md must say how to install the package by its name"
    for line in lines:
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
        run([python, "-m", *shlex.split(line)], tmp_path, **offline)
    where = run([python, "-c", "import residua; print(residua.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(programs.parent)

    first = next(block for block in blocks(README) if block.language == "python")
    assert run([python, "-c", first.text], tmp_path) == first.expected
    shown = commands(README)
    assert len(shown) >= 3, "README.md must show the first three commands of a user"
    for command in shown[:3]:
        run([programs / "residua", *command.arguments], tmp_path)
