"""Where an export is written to: a file by its path, or a stream that is open."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO

from residuum import checks
from residuum.errors import ArgumentError, ArgumentTypeError


def write_lines(to: str | Path | IO[str], lines: Iterable[str]) -> int:
    """Write the lines of an export; their number."""
    if isinstance(to, str | Path):
        try:
            with Path(to).open("w", encoding="ascii") as file:
                return _written(file, lines)
        except OSError as error:
            raise ArgumentError(f"to must be a file to write, got {to} ({error})") from None
    try:
        to.write("")
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"to must be a path or a text file, got {checks.shown(to)}"
        ) from None
    return _written(to, lines)


def _written(file: IO[str], lines: Iterable[str]) -> int:
    count = 0
    for line in lines:
        file.write(line)
        count += 1
    return count
