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
from pathlib import Path

import pytest

from snippets import ROOT, blocks

README = ROOT / "README.md"


def wheels(folder: Path) -> Path:
    """A directory with the wheel of this checkout."""
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    command = [sys.executable, "-m", "pip", "wheel", "-q", *options, str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


def environment(home: Path) -> Path:
    """The programs of a fresh environment in which everything but the package itself is there."""
    venv.create(home, with_pip=True)
    packages = next(home.glob("lib/python*/site-packages"))
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if "residua" not in found.name and not (packages / found.name).exists():
            (packages / found.name).symlink_to(found)
    return home / "bin"


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    """What a command prints, run as a user would, without this checkout on the path."""
    done = subprocess.run(
        [str(word) for word in command],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)} | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


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
    shell = [block.text for block in blocks(README) if block.language == "sh"]
    commands = [line for text in shell for line in text.splitlines() if line.startswith("residua ")]
    for line in commands[:3]:
        words = shlex.split(line, comments=True)
        run([programs / words[0], *words[1:]], tmp_path)
