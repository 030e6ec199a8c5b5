"""Runs what the documentation shows.

In a Markdown file, a `python` block is run, and a `text` block directly after it is what it must
print. The blocks of one file share their names, in order, as a reader would type them. In a
`console` block the lines after `$ residua ...` are what that command must print; a line `...` means
any lines, and a comment may name the exit code.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    line: int
    expected: str


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a Markdown file, each with the output that follows it."""
    source = path.read_text(encoding="utf-8")
    matches = list(FENCE.finditer(source))
    found = []
    for place, match in enumerate(matches):
        follower = matches[place + 1] if place + 1 < len(matches) else None
        shown = (
            follower is not None
            and follower[1] == "text"
            and not source[match.end() : follower.start()].strip()
        )
        expected = follower[2] if shown and follower is not None else ""
        line = source.count("\n", 0, match.start()) + 1
        found.append(Block(match[1], match[2], line, expected))
    return found


def run_python(path: Path) -> int:
    """Run the `python` blocks of a file; the number of them. Raises where the output differs."""
    names: dict[str, Any] = {"__name__": "__snippets__"}
    count = 0
    for block in blocks(path):
        if block.language != "python":
            continue
        count += 1
        # Padding makes a traceback point into the Markdown file.
        code = compile("\n" * block.line + block.text, str(path), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        check(printed.getvalue(), block.expected, path, block.line)
    return count


class Command(NamedTuple):
    arguments: list[str]
    exit_code: int
    expected: str
    line: int


def commands(path: Path) -> list[Command]:
    """The `residua` commands of a file's `console` blocks, in order."""
    found = []
    for block in blocks(path):
        if block.language != "console":
            continue
        for session in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = session.partition("\n")
            words = shlex.split(command, comments=True)
            assert words[0] == "residua", f"{path.name}: only residua runs here, not {command}"
            code = re.search(r"# .*exit code (\d+)", command)
            found.append(Command(words[1:], int(code[1]) if code else 0, expected, block.line))
    return found


def run_console(path: Path, cwd: Path | None = None) -> int:
    """Run the `residua` commands of a file's `console` blocks; the number of them."""
    for command in commands(path):
        printed = run_residua(command.arguments, cwd, command.exit_code)
        check(printed, command.expected, path, command.line)
    return len(commands(path))


def run_residua(arguments: list[str], cwd: Path | None = None, exit_code: int = 0) -> str:
    """What `residua` with these arguments prints, in a terminal of 100 columns."""
    result = subprocess.run(
        [sys.executable, "-c", "from residua.cli import main; main()", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
        cwd=cwd,
        check=False,
    )
    assert result.returncode == exit_code, result.stdout + result.stderr
    return result.stdout


def check(printed: str, expected: str, path: Path, line: int) -> None:
    # Rich pads its tables with blanks; no reader sees them.
    gap = "(?:.*\n)*"
    wanted = "".join(
        gap if line == "..." else re.escape(line) + "\n" for line in _trimmed(expected).splitlines()
    )
    if not re.fullmatch(wanted, _trimmed(printed) + "\n" if _trimmed(printed) else ""):
        raise AssertionError(
            f"{path.name}, block at line {line}\n--- shown\n{expected}--- printed\n{printed}"
        )


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
